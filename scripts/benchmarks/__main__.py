"""`scripts/bench`: starts a fresh server, fills it, and compares readers in interleaved rounds."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import natsstream as ns
from natsstream.testing import NatsServer
from scripts.benchmarks.readers import READERS
from scripts.benchmarks.rounds import Figure, Spread, interleave, measure, ratios

PAYLOAD_BYTES = 256
MESSAGES = 300_000
# nats-py's fetch is some fifty times slower; a rate needs no more than this.
MESSAGES_OF_FETCH = 20_000
MEMORY_MESSAGES = (100_000, 1_000_000)
_HEADERS = {"Trace-Id": "4bf92f3577b34da6a3ce929d0e0e4736", "Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Goal:
    """One figure that is wanted: a subject's rate in parts of another's."""

    subject: str
    base: str
    at_least: float


READ_GOALS = (
    Goal("messages", "socket", 0.45),
    Goal("messages", "natsrpy fetch", 1.2),
    Goal("messages", "nats-py fetch", 12),
    Goal("arrow", "socket", 0.7),
)
# With headers: no worse than half of the figures without.
HEADER_GOALS = (Goal("messages", "socket", 0.225), Goal("arrow", "socket", 0.35))


def read(url: str, rounds: int) -> list[dict[str, object]]:
    """Bulk reads of 256-byte messages without headers."""
    return _read(url, rounds, "PLAIN", list(READERS), READ_GOALS)


def read_headers(url: str, rounds: int) -> list[dict[str, object]]:
    """The same with two headers a message."""
    return _read(url, rounds, "HEADERS", ["socket", "messages", "arrow"], HEADER_GOALS)


def memory(url: str, rounds: int) -> list[dict[str, object]]:
    """Largest resident size over ten times as many messages."""
    few, many = MEMORY_MESSAGES
    asyncio.run(_fill(url, "MEMORY", many, {}))
    rows: list[dict[str, object]] = []
    for reader in ("messages", "arrow"):
        growth: list[float] = []
        for number in range(rounds):
            sizes = [_reader(url, "MEMORY", reader, count).peak_bytes for count in (few, many)]
            growth.append(sizes[1] / sizes[0])
            told = f"{sizes[0] >> 20} MiB, {sizes[1] >> 20} MiB"
            _tell(f"round {number + 1}/{rounds}  {reader:<18} {told}")
        spread = Spread.of(growth)
        rows.append(_row(f"{reader}: peak size, {many:,} against {few:,}", spread, at_most=1.25))
    return rows


BENCHES: Mapping[str, Callable[[str, int], list[dict[str, object]]]] = {
    "read": read,
    "read-headers": read_headers,
    "memory": memory,
}


def _read(
    url: str, rounds: int, stream: str, readers: Sequence[str], goals: Sequence[Goal]
) -> list[dict[str, object]]:
    asyncio.run(_fill(url, stream, MESSAGES, _HEADERS if stream == "HEADERS" else {}))
    figures = interleave(readers, rounds, lambda name: _reader(url, stream, name), _tell)
    rows: list[dict[str, object]] = []
    for goal in goals:
        spread = ratios(figures, goal.subject, goal.base)
        label = f"{goal.subject} / {goal.base}, {stream.lower()}"
        rows.append(_row(label, spread, at_least=goal.at_least))
    return rows


def _reader(url: str, stream: str, name: str, count: int = 0) -> Figure:
    count = count or (MESSAGES_OF_FETCH if name == "nats-py fetch" else MESSAGES)
    return measure("scripts.benchmarks.readers", name, url, stream, str(count))


def _row(
    label: str, spread: Spread, *, at_least: float | None = None, at_most: float | None = None
) -> dict[str, object]:
    reached = (at_least is None or spread.median >= at_least) and (
        at_most is None or spread.median <= at_most
    )
    goal = f">= {at_least:g}" if at_least is not None else f"<= {at_most:g}"
    return {"figure": label, **asdict(spread), "goal": goal, "reached": reached}


async def _fill(url: str, stream: str, count: int, headers: Mapping[str, str]) -> None:
    async with ns.connect(url) as js:
        await js.streams.ensure(stream, subjects=[f"{stream.lower()}.>"])
        async with js.publisher() as publisher:
            for number in range(count):
                text = f'{{"id":{number:08d},"text":"'
                data = (text + "x" * (PAYLOAD_BYTES - len(text) - 2) + '"}').encode()
                subject = f"{stream.lower()}.{number % 500}"
                await publisher.send(subject, data, headers=headers)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def main() -> int:
    """Run the chosen benches; print a table on stdout, progress on stderr."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--only", choices=BENCHES, help="run one bench")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name in [args.only] if args.only else BENCHES:
        with NatsServer() as server:
            rows += BENCHES[name](server.url, args.rounds)
    print(f"{os.cpu_count()} cores shared with the server, {args.rounds} rounds")  # noqa: T201
    print(f"{'figure':<52} {'median':>7} {'min':>7} {'max':>7}  goal")  # noqa: T201
    for row in rows:
        numbers = " ".join(f"{row[name]:>7.2f}" for name in ("median", "low", "high"))
        reached = "" if row["reached"] else "  not reached"
        print(f"{row['figure']:<52} {numbers}  {row['goal']}{reached}")  # noqa: T201
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0 if all(row["reached"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
