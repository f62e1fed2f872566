"""No read of a value gives a byte that was not proved to be at that offset."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from natsstream import connect
from natsstream.errors import ChunksDamagedError
from natsstream.streams.chunks.value import ChunkedValue
from tests.support.chunked import chunk_stream, some_bytes

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.streams.chunks.getting import ChunkReader
    from natsstream.streams.stream import Stream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

SIZE = 10_000
# Larger than what is held until the digest of the whole is known.
DATA = some_bytes(50 * SIZE + 1)


async def stored(stream: Stream, name: str, data: bytes, sizes: list[int]) -> ChunkedValue:
    """Store a value as other clients do that cut it by their own sizes."""
    subject, at = f"{stream.name}.C.{name}", 0
    for size in sizes:
        await stream.publish(subject, data[at : at + size])
        at += size
    return ChunkedValue(subject=subject, size=len(data), chunks=len(sizes))


async def sequences(stream: Stream, value: ChunkedValue) -> list[int]:
    return [m.sequence async for m in stream.read(filters=[value.subject])]


async def read_until_it_ends(reader: ChunkReader) -> tuple[bytes, bool]:
    """Return the bytes that a reader gave, and whether it came to its end."""
    got = bytearray()
    try:
        async for piece in reader:
            got += piece
    except ChunksDamagedError:
        return bytes(got), False
    return bytes(got), True


@pytest.mark.parametrize("gone", [[3], [0], [0, 1], [2], [9]])
async def test_a_part_of_a_value_with_a_hole_gives_no_other_bytes(
    js: JetStream, stream_name: str, gone: list[int]
) -> None:
    """Chunks that were deleted, or that expired first, must not make room for those behind."""
    stream = await chunk_stream(js, stream_name)
    data = some_bytes(10 * SIZE)
    value = await stream.chunks.put(f"{stream_name}.C.a", data, chunk_size=SIZE)
    held = await sequences(stream, value)
    for index in gone:
        await stream.delete_message(held[index])

    for offset, length in ((25_000, 20_000), (0, 10), (5, 30_000), (95_000, 10)):
        async with stream.chunks.open(value, offset=offset, length=length) as reader:
            got, _ = await read_until_it_ends(reader)
        assert data[offset : offset + length].startswith(got), (offset, length)


async def test_pieces_before_the_end_are_those_of_their_offset(
    js: JetStream, stream_name: str
) -> None:
    """The whole is verified at its end; that is too late for pieces that were handed out."""
    stream = await chunk_stream(js, stream_name)
    value = await stream.chunks.put(f"{stream_name}.C.a", DATA, chunk_size=SIZE)
    await stream.delete_message((await sequences(stream, value))[3])
    async with stream.chunks.open(value) as reader:
        got, is_ended = await read_until_it_ends(reader)
    assert DATA.startswith(got)
    assert not is_ended


async def _case(stream: Stream, rng: random.Random, name: str) -> None:
    """Store a value in some way, damage it or not, and read parts of it."""
    data = some_bytes(rng.choice((1, 500, 3_000)), seed=rng.randrange(1 << 30))
    size = rng.choice((100, 250, 333))
    others: list[str] = []
    if rng.random() < 0.5:
        others = [f"{stream.name}.M.x"] * rng.randint(1, 40)

    async def cut() -> list[int]:
        sizes: list[int] = []
        while (left := len(data) - sum(sizes)) > 0:
            sizes.append(min(left, rng.randint(1, size)))
        return sizes

    async def disturb() -> None:
        for subject in others:
            await stream.publish(subject, b"of another writer")

    subject = f"{stream.name}.C.{name}"
    if rng.random() < 0.6:
        putting = stream.chunks.put(subject, data, chunk_size=size)
    else:
        putting = stored(stream, name, data, await cut())
    value, _ = await asyncio.gather(putting, disturb())
    held = await sequences(stream, value)
    is_damaged = False
    if rng.random() < 0.6:
        first = rng.randrange(len(held))
        # In a row from the beginning, as they expire, or anywhere.
        gone = held[: first + 1] if rng.random() < 0.3 else rng.sample(held, min(2, len(held)))
        for sequence in gone:
            await stream.delete_message(sequence)
        is_damaged = True
    for _ in range(4):
        offset, length = rng.randrange(len(data) + 5), rng.choice((1, 90, 700, 3_000))
        expected = data[offset : offset + length]
        during = rng.random() < 0.2 and not is_damaged
        async with stream.chunks.open(value, offset=offset, length=length) as reader:
            first_piece = b""
            if during:
                first_piece = await reader.read(1)
                await stream.delete_message(rng.choice(held))
                is_damaged = True
            got, is_ended = await read_until_it_ends(reader)
            got = first_piece + got
        assert expected.startswith(got), (offset, length)
        assert not is_ended or got == expected
        assert is_ended or is_damaged, "a value that is all there can be read"


@pytest.mark.sampled_variants
@pytest.mark.parametrize("seed", range(6))
async def test_parts_give_the_bytes_of_their_offset_or_raise(
    js: JetStream, stream_name: str, seed: int
) -> None:
    stream = await chunk_stream(js, stream_name)
    rng = random.Random(seed)  # noqa: S311 - No secret: the same in each run.
    for number in range(12):
        await _case(stream, rng, str(number))


@pytest.mark.sampled_variants
@pytest.mark.parametrize("seed", range(2))
async def test_parts_of_replicated_values_are_those_of_their_offset(
    cluster_js: JetStream, stream_name: str, seed: int
) -> None:
    """Consumers come to any of three servers, some of which may lag behind."""
    stream = await chunk_stream(cluster_js, stream_name, replicas=3)
    rng = random.Random(seed)  # noqa: S311 - No secret: the same in each run.
    for number in range(3):
        await _case(stream, rng, str(number))


async def requests_for(server: NatsServer, stream: Stream, value: ChunkedValue, offset: int) -> int:
    """Return how many messages the server got for one small part."""

    def count() -> int:
        with urlopen(f"{server.monitor_url}/varz") as answer:  # noqa: S310 - The test's own server.
            return json.load(answer)["in_msgs"]

    before = await asyncio.to_thread(count)
    async with stream.chunks.open(value, offset=offset, length=10) as reader:
        assert await reader.read() == DATA[offset : offset + 10]
    return await asyncio.to_thread(count) - before


async def test_a_small_part_costs_no_more_of_a_large_value(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url) as js:
        stream = await chunk_stream(js, "S")
        few = await stream.chunks.put("S.C.few", DATA, chunk_size=SIZE)
        many = await stream.chunks.put("S.C.many", DATA, chunk_size=SIZE // 50)
        await requests_for(fresh_server, stream, few, 5)

        costs = [
            await requests_for(fresh_server, stream, value, offset)
            for value in (few, many)
            for offset in (0, len(DATA) // 2, len(DATA) - 10)
        ]
        assert max(costs) - min(costs) <= 5  # Deletions of consumers are not waited for.

        writers = [
            stream.chunks.put(f"S.C.{each}", DATA, chunk_size=SIZE // 50) for each in range(4)
        ]
        amid, *_ = await asyncio.gather(*writers)
        assert await requests_for(fresh_server, stream, amid, len(DATA) // 2) < 20 * max(costs)


async def test_sizes_that_the_writer_did_not_keep_are_told(js: JetStream, stream_name: str) -> None:
    """A writer's chunk size is checked on each chunk that is returned."""
    stream = await chunk_stream(js, stream_name)
    data = some_bytes(100)
    value = replace(await stored(stream, "a", data, [40, 20, 30, 10]), chunk_size=30)
    for offset, length in ((0, 10), (30, 10), (45, 30)):
        with pytest.raises(ChunksDamagedError):
            async with stream.chunks.open(value, offset=offset, length=length) as reader:
                await reader.read()
    async with stream.chunks.open(value) as reader:
        assert await reader.read() == data
    async with stream.chunks.open(replace(value, chunk_size=40), offset=45) as reader:
        assert await reader.read() == data[45:]
