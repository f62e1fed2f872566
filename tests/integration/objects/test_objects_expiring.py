"""Stores with a ttl: what is in them goes, and an object whose bytes went first is told."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import ChunksDamagedError, ObjectExpiredError
from natsstream.objects.store_subjects import StoreSubjects
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


async def test_objects_are_forgotten_after_the_ttl(js: JetStream, stream_name: str) -> None:
    box = await js.objects.create(stream_name, storage="memory")
    await box.put("a", b"xyz")
    await box.link("l", "a")
    await js.objects.update(stream_name, ttl=0.5)

    async def is_empty() -> bool:
        # Each call is made on the way: none of them may call it damaged.
        data = [await box.get(name) for name in ("a", "l")]
        names = [name async for name in box.names()]
        assert set(data) <= {b"xyz", None}
        return data == [None, None] and not names and not (await box.status()).messages

    await eventually_async(is_empty)
    assert await box.info("a", include_deleted=True) is None
    await box.put("a", b"new")


async def test_an_object_whose_bytes_expire_first_is_told(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    # As an update late in an object's life leaves it.
    box = await js.objects.create(stream_name, ttl=60, storage="memory")
    info = await box.put("a", b"xyz")
    await box.stream.purge(subject=StoreSubjects(stream_name).chunk_subject(info.nuid))

    assert await box.get("a") is None
    with pytest.raises(ObjectExpiredError, match="60 s"):
        async with box.open("a") as reader:
            await reader.read()
    with pytest.raises(ObjectExpiredError):
        async with box.open("a", offset=1) as reader:
            await anext(reader)
    with pytest.raises(ObjectExpiredError):
        await box.get_file("a", tmp_path / "a")
    assert await asyncio.to_thread(os.listdir, tmp_path) == []
    await box.put("a", b"new")
    assert await box.get("a") == b"new"


async def test_without_a_ttl_missing_bytes_are_damage(js: JetStream, stream_name: str) -> None:
    box = await js.objects.create(stream_name, storage="memory")
    info = await box.put("a", b"xyz")
    await box.stream.purge(subject=StoreSubjects(stream_name).chunk_subject(info.nuid))

    with pytest.raises(ChunksDamagedError):
        await box.get("a")


async def test_no_sweep_takes_the_bytes_of_an_object_that_is_written_meanwhile(
    js: JetStream, stream_name: str
) -> None:
    # A walk through the metas meets neither an old message that goes nor a new one behind its end.
    box = await js.objects.create(stream_name, storage="memory")
    for number in range(40):
        await box.put(f"o{number}", b"xyz")
    await box.put("a", b"xyz")

    async def write() -> None:
        while True:
            await box.update("a", description="d")
            await box.rename("a", "b")
            await box.rename("b", "a")

    writing = asyncio.ensure_future(write())
    for _ in range(10):
        assert (await box.sweep(older_than=0)).values == 0
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing

    await box.delete("o0")
    for name in [name async for name in box.names()]:
        assert await box.get(name) == b"xyz"
