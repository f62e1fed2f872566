"""The bench of key-value buckets: the same calls by four clients, on buckets filled before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scripts.benchmarks import tools
from scripts.benchmarks.goals import Goal, Row, rows
from scripts.benchmarks.rounds import Figure, interleave, measure, python
from scripts.benchmarks.streams import KEYS, fill_bucket

_MODULE = "scripts.benchmarks.subjects.buckets"
_CLIENTS = ("ours", "nats-py", "natsrpy", "nats.js")
_DEEDS = {
    "get": "get, one after the other",
    "put": "put, one after the other",
    "puts": "put, 256 at once",
    "watch": "watch, a replay",
    "keys": "keys",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a round.

    Attributes:
        calls: Gets, and puts, one after the other.
        puts: Puts, many at once.
        updates: Revisions that a watch gives.
        updates_of_nats_py: The same for nats-py, which is slower.
        keys: Keys that are listed.
        revisions: Of each key of the watched bucket.
    """

    calls: int = 5_000
    puts: int = 20_000
    updates: int = 100_000
    updates_of_nats_py: int = 20_000
    keys: int = 100_000
    revisions: int = 20


SIZES = Sizes()


def kv(
    url: str,
    rounds: int,
    tell: Callable[[str], None],
    sizes: Sizes = SIZES,
    deeds: Sequence[str] = tuple(_DEEDS),
) -> list[Row]:
    """Get, put, watch and keys of a bucket."""
    calls, watched, listed = "calls", "watched", "listed"
    asyncio.run(fill_bucket(url, calls, keys=KEYS))
    revisions = sizes.revisions
    asyncio.run(fill_bucket(url, watched, keys=sizes.updates // revisions, revisions=revisions))
    asyncio.run(fill_bucket(url, listed, keys=sizes.keys))
    plan = {
        "get": (calls, sizes.calls),
        "put": (calls, sizes.calls),
        "puts": (calls, sizes.puts),
        "watch": (watched, sizes.updates),
        "keys": (listed, sizes.keys),
    }

    def run(name: str) -> Figure:
        client, _, deed = name.rpartition(" ")
        bucket, count = plan[deed]
        if client == "nats.js":
            return tools.nats_js(deed, url, bucket, count, program="nats_js_kv.mjs")
        if name == "nats-py watch":
            count = sizes.updates_of_nats_py
        return measure(python(_MODULE, name, url, bucket, str(count)))

    lines: list[Row] = []
    for deed in deeds:
        what = _DEEDS[deed]
        figures = interleave([f"{client} {deed}" for client in _CLIENTS], rounds, run, tell)
        goals = [Goal(subject=f"ours {deed}", base=f"{each} {deed}") for each in _CLIENTS[1:]]
        lines += rows(figures, goals, f" ({what})" if deed != what else "")
    return lines
