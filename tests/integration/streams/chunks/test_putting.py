"""Values go into a stream from whatever gives bytes, and a put that fails leaves nothing."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import threading
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import (
    ChunksDamagedError,
    ConfigError,
    StreamFullError,
    SubjectError,
    WrongStreamError,
)
from tests.support.chunked import Slow, chunk_stream, held, some_bytes
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from natsstream import JetStream
    from natsstream.streams.chunks.sources import Source

pytestmark = pytest.mark.asyncio

DATA = some_bytes(1_000_001)


async def pieces_of(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def sources(path: Path) -> Iterator[tuple[str, Source]]:
    path.write_bytes(DATA)
    yield "bytes", DATA
    yield "bytearray", bytearray(DATA)
    yield "memoryview", memoryview(DATA)
    yield "path", path
    yield "file", io.BytesIO(DATA)
    yield "list", [DATA[:7], b"", DATA[7:500_000], DATA[500_000:]]
    yield "async", pieces_of(DATA, 4_321)


@pytest.mark.proves("1e", "put stream / bytes / string / file")
async def test_every_source_gives_the_same_bytes(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await chunk_stream(js, stream_name)
    for kind, source in sources(tmp_path / "a"):
        value = await stream.chunks.put(f"{stream_name}.C.{kind}", source, chunk_size=65_536)

        assert (value.size, value.chunks) == (len(DATA), 16), kind
        assert value.digest == hashlib.sha256(DATA).digest(), kind
        async with stream.chunks.open(value) as reader:
            assert await reader.read() == DATA, kind


@pytest.mark.proves("1e", "chunk size / headers / metadata / TTL / compression")
async def test_all_chunks_but_the_last_have_the_same_size(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    await stream.chunks.put(f"{stream_name}.C.a", pieces_of(DATA, 99), chunk_size=300_000)

    sizes = [len(message.data) async for message in stream.read()]
    assert sizes == [300_000, 300_000, 300_000, 100_001]


async def test_nothing_is_a_value_without_chunks(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    value = await stream.chunks.put(f"{stream_name}.C.a", b"")

    assert (value.size, value.chunks) == (0, 0)
    async with stream.chunks.open(value) as reader:
        assert await reader.read() == b""


async def test_progress_tells_what_is_stored(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    told: list[tuple[int, int | None]] = []
    subject = f"{stream_name}.C.a"
    await stream.chunks.put(
        subject, DATA, chunk_size=65_536, progress=lambda done, total: told.append((done, total))
    )

    done = [each for each, _ in told]
    assert done == sorted(done)
    assert told[-1] == (len(DATA), len(DATA))


async def test_a_source_that_fails_leaves_nothing(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)

    async def broken() -> AsyncIterator[bytes]:
        yield DATA
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        await stream.chunks.put(f"{stream_name}.C.a", broken(), chunk_size=65_536)
    assert await held(stream) == {}


async def test_a_cancelled_put_leaves_nothing(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    source = Slow([DATA])
    task = asyncio.create_task(
        stream.chunks.put(f"{stream_name}.C.a", source.__aiter__(), chunk_size=65_536)
    )
    await source.has_given.wait()
    await eventually_async(lambda: held(stream))
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await held(stream) == {}


async def test_a_progress_that_raises_ends_the_put(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)

    def no(_done: int, _total: int | None) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        await stream.chunks.put(f"{stream_name}.C.a", DATA, chunk_size=65_536, progress=no)
    assert await held(stream) == {}


async def test_a_full_stream_refuses_and_keeps_nothing(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    await js.streams.update(stream_name, max_bytes=300_000)

    with pytest.raises(StreamFullError):
        await stream.chunks.put(f"{stream_name}.C.a", DATA, chunk_size=65_536)
    assert await held(stream) == {}


async def test_chunks_of_another_stream_are_refused(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    other = await js.streams.create(f"{stream_name}-2", subjects=[f"{stream_name}-2.>"])

    with pytest.raises(WrongStreamError):
        await stream.chunks.put(f"{stream_name}-2.C.a", DATA)
    assert (await stream.info()).state.messages == 0
    await other.delete()


async def test_a_foreign_writer_on_the_subject_is_noticed(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    source = Slow([DATA], [DATA])
    subject = f"{stream_name}.C.a"
    task = asyncio.create_task(stream.chunks.put(subject, source.__aiter__(), chunk_size=65_536))
    await source.has_given.wait()
    await stream.publish(subject, b"not ours")
    source.go_on.set()

    with pytest.raises(ChunksDamagedError, match="not what was sent"):
        await task
    assert await held(stream) == {}


async def test_other_writers_of_the_stream_do_not_matter(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)

    async def put(number: int) -> None:
        data = some_bytes(700_000, seed=number)
        value = await stream.chunks.put(f"{stream_name}.C.{number}", data, chunk_size=30_000)
        async with stream.chunks.open(value) as reader:
            assert await reader.read() == data

    await asyncio.gather(*(put(number) for number in range(5)))


async def test_a_pipe_that_blocks_does_not_hold_the_loop_up(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    out, into = os.pipe()
    with os.fdopen(out, "rb", buffering=0) as reading:
        subject = f"{stream_name}.C.a"
        task = asyncio.create_task(stream.chunks.put(subject, reading, chunk_size=1_000))
        # The loop answers this while the thread waits for the pipe.
        assert await stream.info() is not None
        assert not task.done()

        def write() -> None:
            with os.fdopen(into, "wb") as writing:
                writing.write(DATA)

        thread = threading.Thread(target=write)
        thread.start()
        value = await task
        thread.join()
        assert not reading.closed
    assert (value.size, value.chunks) == (len(DATA), 1_001)


async def test_a_source_is_not_read_far_ahead_of_the_server(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    size = 64 << 20
    gave = 0
    most = 0

    def source() -> Iterator[bytes]:
        nonlocal gave
        for _ in range(size // 65_536):
            gave += 65_536
            yield bytes(65_536)

    def watch(done: int, _total: int | None) -> None:
        nonlocal most
        most = max(most, gave - done)

    await stream.chunks.put(f"{stream_name}.C.a", source(), progress=watch)
    # The window, two runs that wait and one that is made.
    assert most <= (8 << 20) + 4 * (1 << 20)
    await stream.purge()


async def test_views_with_gaps_and_of_columns_are_stored_as_their_bytes(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    views = {
        "gaps": memoryview(DATA)[::2],
        "columns": memoryview(DATA[:12]).cast("B", (3, 4)),
        "numbers": memoryview(DATA[:12]).cast("i"),
    }
    for name, view in views.items():
        for kind, source in (("whole", view), ("pieces", [view, view])):
            value = await stream.chunks.put(f"{stream_name}.C.{name}.{kind}", source)
            async with stream.chunks.open(value) as reader:
                expected = view.tobytes() * (1 if source is view else 2)
                assert await reader.read() == expected, (name, kind)


async def test_a_view_that_was_released_is_refused(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    view = memoryview(DATA)
    view.release()
    with pytest.raises(ConfigError, match="released"):
        await stream.chunks.put(f"{stream_name}.C.a", view)


async def test_a_stream_reader_is_read_by_size_and_not_by_lines(
    js: JetStream, stream_name: str
) -> None:
    """It yields lines, and raises where one is longer than its limit."""
    stream = await chunk_stream(js, stream_name)
    data = bytes(300_000)
    reader = asyncio.StreamReader(limit=10_000)
    reader.feed_data(data)
    reader.feed_eof()
    value = await stream.chunks.put(f"{stream_name}.C.a", reader)
    assert (value.size, value.digest) == (len(data), hashlib.sha256(data).digest())


async def test_a_file_that_does_not_block_is_not_taken_for_ended(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    out, into = os.pipe()
    os.set_blocking(out, False)
    with os.fdopen(out, "rb", buffering=0) as reading, os.fdopen(into, "wb") as writing:
        writing.write(DATA[:30_000])
        writing.flush()
        with pytest.raises(BlockingIOError):
            await stream.chunks.put(f"{stream_name}.C.a", reading, chunk_size=1_000)
    assert await held(stream) == {}


@pytest.mark.parametrize("source", ["text", 5, None, 1.5])
async def test_what_gives_no_bytes_is_refused(
    js: JetStream, stream_name: str, source: object
) -> None:
    stream = await chunk_stream(js, stream_name)
    with pytest.raises(ConfigError, match="source"):
        await stream.chunks.put(f"{stream_name}.C.a", source)  # pyright: ignore[reportArgumentType]


async def test_a_source_that_gives_text_is_refused_and_leaves_nothing(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    with pytest.raises(ConfigError, match="the source gave"):
        await stream.chunks.put(
            f"{stream_name}.C.a",
            [DATA, "text"],  # pyright: ignore[reportArgumentType]
            chunk_size=65_536,
        )
    assert await held(stream) == {}


async def test_wrong_sizes_and_subjects_are_refused(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    for size in (0, -1, 1 << 30):
        with pytest.raises(ConfigError, match="chunk_size"):
            await stream.chunks.put(f"{stream_name}.C.a", b"x", chunk_size=size)
    for subject in ("", "a b", f"{stream_name}.C.>", "*"):
        with pytest.raises(SubjectError):
            await stream.chunks.put(subject, b"x")
        with pytest.raises(SubjectError):
            await stream.chunks.remove(subject)
