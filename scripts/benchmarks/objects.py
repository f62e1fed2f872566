"""The bench of object stores: one large object, put and read by three clients, in memory stores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import natsstream as ns
from scripts.benchmarks import tools
from scripts.benchmarks.goals import Goal, Row, rows
from scripts.benchmarks.rounds import Figure, interleave, measure, python

MEBIBYTES = 32
OBJECT = "bench.bin"
"""The object's name; nats_js_objects.mjs has the same."""
_MODULE = "scripts.benchmarks.subjects.objects"
# A socket that sends the chunks and counts the acks, without a digest: the bound for every client.
_GOALS = {
    "put": (
        Goal(subject="ours put", base="nats-py put"),
        Goal(subject="ours put", base="nats.js put", at_least=3),
        Goal(subject="ours put", base="socket put"),
    ),
    "get": (
        Goal(subject="ours get", base="nats-py get", at_least=5),
        Goal(subject="ours get", base="nats.js get", at_least=5),
    ),
}


def objects(
    url: str, rounds: int, tell: Callable[[str], None], mebibytes: int = MEBIBYTES
) -> list[Row]:
    """Put and get of an object; the rates are MiB/s."""
    asyncio.run(_make(url, "bench", mebibytes))

    def run(name: str) -> Figure:
        client, _, deed = name.rpartition(" ")
        if client == "nats.js":
            program = "nats_js_objects.mjs"
            return tools.nats_js(deed, url, "bench", mebibytes, program=program)
        return measure(python(_MODULE, name, url, "bench", str(mebibytes)))

    lines: list[Row] = []
    for goals in _GOALS.values():
        names = [goals[0].subject, *(goal.base for goal in goals)]
        lines += rows(interleave(names, rounds, run, tell), goals, f" ({mebibytes} MiB)")
    return lines


async def _make(url: str, store: str, mebibytes: int) -> None:
    async with ns.connect(url) as js:
        box = await js.objects.ensure(store, storage="memory")
        await box.put(OBJECT, bytes(mebibytes << 20))
