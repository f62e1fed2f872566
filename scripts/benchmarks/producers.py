"""The bench of producers: throughput on one server and on three, latency, and a slow link."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import natsstream as ns
from natsstream.testing import FaultProxy, NatsCluster
from scripts.benchmarks import tools
from scripts.benchmarks.goals import Goal, Row, row, rows
from scripts.benchmarks.rounds import Figure, Spread, interleave, measure, python

_STREAM = "PROD"
_Storage: TypeAlias = Literal["file", "memory"]
_STORAGES: tuple[_Storage, ...] = ("file", "memory")
_SUBJECTS = "scripts.benchmarks.subjects"
_PLAIN = "nats-py publish_async"
_MACHINE = "raw fast batch"
_LINK_S = 0.020
_MODULES = {_PLAIN: "publishers", _MACHINE: "batches"}
_THROUGHPUT_GOALS = (
    Goal(subject="shared", base=_PLAIN, at_least=2),
    Goal(subject="exclusive", base=_PLAIN, at_least=4),
    Goal(subject="publisher, ids", base=_PLAIN),
    Goal(subject="publisher, one at a time", base=_PLAIN),
    Goal(subject="nats-py publish_async, ids", base=_PLAIN),
    Goal(subject="natsrpy publish, ids", base=_PLAIN),
    Goal(subject="nats.js publish, ids", base=_PLAIN),
    Goal(subject="shared", base=_MACHINE),
    Goal(subject="exclusive", base=_MACHINE),
)
_CLUSTER_GOALS = (
    Goal(subject="shared", base=_PLAIN, at_least=2),
    Goal(subject="exclusive", base=_PLAIN),
    Goal(subject="publisher, ids", base=_PLAIN),
    Goal(subject="publisher, one at a time", base=_PLAIN),
)
_LINK_GOALS = (
    Goal(subject="shared", base=_PLAIN),
    Goal(subject="exclusive", base=_PLAIN),
)
_LATENCY_GOALS = (
    Goal(subject="shared append_wait", base="publish", of="p50_us"),
    Goal(subject="exclusive append_wait", base="publish", of="p50_us"),
)

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a round.

    Attributes:
        stored: Messages that our subjects store.
        few: Messages that slower clients store.
        slow: Messages that are stored one after the other without a latency to measure.
        waits: Messages whose latency is measured.
    """

    stored: int = 40_000
    few: int = 10_000
    slow: int = 1_000
    waits: int = 200


SIZES = Sizes()


def producer(url: str, rounds: int, tell: Tell, sizes: Sizes = SIZES) -> list[Row]:
    """Store exactly once: a file stream with one replica and with three, a slow link, latency."""
    lines = _throughput(url, rounds, tell, sizes)
    lines += _link(url, rounds, tell, sizes)
    for storage in _STORAGES:
        lines += _latency(url, rounds, tell, sizes, storage)
    with NatsCluster() as cluster:
        lines += _cluster(cluster.urls[0], rounds, tell, sizes)
    return lines


def _throughput(url: str, rounds: int, tell: Tell, sizes: Sizes) -> list[Row]:
    names = _names(_THROUGHPUT_GOALS)
    figures = interleave(names, rounds, lambda name: _figure(url, url, name, sizes), tell)
    rates = [each.rate / 1000 for each in figures[_MACHINE]]
    speed = row(f"{_MACHINE}, thousand messages/s: the machine's speed", Spread.of(rates))
    return [*rows(figures, _THROUGHPUT_GOALS, " (R1)"), speed]


def _cluster(url: str, rounds: int, tell: Tell, sizes: Sizes) -> list[Row]:
    def run(name: str) -> Figure:
        return _figure(url, url, name, sizes, replicas=3)

    return rows(interleave(_names(_CLUSTER_GOALS), rounds, run, tell), _CLUSTER_GOALS, " (R3)")


def _link(url: str, rounds: int, tell: Tell, sizes: Sizes) -> list[Row]:
    with FaultProxy(int(url.rpartition(":")[2])) as proxy:
        proxy.delay(_LINK_S / 2)  # In each direction.

        def run(name: str) -> Figure:
            return _figure(url, proxy.url, name, sizes)

        figures = interleave(_names(_LINK_GOALS), rounds, run, tell)
    return rows(figures, _LINK_GOALS, " (20 ms link)")


def _latency(url: str, rounds: int, tell: Tell, sizes: Sizes, storage: _Storage) -> list[Row]:
    def run(name: str) -> Figure:
        asyncio.run(_make_empty(url, 1, storage))
        return _python("producers", name, url, sizes.waits)

    figures = interleave(_names(_LATENCY_GOALS), rounds, run, tell)
    lines = rows(figures, _LATENCY_GOALS, f" ({storage})")
    for name in _names(_LATENCY_GOALS):
        times = [each.p50_us / 1_000 for each in figures[name]]
        lines.append(row(f"{name}: p50 in milliseconds ({storage})", Spread.of(times)))
    return lines


def _names(goals: tuple[Goal, ...]) -> list[str]:
    return list(dict.fromkeys([*(goal.subject for goal in goals), *(goal.base for goal in goals)]))


def _figure(direct: str, url: str, name: str, sizes: Sizes, *, replicas: int = 1) -> Figure:
    """Return the figure of a subject that stores into an empty stream."""
    asyncio.run(_make_empty(direct, replicas, "file"))
    if name == "nats.js publish, ids":
        return tools.nats_js("publish_ids", url, _STREAM, sizes.few)
    count = sizes.stored if name in {"shared", "exclusive", _MACHINE} else sizes.few
    count = sizes.slow if name.endswith("one at a time") else count
    return _python(_MODULES.get(name, "producers"), name, url, count)


def _python(module: str, name: str, url: str, count: int) -> Figure:
    return measure(python(f"{_SUBJECTS}.{module}", name, url, _STREAM, str(count)))


async def _make_empty(url: str, replicas: int, storage: _Storage) -> None:
    """Create the stream anew, with all that producers need."""
    async with ns.connect(url) as js:
        if _STREAM in [name async for name in js.streams.names()]:
            await js.streams.delete(_STREAM)
        await js.streams.create(
            _STREAM, subjects=[f"{_STREAM}.>"], replicas=replicas, storage=storage
        )
        for mode in ("shared", "exclusive"):
            made = await js.producer(_STREAM, "first", mode=mode, update_stream=True)
            await made.detach()
