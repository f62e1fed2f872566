"""The bench of core streams: loading, writing, the latency of a change, many of them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import natsstream as ns
from natsstream.conat.headers import header_values
from natsstream.conat.values import Encoding
from scripts.benchmarks.goals import Goal, Row, row, rows
from scripts.benchmarks.rounds import Figure, Spread, interleave, measure, python
from scripts.benchmarks.subjects.core_streams import names_of

_MODULE = "scripts.benchmarks.subjects.core_streams"
# The streams that are filled once; the others write to one that is empty.
_STREAMS = {
    "open": "loaded",
    "read": "loaded",
    "nats-py dicts": "loaded",
    "open keyed": "keyed",
    "read keyed": "keyed",
}
_GOALS = (
    Goal(subject="open", base="read", at_least=0.7),
    Goal(subject="open keyed", base="read keyed", at_least=0.7),
    Goal(subject="publish_many", base="publisher"),
    Goal(subject="set_kv_many", base="publisher"),
    Goal(subject="change", base="request", of="p50_us"),
    Goal(subject="change", base="request", of="p99_us"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a round.

    Attributes:
        loaded: Messages that are loaded.
        dicts: Messages that nats-py keeps as dicts; it is slower.
        written: Messages that are stored.
        changes: Changes whose latency is measured.
        streams: Core streams that are open at once.
    """

    loaded: int = 1_000_000
    dicts: int = 100_000
    written: int = 50_000
    changes: int = 5_000
    streams: int = 1_000


SIZES = Sizes()


def core_streams(
    url: str, rounds: int, tell: Callable[[str], None], sizes: Sizes = SIZES
) -> list[Row]:
    """Load, write and follow core streams."""
    asyncio.run(_fill(url, sizes.loaded))
    counts = {
        "open": sizes.loaded,
        "read": sizes.loaded,
        "open keyed": sizes.loaded,
        "read keyed": sizes.loaded,
        "nats-py dicts": sizes.dicts,
        "change": sizes.changes,
        "open many": sizes.streams,
        "request": sizes.changes,
    }
    empty = measure(python(_MODULE, "open", url, "empty", "0"))

    def run(name: str) -> Figure:
        if name == "request":
            module = "scripts.benchmarks.subjects.requesters"
            return measure(python(module, name, url, "ask.me", str(counts[name])))
        count = counts.get(name, sizes.written)
        asyncio.run(_make_empty(url))
        subject, _, _ = name.partition(" keyed")
        figure = measure(python(_MODULE, subject, url, _STREAMS.get(name, "written"), str(count)))
        return replace(figure, peak_bytes=figure.peak_bytes - empty.peak_bytes)

    names = [*counts, "publish_many", "set_kv_many", "publisher"]
    figures = interleave(names, rounds, run, tell)
    lines = rows(figures, _GOALS)
    for name in ("open", "open keyed", "nats-py dicts"):
        sizes_each = [each.peak_bytes / counts[name] for each in figures[name]]
        lines.append(row(f"{name}: bytes of memory a message", Spread.of(sizes_each)))
    for of in ("p50_us", "p99_us"):
        times = [getattr(each, of) / 1_000 for each in figures["change"]]
        lines.append(row(f"change: {of[:3]} in milliseconds", Spread.of(times)))
    rates = [each.rate for each in figures["open many"]]
    memory = [each.peak_bytes / sizes.streams / 1_024 for each in figures["open many"]]
    lines.append(row("open many: core streams a second", Spread.of(rates)))
    lines.append(row("open many: KiB of memory a core stream", Spread.of(memory)))
    return lines


async def _fill(url: str, count: int) -> None:
    async with ns.connect(url) as js:
        await (await js.core_stream("empty")).close()
        for name in ("loaded", "keyed"):
            names = names_of(name)
            async with await js.core_stream(name, start_seq=count + 1), js.publisher() as out:
                for number in range(count):
                    key = f"key {number}" if name == "keyed" else None
                    await out.send(
                        names.subject_of(key),
                        b'{"text":"a small message %d"}' % number,
                        headers=header_values(Encoding.JSON, key=key),
                        rollup=None if key is None else "subject",
                    )


async def _make_empty(url: str) -> None:
    async with ns.connect(url) as js, await js.core_stream("written") as written:
        await written.delete(all=True)
