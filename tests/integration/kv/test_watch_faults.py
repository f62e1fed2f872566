"""Watches under faults: servers that restart, connections that break, readers that go away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import BucketNotFoundError, NatsStreamError
from natsstream.read import session
from natsstream.testing import FaultProxy, NatsServer
from tests.support.eventually import eventually_async
from tests.support.ordered import delete_consumers
from tests.support.watches import fold, initial, no_consumers_stay, take

if TYPE_CHECKING:
    from natsstream import Entry, JetStream
    from natsstream.kv.key_value import KeyValue
    from natsstream.kv.watch import Watch

pytestmark = pytest.mark.asyncio

KEYS = 200


def restart(server: NatsServer) -> None:
    server.restart()


def crash(server: NatsServer) -> None:
    server.kill()
    server.start()


async def write_on(kv: KeyValue, until: asyncio.Event) -> int:
    """Write keys across breaks until told to stop; returns the last revision."""
    number = 0
    while not until.is_set():
        with suppress(NatsStreamError):
            await kv.put(f"k{number % KEYS}", b"%d" % number)
        number += 1
        await asyncio.sleep(0)
    while True:
        try:
            return await kv.put("end", b"")
        except NatsStreamError as error:
            if not error.retryable:
                raise


async def follow(watch: Watch, *, last: str = "end") -> list[Entry]:
    """Return the entries of a watch up to that of a key."""
    entries: list[Entry] = []
    async for entry in watch:
        entries.append(entry)
        if entry.key == last:
            break
    return entries


async def held(kv: KeyValue) -> dict[str, bytes]:
    return {entry.key: entry.value async for entry in kv.entries()}


@pytest.mark.parametrize("fault", [restart, crash])
async def test_watch_goes_on_across_restarts(
    fresh_server: NatsServer, fault: Callable[[NatsServer], None]
) -> None:
    """Each revision is kept, and so each must come, once and in order."""
    async with connect(fresh_server.url) as js, connect(fresh_server.url) as other:
        kv = await js.kv.create("b", history=64)
        writing = asyncio.Event()
        async with kv.watch() as watch:
            writer = asyncio.ensure_future(write_on(await other.kv.get("b"), writing))
            entries = await take(watch, 100)
            for breaks in range(2):
                await asyncio.to_thread(fault, fresh_server)
                while watch.report.resumes <= breaks:
                    entries += await take(watch, 1)
            writing.set()
            entries += await follow(watch)
        last = await writer
        state = await held(kv)
        kept = [entry.revision async for entry in kv.history()]

    assert [entry.revision for entry in entries] == list(range(1, last + 1))
    assert fold(entries) == state
    assert {entry.revision for entry in entries} >= set(kept)


async def test_watch_goes_on_when_the_connection_is_cut(
    server: NatsServer, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cut among the initial entries and behind them; keys are replaced meanwhile."""
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 8)
    async with connect(server.url) as near:
        writes = await near.kv.create(stream_name, history=2, storage="memory")
        for number in range(KEYS):
            await writes.put(f"k{number}", b"old")
        with FaultProxy(server.port) as proxy:
            async with (
                connect(proxy.url) as js,
                (await js.kv.get(stream_name)).watch() as watch,
            ):
                entries = await take(watch, 20)
                for number in (0, 50, KEYS - 1):
                    proxy.cut()
                    await writes.put(f"k{number}", b"new")
                    proxy.heal()
                    entries += await take(watch, 10)
                entries += await initial(watch)
                assert watch.is_caught_up
                proxy.cut()
                await writes.delete("k7")
                await writes.put("end", b"")
                proxy.heal()
                if entries[-1].key != "end":
                    entries += await follow(watch)
        state = await held(writes)

        assert fold(entries) == state
        await no_consumers_stay(writes)
    revisions = [entry.revision for entry in entries]
    assert revisions == sorted(set(revisions))
    assert watch.report.resumes >= 2


async def test_watch_goes_on_when_its_consumer_is_deleted(js: JetStream, stream_name: str) -> None:
    kv = await js.kv.create(stream_name, history=5, storage="memory")
    await kv.put("a", b"0")

    async with kv.watch() as watch, kv.watch(include_history=True) as history:
        found, both = await initial(watch), await initial(history)
        for number in range(1, 4):
            await delete_consumers(js, kv.stream.name)
            await kv.put("a", b"%d" % number)
            found += await take(watch, 1)
            both += await take(history, 1)

    assert [entry.value for entry in found] == [b"0", b"1", b"2", b"3"]
    assert [entry.value for entry in both] == [b"0", b"1", b"2", b"3"]
    assert watch.report.reasons == {"consumer_deleted": 3}


@pytest.mark.proves("1d", "resume from revision")
async def test_resumed_watch_misses_and_repeats_nothing_across_a_restart(
    fresh_server: NatsServer,
) -> None:
    """Another process goes on where one was: only revision and identity are handed over."""
    async with connect(fresh_server.url) as js:
        kv = await js.kv.create("b", history=10)
        for number in range(10):
            await kv.put(f"k{number % 3}", b"%d" % number)
        async with kv.watch(include_history=True) as watch:
            entries = await take(watch, 4)
            place, identity = watch.revision, watch.created_ns
    await asyncio.to_thread(fresh_server.restart)
    async with connect(fresh_server.url) as js:
        kv = await js.kv.get("b")
        await kv.put("k0", b"10")
        async with kv.watch(resume_after=place, created_ns=identity) as watch:
            entries += await initial(watch)

    assert [entry.revision for entry in entries] == list(range(1, 12))


async def test_memory_bucket_that_a_restart_takes_away_ends_the_watch(
    fresh_server: NatsServer,
) -> None:
    async with connect(fresh_server.url) as js:
        kv = await js.kv.create("b", storage="memory")
        async with kv.watch() as watch:
            await initial(watch)
            waiting = asyncio.ensure_future(anext(watch))
            await asyncio.to_thread(fresh_server.restart)
            with pytest.raises(BucketNotFoundError):
                await waiting


@pytest.mark.sampled_variants
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 8, 13, 21, 34])
async def test_watch_that_is_cancelled_at_any_step_leaves_nothing(
    js: JetStream, stream_name: str, steps: int
) -> None:
    """The task is cancelled after so many turns of the loop: while it opens, reads or closes."""
    kv = await js.kv.create(stream_name, storage="memory")
    for number in range(20):
        await kv.put(f"k{number}", b"x")
    tasks = len(asyncio.all_tasks())

    async def read() -> None:
        async with kv.watch() as watch:
            async for _ in watch:
                pass

    for extra in range(4):
        task = asyncio.ensure_future(read())
        for _ in range(steps * 4 + extra):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    await no_consumers_stay(kv)
    assert len(asyncio.all_tasks()) == tasks


async def test_cancelled_wait_loses_no_entry(js: JetStream, stream_name: str) -> None:
    kv = await js.kv.create(stream_name, history=64, storage="memory")
    found: list[int] = []

    async def write() -> None:
        for number in range(60):
            await kv.put("a", b"%d" % number)

    async with kv.watch() as watch:
        writer = asyncio.ensure_future(write())
        while len(found) < 60:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.0005):
                    found.append((await anext(watch)).revision)
        await writer

    assert found == list(range(1, 61))


async def test_slow_reader_holds_no_more_than_its_window(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that stands still gets 8 messages; the server keeps the others, and its place."""
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 8)
    kv = await js.kv.create(stream_name, history=64, storage="memory")
    kept = 0
    async with kv.watch() as watch:
        for number in range(60):
            await kv.put("a", b"%d" % number)

        async def all_are_counted() -> bool:
            # The server tells its consumers of a message behind the ack.
            nonlocal kept
            (info,) = [info async for info in kv.stream.consumers.list()]
            kept = info.num_pending
            return kept + info.delivered.consumer_seq == 60

        await eventually_async(all_are_counted, within_s=30)
        entries = await take(watch, 60)

    assert kept >= 60 - 2 * 8
    assert [entry.revision for entry in entries] == list(range(1, 61))
    await no_consumers_stay(kv)
