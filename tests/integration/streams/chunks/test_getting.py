"""Values come back whole, in part and across breaks; what is not right is told, and soon."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from natsstream import connect
from natsstream.errors import ChunksDamagedError, ConfigError, ConsumerNotFoundError, UsageError
from tests.support.chunked import chunk_stream, some_bytes
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.streams.chunks.value import ChunkedValue
    from natsstream.streams.stream import Stream
    from natsstream.testing import NatsNode, NatsServer

pytestmark = pytest.mark.asyncio

DATA = some_bytes(500_001)


async def stored(stream: Stream, data: bytes = DATA, chunk_size: int = 10_000) -> ChunkedValue:
    return await stream.chunks.put(f"{stream.name}.C.a", data, chunk_size=chunk_size)


async def read(stream: Stream, value: ChunkedValue, **part: int) -> bytes:
    async with stream.chunks.open(value, **part) as reader:
        return await reader.read()


async def has_no_consumer(stream: Stream) -> bool:
    return (await stream.info()).state.consumer_count == 0


async def test_a_subject_alone_is_no_value(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    with pytest.raises(ConfigError, match=r"value is 's\.c'") as told:
        stream.chunks.open(cast("ChunkedValue", "s.c"))
    assert "chunks.put(" in told.value.hint


@pytest.mark.smoke
async def test_pieces_and_reads_may_be_mixed(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)
    async with stream.chunks.open(value) as reader:
        assert reader.size == len(DATA)
        got = await reader.read(3)
        assert got == DATA[:3]
        got += await anext(reader)
        assert got == DATA[:10_000]
        assert await reader.read(0) == b""
        got += await reader.read(25_000)
        assert got == DATA[:35_000]
        async for piece in reader:
            got += piece
        assert await reader.read() == b""
    assert got == DATA


async def test_parts_are_what_a_slice_is(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)
    ends = (0, 1, 9_999, 10_000, 10_001, 250_000, 500_000, 500_001, 600_000)
    for offset in ends:
        for length in (0, 1, 10_000, 10_001):
            part = await read(stream, value, offset=offset, length=length)
            assert part == DATA[offset : offset + length], (offset, length)
        assert await read(stream, value, offset=offset) == DATA[offset:], offset


@given(
    pieces=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    offset=st.integers(0, 150),
    length=st.integers(0, 150),
)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_parts_of_what_was_cut_unevenly_are_right(
    server: NatsNode, stream_name: str, pieces: list[int], offset: int, length: int
) -> None:
    """Go's client stores what a pipe gives, in chunks of any size."""
    async with connect(server.url) as js:
        stream = await chunk_stream(js, stream_name)
        await stream.purge()
        data = some_bytes(sum(pieces))
        at = 0
        for size in pieces:
            await stream.publish(f"{stream_name}.C.a", data[at : at + size])
            await stream.publish(f"{stream_name}.C.b", b"another writer")
            at += size
        value = replace(
            await stream.chunks.put(f"{stream_name}.C.c", data), subject=f"{stream_name}.C.a"
        )
        value = replace(value, chunks=len(pieces))

        assert await read(stream, value) == data
        part = await read(stream, value, offset=offset, length=length)
        assert part == data[offset : offset + length]


async def delete_chunk(stream: Stream, number: int) -> None:
    sequences = [m.sequence async for m in stream.read(filters=[f"{stream.name}.C.a"])]
    await stream.delete_message(sequences[number])


@pytest.mark.proves("1e", "digest check")
@pytest.mark.parametrize("number", [0, 20, -1])
async def test_a_missing_chunk_raises_and_does_not_hang(
    js: JetStream, stream_name: str, number: int
) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)
    await delete_chunk(stream, number)

    began = time.monotonic()
    with pytest.raises(ChunksDamagedError) as caught:
        await read(stream, value)
    assert caught.value.kind == "missing"
    assert time.monotonic() - began < 30
    with pytest.raises(ChunksDamagedError):
        await read(stream, value, offset=1, length=value.size)


async def test_nothing_at_all_raises(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)
    await stream.purge()
    for part in ({}, {"offset": 5}, {"offset": 5, "length": 5}):
        with pytest.raises(ChunksDamagedError):
            await read(stream, value, **part)


async def test_surplus_chunks_and_other_bytes_are_told(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)
    with pytest.raises(ChunksDamagedError) as caught:
        await read(stream, replace(value, digest=bytes(32)))
    assert caught.value.kind == "digest"

    await stream.publish(value.subject, b"one more")
    with pytest.raises(ChunksDamagedError) as caught:
        await read(stream, value)
    assert caught.value.kind == "surplus"


async def test_the_last_bytes_of_a_wrong_value_are_not_handed_out(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)
    async with stream.chunks.open(replace(value, digest=bytes(32))) as reader:
        got = await reader.read(len(DATA) - 5_000)
        with pytest.raises(ChunksDamagedError):
            await reader.read()
    assert DATA.startswith(got)


async def test_chunks_that_vanish_while_they_are_read_end_the_read(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream, some_bytes(1 << 20) * 32, 1 << 20)
    async with stream.chunks.open(value) as reader:
        assert await anext(reader)
        await stream.purge()
        with pytest.raises(ChunksDamagedError):
            await reader.read()


async def test_a_reader_that_is_left_leaves_no_consumer(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)
    for part in ({}, {"offset": 100_000}, {"offset": 3, "length": 20}):
        async with stream.chunks.open(value, **part) as reader:
            assert await anext(reader)
        await eventually_async(lambda: has_no_consumer(stream))


async def test_a_cancelled_reader_leaves_no_consumer(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)

    has_begun = asyncio.Event()

    async def stay() -> None:
        async with stream.chunks.open(value) as reader:
            await anext(reader)
            has_begun.set()
            await asyncio.Event().wait()

    staying = asyncio.create_task(stay())
    await has_begun.wait()
    staying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await staying
    await eventually_async(lambda: has_no_consumer(stream))


async def test_a_read_goes_on_when_its_consumer_is_deleted(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    data = some_bytes(32 << 20)
    value = await stored(stream, data, 1 << 20)
    async with stream.chunks.open(value) as reader:
        got = await anext(reader)
        deleted: list[str] = []
        async for name in stream.consumers.names():
            # A read before this one may be just deleting its own.
            with suppress(ConsumerNotFoundError):
                await stream.consumers.delete(name)
                deleted.append(name)
        assert deleted
        assert got + await reader.read() == data


async def test_a_read_goes_on_when_the_server_was_killed(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with connect(fresh_server.url, reconnect_timeout=30) as js:
        stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
        data = some_bytes(32 << 20)
        value = await stored(stream, data, 1 << 20)
        async with stream.chunks.open(value) as reader:
            got = await anext(reader)
            await asyncio.to_thread(fresh_server.kill)
            await asyncio.to_thread(fresh_server.start, deadline_s=30)
            assert got + await reader.read() == data


async def test_a_reader_that_is_closed_does_not_look_like_one_at_its_end(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)
    async with stream.chunks.open(value) as reader:
        await reader.read(5)
    for read_on in (reader.read, reader.__anext__):
        with pytest.raises(UsageError, match="closed"):
            await read_on()


async def test_after_a_cancelled_read_nothing_looks_like_the_end(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)
    async with stream.chunks.open(value) as reader:
        reading = asyncio.create_task(reader.read())
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        for read_on in (reader.read, reader.__anext__):
            with pytest.raises(UsageError, match="cancelled"):
                await read_on()
    await eventually_async(lambda: has_no_consumer(stream))


async def test_damage_is_told_each_time(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)
    await delete_chunk(stream, 20)
    async with stream.chunks.open(value) as reader:
        for read_on in (reader.read, reader.read, reader.__anext__):
            with pytest.raises(ChunksDamagedError):
                await read_on()


async def test_a_second_task_is_refused_and_the_first_goes_on(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream)
    async with stream.chunks.open(value) as reader:
        reading = asyncio.create_task(reader.read())
        await asyncio.sleep(0)
        for other in (reader.read, reader.__anext__, reader.close):
            with pytest.raises(UsageError, match="another task"):
                await other()
        assert await reading == DATA
        assert await reader.read() == b""


async def test_wrong_parts_and_unopened_readers_are_refused(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stored(stream, b"abc")
    for part in ({"offset": -1}, {"length": -1}, {"offset": 1.5}, {"length": "3"}):
        with pytest.raises(ConfigError):
            stream.chunks.open(value, **part)  # pyright: ignore[reportArgumentType]
    reader = stream.chunks.open(value)
    with pytest.raises(UsageError, match="not open"):
        await reader.read()
    for size in (-2, "3", None, 1.5):
        with pytest.raises(ConfigError, match="size"):
            await reader.read(size)  # pyright: ignore[reportArgumentType]
    async with reader:
        pass
    with pytest.raises(UsageError, match="once"):
        await reader.__aenter__()
