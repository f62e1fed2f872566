"""Findings 8 and 33: chunks that are not there, and what many of them cost.

8: `get` of nats-py 2.16 waits for a missing chunk for ever. 33: it copies all that it has for every
chunk that comes, and `put` waits for the answer to each chunk before it sends the next.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import ChunksDamagedError
from natsstream.testing import FaultProxy
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from natsstream import JetStream, ObjectStore
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

CHUNK = 131_072
DATA = bytes(range(256)) * (4 * CHUNK // 256) + b"end"
# Far above what a get of five chunks takes; nats-py has no limit.
GET_TIMEOUT_S = 30
LIMIT_S = 30.0


async def stored(js: JetStream, nats_py: Any, name: str) -> tuple[ObjectStore, list[int], str]:
    """Return a store with an object of nats-py, the sequences of its chunks, and their subject."""
    theirs = await nats_py.jetstream(timeout=30).create_object_store(name)
    info = await theirs.put("o", DATA)
    box = await js.objects.get(name)
    stream = await js.streams.get(f"OBJ_{name}")
    subject = f"$O.{name}.C.{info.nuid}"
    return box, [message.sequence async for message in stream.read(filters=[subject])], subject


async def by_get(box: ObjectStore) -> object:
    """Get the whole object."""
    return await box.get("o")


async def by_open(box: ObjectStore) -> object:
    """Read the object piece by piece."""
    async with box.open("o") as reader:
        return [piece async for piece in reader]


@pytest.mark.finding(8)
@pytest.mark.parametrize("read", [by_get, by_open], ids=lambda f: f.__name__)
@pytest.mark.parametrize("index", [0, 2, -1], ids=["first", "middle", "last"])
async def test_missing_chunk_is_an_error_and_no_wait(
    js: JetStream,
    nats_py: Any,
    stream_name: str,
    read: Callable[[ObjectStore], Awaitable[object]],
    index: int,
) -> None:
    box, sequences, subject = await stored(js, nats_py, stream_name)
    await (await js.streams.get(f"OBJ_{stream_name}")).delete_message(sequences[index])

    with pytest.raises(ChunksDamagedError) as damaged:
        async with asyncio.timeout(GET_TIMEOUT_S):
            await read(box)

    assert (damaged.value.kind, damaged.value.subject) == ("missing", subject)


@pytest.mark.finding(8)
async def test_purged_chunks_are_an_error_and_no_wait(
    js: JetStream, nats_py: Any, stream_name: str
) -> None:
    box, _, subject = await stored(js, nats_py, stream_name)
    await (await js.streams.get(f"OBJ_{stream_name}")).purge(subject=subject)

    with pytest.raises(ChunksDamagedError):
        async with asyncio.timeout(GET_TIMEOUT_S):
            await box.get("o")


@pytest.mark.finding(8)
async def test_chunks_of_another_writer_are_no_part_of_an_object(
    js: JetStream, nats_py: Any, stream_name: str
) -> None:
    box, _, subject = await stored(js, nats_py, stream_name)
    await js.publish(subject, b"surplus")

    with pytest.raises(ChunksDamagedError):
        async with asyncio.timeout(GET_TIMEOUT_S):
            await box.get("o")


async def cpu_seconds(box: ObjectStore, name: str) -> float:
    """Return the least CPU time of three gets; others on the machine do not count in it."""
    taken: list[float] = []
    for _ in range(3):
        before = time.process_time()
        await box.get(name)
        taken.append(time.process_time() - before)
    return min(taken)


@pytest.mark.proves("1e", "get stream / bytes / file")
@pytest.mark.finding(33)
async def test_get_costs_what_the_size_says(js: JetStream, stream_name: str) -> None:
    """16 times the bytes cost about 16 times the work, where the square would be 256 times."""
    box = await js.objects.create(stream_name, storage="memory")
    for name, chunks in (("small", 16), ("large", 256)):
        await box.put(name, bytes(chunks * CHUNK))

    small, large = await cpu_seconds(box, "small"), await cpu_seconds(box, "large")

    assert large < 64 * small


@pytest.mark.finding(33)
async def test_put_does_not_wait_for_each_chunk(
    server: NatsNode, js: JetStream, stream_name: str
) -> None:
    """While no answer comes through, more and more chunks are stored."""
    await js.objects.create(stream_name, storage="memory")
    stream = await js.streams.get(f"OBJ_{stream_name}")
    is_silent = asyncio.Event()

    async def are_stored(count: int) -> bool:
        return (await stream.info()).state.messages >= count

    async def source() -> AsyncGenerator[bytes]:
        for number in range(64):
            if number == 2:  # By now `put` has all answers that it needs before the chunks.
                await is_silent.wait()
            yield bytes(CHUNK)

    with FaultProxy(server.port) as proxy:
        async with connect(proxy.url, request_timeout=LIMIT_S) as slow:
            box = await slow.objects.get(stream_name)
            putting = asyncio.ensure_future(box.put("o", source()))
            await eventually_async(lambda: are_stored(1), within_s=LIMIT_S)
            proxy.stall(direction="to_client")
            is_silent.set()
            await eventually_async(lambda: are_stored(48), within_s=LIMIT_S)
            assert not putting.done()
            proxy.heal()
            assert (await putting).chunks == 64
            assert await box.get("o") == bytes(64 * CHUNK)
