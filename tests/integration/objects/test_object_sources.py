"""A put whose source is silent for long: what a sweep took meanwhile is never acknowledged."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream import connect
from natsstream.errors import ChunksDamagedError, ConfigError
from natsstream.testing import NatsServer
from tests.support.chunked import Slow, held, some_bytes
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.objects.info import ObjectInfo
    from natsstream.objects.store import ObjectStore

pytestmark = pytest.mark.asyncio

OLD, NEW = some_bytes(30_000), some_bytes(100_000, seed=2)


@pytest_asyncio.fixture
async def box(js: JetStream, stream_name: str) -> ObjectStore:
    """A store of this test alone."""
    return await js.objects.create(stream_name, storage="memory")


async def put_slowly(box: ObjectStore, source: Slow) -> asyncio.Task[ObjectInfo]:
    """Begin to put an object, up to where its source is silent and a sweep has taken its chunks."""
    putting = asyncio.create_task(box.put("a", source.__aiter__(), chunk_size=10_000))
    await source.has_given.wait()

    async def is_swept() -> bool:
        return (await box.sweep(older_than=0.2)).chunks > 0

    await eventually_async(is_swept)
    return putting


@pytest.mark.parametrize("rest", [[], [some_bytes(40_000, seed=3)]])
async def test_a_put_whose_chunks_were_swept_leaves_the_old_object(
    box: ObjectStore, rest: list[bytes]
) -> None:
    old = await box.put("a", OLD)
    source = Slow([NEW], rest)
    putting = await put_slowly(box, source)
    source.go_on.set()
    with pytest.raises(ChunksDamagedError):
        await putting

    assert await box.get("a") == OLD
    chunks = await held(box.stream, f"$O.{box.name}.C.>")
    assert set(chunks) == {f"$O.{box.name}.C.{old.nuid}"}


async def test_a_sweep_spares_a_put_that_has_just_ended(box: ObjectStore) -> None:
    """However long its source was silent before: the last chunk is stored at the source's end."""
    source = Slow([NEW])
    putting = asyncio.create_task(box.put("a", source.__aiter__(), chunk_size=10_000))
    await source.has_given.wait()
    await eventually_async(lambda: held(box.stream, f"$O.{box.name}.C.>"))
    before = sum((await held(box.stream, f"$O.{box.name}.C.>")).values())
    assert before < 10
    source.go_on.set()
    info = await putting
    assert info.chunks == 10
    assert await box.get("a") == NEW


@pytest.mark.parametrize("max_payload", [4_096, 65_536])
async def test_chunks_are_as_small_as_the_server_wants(max_payload: int) -> None:
    with NatsServer(max_payload_bytes=max_payload) as server:
        async with connect(server.url) as js:
            box = await js.objects.create("files")
            info = await box.put("o", NEW)
            assert info.options.max_chunk_size == max_payload
            assert await box.get("o") == NEW
            assert (await box.put("small", b"y")).chunks == 1
            with pytest.raises(ConfigError, match="chunk_size"):
                await box.put("o", NEW, chunk_size=max_payload + 1)


async def test_chunks_are_as_small_as_the_stream_wants(js: JetStream, stream_name: str) -> None:
    box = await js.objects.create(stream_name, storage="memory", extra={"max_msg_size": 8_192})
    info = await box.put("o", NEW)
    assert info.options.max_chunk_size == 8_192
    assert await box.get("o") == NEW
    async with box.open("o", offset=50_000, length=10) as reader:
        assert await reader.read() == NEW[50_000:50_010]
