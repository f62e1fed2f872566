"""Objects go in and come back: whole, in part, through links, and one version at a time."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream.errors import (
    BucketNotFoundError,
    ChunksDamagedError,
    ConfigError,
    ObjectChangedError,
    ObjectNameError,
    ObjectNotFoundError,
    StreamFullError,
    StreamSealedError,
)
from natsstream.objects.reader import READS_MAX
from tests.support.chunked import Slow, held, some_bytes
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from natsstream import JetStream
    from natsstream.objects.store import ObjectStore
    from natsstream.streams.stream import Stream

pytestmark = pytest.mark.asyncio

DATA = some_bytes(300_001)
OTHER = some_bytes(200_002, seed=2)
# A reader that has taken one piece has at most 24 MiB of it.
LARGE = some_bytes(1 << 20) * 32


@pytest_asyncio.fixture
async def box(js: JetStream, stream_name: str) -> ObjectStore:
    """A store of this test alone."""
    return await js.objects.create(stream_name, storage="memory")


@pytest_asyncio.fixture
async def stream(js: JetStream, box: ObjectStore) -> Stream:
    """The stream under it."""
    return await js.streams.get(f"OBJ_{box.name}")


async def chunk_subjects(stream: Stream) -> dict[str, int]:
    return {name: count for name, count in (await held(stream)).items() if ".C." in name}


@pytest.mark.proves("1e", "put stream / bytes / string / file")
@pytest.mark.proves("1e", "chunk size / headers / metadata / TTL / compression")
async def test_an_object_comes_back_with_all_that_was_said_of_it(box: ObjectStore) -> None:
    stored = await box.put(
        "a/ü b.bin",
        DATA,
        description="some bytes",
        headers={"Kind": "x", "Many": ["1", "2"]},
        metadata={"owner": "us"},
    )
    assert (stored.name, stored.size, stored.chunks) == ("a/ü b.bin", len(DATA), 3)
    assert stored.digest.startswith("SHA-256=")
    assert stored.mtime is not None  # By this client's clock.
    assert await box.get("a/ü b.bin") == DATA

    async with box.open("a/ü b.bin") as reader:
        info = reader.info
        assert b"".join([piece async for piece in reader]) == DATA
    assert info.nuid == stored.nuid
    assert info.digest == stored.digest
    assert info.description == "some bytes"
    assert info.headers == {"Kind": ("x",), "Many": ("1", "2")}
    assert info.metadata == {"owner": "us"}
    assert info.options.max_chunk_size == 131_072
    assert info.mtime_ns > 0


async def test_what_is_stored_is_what_every_client_stores(box: ObjectStore, stream: Stream) -> None:
    """Chunks without headers under the nuid, then one message that says all of it."""
    info = await box.put("a", DATA, chunk_size=100_000)
    messages = [message async for message in stream.read()]

    subjects = [message.subject for message in messages]
    assert subjects == [f"$O.{box.name}.C.{info.nuid}"] * 4 + [f"$O.{box.name}.M.YQ=="]
    assert [len(message.data) for message in messages[:4]] == [100_000] * 3 + [1]
    assert all(not message.headers for message in messages[:4])
    assert messages[4].headers["Nats-Rollup"] == "sub"
    assert json.loads(messages[4].data) == {
        "name": "a",
        "options": {"max_chunk_size": 100_000},
        "bucket": box.name,
        "nuid": info.nuid,
        "size": len(DATA),
        "mtime": "0001-01-01T00:00:00Z",
        "chunks": 4,
        "digest": info.digest,
    }


async def test_an_absent_object_is_none_or_raises(box: ObjectStore) -> None:
    assert await box.get("nothing") is None
    with pytest.raises(ObjectNotFoundError):
        async with box.open("nothing"):
            pass
    await box.put("a", b"x")
    await box.delete("a")
    assert await box.get("a") is None


@pytest.mark.proves("1e", "get stream / bytes / file")
async def test_an_empty_object_is_no_absent_one(box: ObjectStore) -> None:
    info = await box.put("a", b"")
    assert (info.size, info.chunks) == (0, 0)
    assert await box.get("a") == b""


async def test_putting_again_replaces_and_leaves_no_old_chunk(
    box: ObjectStore, stream: Stream
) -> None:
    await box.put("a", DATA)
    second = await box.put("a", OTHER)

    assert await box.get("a") == OTHER
    assert await chunk_subjects(stream) == {f"$O.{box.name}.C.{second.nuid}": 2}
    await box.delete("a")
    third = await box.put("a", DATA)
    assert await chunk_subjects(stream) == {f"$O.{box.name}.C.{third.nuid}": 3}


async def test_the_old_object_is_readable_until_the_new_one_is_whole(box: ObjectStore) -> None:
    await box.put("a", DATA)
    source = Slow([OTHER], [OTHER])
    task = asyncio.create_task(box.put("a", source.__aiter__()))
    await source.has_given.wait()
    assert await box.get("a") == DATA
    source.go_on.set()
    await task
    assert await box.get("a") == OTHER * 2


async def test_a_put_that_fails_keeps_the_old_object_and_no_new_chunk(
    box: ObjectStore, stream: Stream
) -> None:
    first = await box.put("a", DATA)

    async def broken() -> AsyncIterator[bytes]:
        yield OTHER
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await box.put("a", broken())
    source = Slow([OTHER])
    task = asyncio.create_task(box.put("a", source.__aiter__()))
    await source.has_given.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await box.get("a") == DATA
    assert set(await chunk_subjects(stream)) == {f"$O.{box.name}.C.{first.nuid}"}


async def test_a_store_without_room_keeps_what_it_has(
    js: JetStream, box: ObjectStore, stream: Stream
) -> None:
    await box.put("a", DATA)
    await js.objects.update(box.name, max_bytes=400_000)
    with pytest.raises(StreamFullError):
        await box.put("a", OTHER)
    assert await box.get("a") == DATA
    assert len(await chunk_subjects(stream)) == 1


async def test_of_puts_at_the_same_time_one_wins_and_nothing_else_remains(
    box: ObjectStore, stream: Stream
) -> None:
    values = [some_bytes(150_000 + number, seed=number) for number in range(8)]
    await asyncio.gather(*(box.put("a", value) for value in values))

    assert await box.get("a") in values
    assert len(await chunk_subjects(stream)) == 1
    assert (await stream.info()).state.messages == 3


async def test_a_reader_of_a_replaced_object_is_told(box: ObjectStore) -> None:
    for replace in (lambda: box.put("a", OTHER), lambda: box.delete("a")):
        await box.put("a", LARGE, chunk_size=1 << 20)
        async with box.open("a") as reader:
            await anext(reader)
            await replace()
            with pytest.raises(ObjectChangedError):
                await reader.read()


async def test_a_reader_of_a_deleted_store_is_told_of_the_store(
    js: JetStream, box: ObjectStore
) -> None:
    await box.put("a", LARGE, chunk_size=1 << 20)
    async with box.open("a") as reader:
        await anext(reader)
        await js.objects.delete(box.name)
        with pytest.raises(BucketNotFoundError, match=box.name):
            await reader.read()


async def test_get_reads_again_what_is_replaced_meanwhile(box: ObjectStore) -> None:
    """A put can end one attempt of a read, and there are more attempts than puts."""
    values = [some_bytes(400_000, seed=number) for number in range(READS_MAX - 1)]
    await box.put("a", values[0])

    async def replace() -> None:
        for value in values:
            await box.put("a", value)

    for _ in range(4):
        got, _ = await asyncio.gather(box.get("a"), replace())
        assert got in values


@pytest.mark.proves("1e", "digest check")
async def test_damage_is_told_as_damage(box: ObjectStore, stream: Stream) -> None:
    await box.put("a", DATA)
    first = (await stream.info()).state.first_seq
    await stream.delete_message(first + 1)
    with pytest.raises(ChunksDamagedError, match=f"^object 'a' of store {box.name}: "):
        await box.get("a")


@pytest.mark.proves("1e", "get stream / bytes / file")
async def test_parts_are_read_by_offset_and_length(box: ObjectStore) -> None:
    await box.put("a", DATA, chunk_size=10_000)
    for offset, length in ((0, 5), (9_999, 2), (123_456, 50_000), (300_000, 10), (300_001, 1)):
        async with box.open("a", offset=offset, length=length) as reader:
            assert reader.size == len(DATA[offset : offset + length])
            assert await reader.read() == DATA[offset : offset + length]
    async with box.open("a", offset=250_000) as reader:
        assert await reader.read() == DATA[250_000:]


async def test_links_are_followed_within_and_between_stores(
    js: JetStream, box: ObjectStore, stream_name: str
) -> None:
    other = await js.objects.create(f"{stream_name}-2", storage="memory")
    info = await other.put("there", DATA)
    await box.link("here", info)

    assert await box.get("here") == DATA
    async with box.open("here", offset=1, length=3) as reader:
        assert (reader.info.bucket, reader.info.name) == (other.name, "there")
        assert await reader.read() == DATA[1:4]
    await other.delete("there")
    assert await box.get("here") is None
    await js.objects.delete(other.name)
    assert await box.get("here") is None


async def test_progress_tells_bytes_done_and_in_all(box: ObjectStore) -> None:
    told: list[tuple[int, int | None]] = []
    await box.put(
        "a", DATA, chunk_size=50_000, progress=lambda done, total: told.append((done, total))
    )
    assert told[-1] == (len(DATA), len(DATA))
    assert [each for each, _ in told] == sorted(each for each, _ in told)


async def test_a_sealed_store_takes_nothing(js: JetStream, stream_name: str) -> None:
    box = await js.objects.create(stream_name, storage="memory")
    await box.put("a", DATA)
    await box.seal()
    with pytest.raises(StreamSealedError):
        await box.put("b", OTHER)
    assert await box.get("a") == DATA


async def test_a_deleted_store_is_told_in_its_own_words(
    js: JetStream, box: ObjectStore, tmp_path: Path
) -> None:
    await js.objects.delete(box.name)
    for call in (
        lambda: box.put("a", DATA),
        lambda: box.get("a"),
        lambda: box.get_file("a", tmp_path / "a"),
        box.sweep,
    ):
        with pytest.raises(BucketNotFoundError, match=box.name):
            await call()


async def test_wrong_arguments_are_refused_before_anything_is_sent(
    box: ObjectStore, stream: Stream
) -> None:
    for name in ("", 5, None, "\ud800"):
        with pytest.raises(ObjectNameError):
            await box.put(name, b"")  # pyright: ignore[reportArgumentType]
        with pytest.raises(ObjectNameError):
            box.open(name)  # pyright: ignore[reportArgumentType]
    wrong: list[dict[str, object]] = [
        {"chunk_size": 0},
        {"chunk_size": 1 << 40},
        {"description": 5},
        {"headers": {"a": 1}},
        {"metadata": {"a": 1}},
        {"retry_for": -1},
        {"progress": 5},
    ]
    for arguments in wrong:
        with pytest.raises(ConfigError):
            await box.put("a", b"", **arguments)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError):
        await box.put("a", "text")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError):
        box.open("a", offset=-1)
    assert (await stream.info()).state.last_seq == 0


async def test_a_sweep_removes_what_no_object_points_to(box: ObjectStore, stream: Stream) -> None:
    """Also what a Go client leaves that was killed between its chunks and its meta."""
    kept = await box.put("kept", DATA)
    await box.put("deleted", OTHER)
    await box.delete("deleted")
    orphan = f"$O.{box.name}.C.killed0000000000000000"
    for _ in range(3):
        await stream.publish(orphan, OTHER[:1000])
    assert (await box.sweep()).young == 1

    async def is_old() -> bool:
        report = await box.sweep(older_than=0.2, dry_run=True)
        return (report.values, report.chunks, report.size) == (1, 3, 3000)

    await eventually_async(is_old)
    assert (await box.sweep(older_than=0.2)).values == 1
    assert set(await chunk_subjects(stream)) == {f"$O.{box.name}.C.{kept.nuid}"}
    assert await box.get("kept") == DATA
