"""Integration tests of writers, locks, copies and workers that are cancelled again and again.

However often and whenever that is, nothing of them is left half done: no consumer, subscription or
task, no open batch, no half copy, no held lock, no chunk that no object has.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import (
    ChunksDamagedError,
    NatsStreamError,
    ObjectNotFoundError,
    StreamExistsError,
    StreamNotFoundError,
)
from tests.support.cancels import cancel
from tests.support.eventually import eventually_async
from tests.support.pulling import subscriptions
from tests.support.streams import consumer_count, fill, server_subscriptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from pathlib import Path

    from natsstream import DeliveredMessage, JetStream, Stream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

ROUNDS = 60
# The most batches of one stream that nats-server 2.15 keeps open.
OPEN_MAX = {"atomic": 50, "fast": 1_000}
COPIES = 15
LOCK_TTL_S = 600
BATCH = 3
OBJECT_BYTES = 300_000
CHUNK_BYTES = 100_000


async def atomic(js: JetStream, name: str) -> None:
    async with (await js.streams.get(name)).batch() as batch:
        for _ in range(BATCH):
            await batch.add(f"{name}.atomic", b"x")
        await batch.commit()


async def ingest(js: JetStream, name: str) -> None:
    async with (await js.streams.get(name)).ingest() as fast:
        for _ in range(50):
            await fast.send(f"{name}.fast", b"x")


async def publisher(js: JetStream, name: str) -> None:
    async with js.publisher(retry_for=5) as sender:
        for _ in range(50):
            await sender.send(f"{name}.many", b"x")


async def lock(js: JetStream, name: str) -> None:
    async with (await js.kv.get(name)).lock("l", ttl=LOCK_TTL_S):
        await asyncio.sleep(0)


async def contended(js: JetStream, name: str) -> None:
    kv = await js.kv.get(name)
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(hold(kv))


async def hold(kv: Any) -> None:
    async with kv.lock("l", ttl=LOCK_TTL_S):
        await asyncio.sleep(0)


async def election(js: JetStream, name: str) -> None:
    async with (await js.kv.get(name)).election("l", ttl=LOCK_TTL_S).lead() as term:
        await term.put("k", b"1")


async def mirror(js: JetStream, name: str) -> None:
    async with (await js.kv.get(name)).cached() as cached:
        await cached.put("a", b"2")


async def put(js: JetStream, name: str) -> None:
    await (await js.objects.get(name)).put("one", bytes(OBJECT_BYTES), chunk_size=CHUNK_BYTES)


async def get(js: JetStream, name: str) -> None:
    with suppress(ObjectNotFoundError):
        await (await js.objects.get(name)).get("one")


async def work(js: JetStream, name: str) -> None:
    async def handle(_: DeliveredMessage) -> None:
        await asyncio.sleep(0)

    consumer = await (await js.streams.get(name)).consumers.get("pull")
    async with consumer.worker(handle, concurrency=4, dead_letter=f"{name}_DLQ"):
        await asyncio.sleep(0.01)


async def next_one(js: JetStream, name: str) -> None:
    await (await (await js.streams.get(name)).consumers.get("pull")).next(timeout=0.2)


async def make(js: JetStream, name: str) -> list[Any]:
    """Make what is written to; returns the streams."""
    stream = await fill(js, name, 20, subjects=[f"{name}.*"], allow_atomic=True, allow_batched=True)
    await stream.consumers.create("pull", durable=True)
    letters = await js.dead_letters.ensure(f"{name}_DLQ")
    bucket = await js.kv.create(name, limit_marker_ttl=1)
    await bucket.put("a", b"1")
    box = await js.objects.create(name)
    await box.put("one", bytes(OBJECT_BYTES), chunk_size=CHUNK_BYTES)
    names = (letters.name, f"KV_{name}", f"OBJ_{name}")
    return [stream, *[await js.streams.get(each) for each in names]]


async def is_whole(js: JetStream, name: str) -> bool:
    """Tell whether no batch is stored in part, no lock is held, and each chunk has its object."""
    stream = await js.streams.get(name)
    stored = {each.subject: each.messages async for each in stream.subject_counts(f"{name}.atomic")}
    if stored.get(f"{name}.atomic", 0) % BATCH:
        return False
    if await (await js.kv.get(name)).get("l", consistent=True) is not None:
        return False
    info = await (await js.streams.get(f"OBJ_{name}")).info()
    with suppress(ChunksDamagedError):
        await (await js.objects.get(name)).get("one")
        return info.state.messages == OBJECT_BYTES // CHUNK_BYTES + 1
    return False


def partial_folders(path: Path) -> list[Path]:
    """Return what backups that did not end have left."""
    return list(path.glob(".*"))


async def duration_s(call: Awaitable[object]) -> float:
    """Return how many seconds a call takes that nobody cancels."""
    began = time.monotonic()
    async with asyncio.timeout(30):
        await call
    return time.monotonic() - began


WAYS = [atomic, ingest, publisher, lock, contended, election, mirror, put, get, work, next_one]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("way", WAYS)
async def test_a_writer_that_is_cancelled_any_number_of_times_leaves_nothing_half_done(
    server: NatsNode, stream_name: str, way: Callable[[JetStream, str], Awaitable[None]]
) -> None:
    random = Random(way.__name__)  # noqa: S311 - it draws moments.
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    async with connect(server.url, name=stream_name) as js:
        streams = await make(js, stream_name)
        consumers = [await consumer_count(stream) for stream in streams]
        before, tasks = subscriptions(js), len(asyncio.all_tasks())
        listened = await asyncio.to_thread(server_subscriptions, server, stream_name)
        within_s = await duration_s(way(js, stream_name))
        for _ in range(ROUNDS):
            await cancel(asyncio.ensure_future(way(js, stream_name)), random, within_s=within_s)

        async def is_clean() -> bool:
            held = [await consumer_count(stream) for stream in streams]
            is_alone = len(asyncio.all_tasks()) == tasks
            is_quiet = subscriptions(js) == before and is_alone
            return held == consumers and is_quiet and await is_whole(js, stream_name)

        async def is_silent() -> bool:
            now = await asyncio.to_thread(server_subscriptions, server, stream_name)
            return now == listened

        await eventually_async(is_clean)
        await eventually_async(is_silent)
        await duration_s(way(js, stream_name))  # It still works.
    assert not unseen


@pytest.mark.sampled_variants
@pytest.mark.parametrize("kind", ["atomic", "fast"])
async def test_batches_that_are_cancelled_any_number_of_times_take_no_place_on_the_server(
    server: NatsNode, stream_name: str, kind: str
) -> None:
    """The server would count an open batch for 10 s, and refuse one beyond its limit."""
    random = Random(kind)  # noqa: S311 - it draws moments.
    way = atomic if kind == "atomic" else ingest
    async with connect(server.url) as js:
        stream = (await make(js, stream_name))[0]
        within_s = await duration_s(way(js, stream_name))
        for _ in range(ROUNDS):
            await cancel(asyncio.ensure_future(way(js, stream_name)), random, within_s=within_s)
        async with AsyncExitStack() as stack:
            for _ in range(OPEN_MAX[kind]):
                if kind == "atomic":
                    batch = await stack.enter_async_context(stream.batch())
                    await batch.add(f"{stream_name}.open", b"x")
                else:
                    fast = await stack.enter_async_context(stream.ingest())
                    await fast.send(f"{stream_name}.open", b"x")


async def test_a_copy_that_is_cancelled_any_number_of_times_is_whole_or_absent(
    server: NatsNode, stream_name: str
) -> None:
    random, copy = Random(0), f"{stream_name}_copy"  # noqa: S311 - it draws moments.
    async with connect(server.url) as js:
        await fill(js, stream_name, 50)

        def copying() -> Coroutine[Any, Any, object]:
            subjects = [f"{copy}.>"]
            return js.streams.copy(stream_name, copy, subjects=subjects, messages=True)

        within_s = await duration_s(copying())
        await js.streams.delete(copy)
        for _ in range(COPIES):
            await cancel(asyncio.ensure_future(copying()), random, within_s=within_s)
            with suppress(NatsStreamError):
                found = await (await js.streams.get(copy)).info()
                assert (found.config.mirror, found.state.messages) == (None, 50)
                await js.streams.delete(copy)


async def test_a_backup_or_restore_that_is_cancelled_any_number_of_times_leaves_nothing(
    server: NatsNode, stream_name: str, tmp_path: Path
) -> None:
    random, other = Random(0), f"{stream_name}_again"  # noqa: S311 - it draws moments.
    async with connect(server.url) as js:
        stream = await fill(js, stream_name, 200, size=2_000)
        whole = tmp_path / "whole"

        def restoring() -> Coroutine[Any, Any, Stream]:
            return js.streams.restore(whole, name=other, subjects=[f"{other}.>"])

        async def is_restored() -> bool:
            # The server shows a stream while it still builds it.
            return (await (await js.streams.get(other)).info()).state.messages == 200

        backup_s = await duration_s(stream.backup(whole))
        restore_s = await duration_s(restoring())
        await js.streams.delete(other)
        before, tasks = subscriptions(js), len(asyncio.all_tasks())
        for index in range(COPIES):
            folder = tmp_path / str(index)
            await cancel(asyncio.ensure_future(stream.backup(folder)), random, within_s=backup_s)
            assert not partial_folders(tmp_path)
            await cancel(asyncio.ensure_future(restoring()), random, within_s=restore_s)
            with suppress(StreamNotFoundError):
                await js.streams.get(other)
                await eventually_async(is_restored)
                await js.streams.delete(other)

        async def is_quiet() -> bool:
            return subscriptions(js) == before and len(asyncio.all_tasks()) == tasks

        await eventually_async(is_quiet)
        with suppress(StreamExistsError):  # One that was cancelled at its very end came late.
            await restoring()
        await eventually_async(is_restored)
