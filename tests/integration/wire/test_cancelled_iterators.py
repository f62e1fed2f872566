"""Public iterators after a cancelled wait: no item is missing, and none of them ends early.

Each is read twice: once without a cancellation, and once with two before each item.
"""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

import natsstream as ns
from tests.integration.wire.test_hostile_text import public_classes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable

    from natsstream.testing import NatsServer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]


class World:
    """An account with a little of everything."""

    def __init__(self, js: ns.JetStream) -> None:
        self.js = js

    async def fill(self) -> None:
        """Make and fill it."""
        js = self.js
        self.stream = await js.streams.ensure("S", subjects=["s.>"], allow_msg_schedules=True)
        for number in range(20):
            await self.stream.publish(f"s.{number}", b"%d" % number)
        later = ns.Schedule.at(datetime.now(UTC) + timedelta(days=1), target="s.later")
        for number in range(3):
            await js.publish(f"s.when.{number}", b"x", schedule=later)
            await self.stream.consumers.ensure(f"c{number}")
            await js.kv.ensure(f"b{number}")
            await js.objects.ensure(f"o{number}")
        self.bucket = await js.kv.ensure("K", history=3)
        self.store = await js.objects.ensure("O")
        for number in range(6):
            await self.bucket.put(f"k{number % 4}", b"%d" % number)
            await self.store.put(f"n{number}", b"%d" % number)
        await js.counters.ensure("C", subjects=["c.>"])
        for number in range(3):
            await js.counters.incr(f"c.{number}", 1)
        queue = await js.dead_letters.ensure("D")
        self.letters = queue
        consumer = await self.stream.consumers.ensure("work", filters=["s.0", "s.1"])
        await consumer.run(_reject, dead_letter="D", until_empty=True)
        self.core = await js.astream("hub")
        for number in range(5):
            await self.core.publish(number)

    async def watching(self, method: str) -> AsyncGenerator[Any]:
        """Read an iterator of an open watch."""
        async with self.bucket.watch(include_history=True) as watch:
            yield getattr(watch, method)(**_ends(method))

    async def tailing(self, method: str) -> AsyncGenerator[Any]:
        """Read an iterator of an ordered consumer."""
        async with self.stream.ordered() as tail:
            yield getattr(tail, method)(**_ends(method))

    async def watching_objects(self, method: str) -> AsyncGenerator[Any]:
        """Read an iterator of a watch of objects."""
        async with self.store.watch() as watch:
            yield getattr(watch, method)()


def _ends(method: str) -> dict[str, bool]:
    return {"until_caught_up": True} if method == "batches" else {}


async def _reject(_: ns.DeliveredMessage) -> None:
    raise ns.Reject("no")


ENDING: dict[str, Callable[[World], AsyncIterable[Any]]] = {
    "stream.read": lambda w: w.stream.read(),
    "stream.read with a filter": lambda w: w.stream.read(filters=["s.*"]),
    "stream.read.runs": lambda w: w.stream.read().runs(),
    "stream.read.batches": lambda w: w.stream.read().batches(["sequence"]),
    "stream.subject_counts": lambda w: w.stream.subject_counts(),
    "stream.consumers.names": lambda w: w.stream.consumers.names(),
    "stream.consumers.list": lambda w: w.stream.consumers.list(),
    "stream.schedules.list": lambda w: w.stream.schedules.list(["s.when.*"]),
    "streams.names": lambda w: w.js.streams.names(),
    "streams.list": lambda w: w.js.streams.list(),
    "counters.list": lambda w: w.js.counters.list(),
    "kv.names": lambda w: w.js.kv.names(),
    "kv.list": lambda w: w.js.kv.list(),
    "bucket.keys": lambda w: w.bucket.keys(),
    "bucket.entries": lambda w: w.bucket.entries(),
    "bucket.history": lambda w: w.bucket.history(),
    "bucket.revisions": lambda w: w.bucket.revisions(),
    "objects.names": lambda w: w.js.objects.names(),
    "objects.list": lambda w: w.js.objects.list(),
    "store.names": lambda w: w.store.names(),
    "store.list": lambda w: w.store.list(),
    "dead_letters.list": lambda w: w.letters.list(),
    "astream.get_all": lambda w: w.core.get_all(),
}
OPENED: dict[str, Callable[[World], AsyncGenerator[Any]]] = {
    "watch.initial": lambda w: w.watching("initial"),
    "watch.batches": lambda w: w.watching("batches"),
    "ordered.initial": lambda w: w.tailing("initial"),
    "ordered.batches": lambda w: w.tailing("batches"),
    "object_watch.initial": lambda w: w.watching_objects("initial"),
}


async def patiently(items: AsyncIterable[Any]) -> list[str]:
    return [each async for item in items for each in shown(item)]


async def impatiently(items: AsyncIterable[Any]) -> list[str]:
    """Read while each item is waited for three times, twice for a moment."""
    found: list[str] = []
    iterator: AsyncIterator[Any] = aiter(items)
    while True:
        for turns in (1, 2, None):
            task = asyncio.ensure_future(anext(iterator, None))
            if turns is not None:
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
            try:
                item = await task
            except asyncio.CancelledError:
                continue
            if item is None:
                return found
            found += shown(item)
            break


BOTH = (patiently, impatiently)


def shown(item: object) -> list[str]:
    """Return what distinguishes an item, or each one of a list, wherever lists are cut."""
    if hasattr(item, "to_pylist"):
        item = cast("Any", item).to_pylist()
    if isinstance(item, list):
        return [text for each in cast("list[object]", item) for text in shown(each)]
    if isinstance(item, ns.StreamInfo | ns.ConsumerInfo | ns.BucketStatus | ns.ObjectStoreStatus):
        return [item.name]  # Not the moment of the answer.
    if isinstance(item, ns.Message):
        return [f"{item.sequence} {item.data!r}"]
    return [repr(item)]


async def test_impatient_readers_get_what_patient_ones_get(fresh_server: NatsServer) -> None:
    async with ns.connect(fresh_server.url) as js:
        world = World(js)
        await world.fill()
        wrong: list[str] = []
        for name, make in ENDING.items():
            whole = await patiently(make(world))
            assert whole, f"{name} has nothing to read"
            if await impatiently(make(world)) != whole:
                wrong.append(name)
        for name, make in OPENED.items():
            readings = [[await how(items) async for items in make(world)] for how in BOTH]
            assert readings[0][0], f"{name} has nothing to read"
            if readings[0] != readings[1]:
                wrong.append(name)
        assert wrong == []


async def test_live_iterators_go_on_with_the_next_change(fresh_server: NatsServer) -> None:
    async with ns.connect(fresh_server.url) as js:
        bucket = await js.kv.ensure("K")
        stream = await js.streams.get("KV_K")
        async with bucket.cached() as mirror, stream.ordered() as tail, stream.ordered() as other:
            election = bucket.election("e", candidate="c", ttl=10)
            live: dict[str, AsyncIterator[Any]] = {
                "mirror.changes": mirror.changes(),
                "ordered": tail,
                "ordered.batches": other.batches(),
                "election.changes": election.changes(),
            }
            for name, items in live.items():
                for turns in range(3):
                    waiting = asyncio.ensure_future(anext(items))
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    waiting.cancel()
                    await asyncio.wait([waiting])
                    assert waiting.cancelled(), name
            await bucket.put("e", b"someone")
            for name, items in live.items():
                assert await anext(items), name


async def test_no_public_iterator_is_a_plain_generator() -> None:
    plain = [
        f"{kind.__name__}.{name}"
        for kind in public_classes()
        for name, member in inspect.getmembers_static(kind)
        if (inspect.isasyncgenfunction(member) and not name.startswith("_"))
        or (name == "__aiter__" and inspect.isasyncgenfunction(member))
    ]
    assert plain == []
