"""The clients in other languages: where they are, and the commands that measure them."""

from __future__ import annotations

import functools
import re
import shutil
from pathlib import Path

from scripts.benchmarks.rounds import Figure, measure, run

_ROOT = Path(__file__).parents[2]
_SUBJECTS = Path(__file__).parent / "subjects"
_RATE = re.compile(r"stats: ([0-9,]+) msgs/sec")


@functools.cache
def tool(name: str) -> str:
    """Return the path of a tool that `scripts/tools` builds, built on first use."""
    return run([str(_ROOT / "scripts" / "tools"), name]).strip()


def nats_js(
    name: str, url: str, stream: str, count: int, *, program: str = "nats_js.mjs"
) -> Figure:
    """Run a subject of nats_js.mjs, or of another program beside it."""
    node = shutil.which("node")
    if node is None:
        raise RuntimeError("node is not on PATH: install Node.js")
    return measure([node, str(_SUBJECTS / program), tool("nats-js"), name, url, stream, str(count)])


def nats_bench(url: str, stream: str, count: int) -> Figure:
    """Run `nats bench js pub async`, which prints only a rate."""
    command = [tool("nats-cli"), "--no-context", "-s", url, "bench", "js", "pub", "async"]
    command += [f"{stream}.x", "--stream", stream, "--msgs", str(count), "--size", "256"]
    # A batch is what the CLI sends before it waits: its window.
    found = _RATE.search(run([*command, "--batch", "4096", "--no-progress"]))
    if found is None:
        raise RuntimeError("nats bench printed no rate")
    return Figure(count, count / int(found[1].replace(",", "")))
