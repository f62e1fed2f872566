"""put_guarded: written only while another key is at a revision; the server itself compares."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

import natsstream as ns
from natsstream.errors import (
    BucketNotFoundError,
    ConfigError,
    KeyNameError,
    WrongLastSequenceError,
    WrongRevisionError,
)

if TYPE_CHECKING:
    from natsstream import JetStream, KeyValue

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def kv(js: JetStream, stream_name: str) -> KeyValue:
    """A bucket; guards need no life time."""
    return await js.kv.create(stream_name, storage="memory")


async def test_it_is_written_while_the_guard_stays(kv: KeyValue) -> None:
    guard = await kv.put("guard", b"g")
    first = await kv.put_guarded("k", b"1", guard="guard", revision=guard)
    # Its own key may change as it likes.
    second = await kv.put_guarded("k", b"2", guard="guard", revision=guard)
    assert guard < first < second
    entry = await kv.get("k")
    assert entry is not None
    assert (entry.value, entry.revision) == (b"2", second)


async def test_nothing_is_written_once_the_guard_has_changed(kv: KeyValue) -> None:
    old = await kv.put("guard", b"old")
    new = await kv.put("guard", b"new")
    with pytest.raises(WrongRevisionError, match="guard 'guard' is not") as caught:
        await kv.put_guarded("k", b"late", guard="guard", revision=old)
    assert isinstance(caught.value, WrongLastSequenceError)
    assert (caught.value.bucket, caught.value.key) == (kv.name, "guard")
    assert caught.value.revision == new
    assert await kv.get("k") is None
    marker = await kv.delete("guard")
    with pytest.raises(WrongRevisionError):
        await kv.put_guarded("k", b"late", guard="guard", revision=new)
    assert await kv.put_guarded("k", b"v", guard="guard", revision=marker) > marker


async def test_no_record_of_the_guard_can_be_demanded(kv: KeyValue) -> None:
    written = await kv.put_guarded("k", b"v", guard="guard", revision=0)
    await kv.put("guard", b"g")
    with pytest.raises(WrongRevisionError):
        await kv.put_guarded("k", b"w", guard="guard", revision=0)
    entry = await kv.get("k")
    assert entry is not None
    assert entry.revision == written


async def test_of_writers_with_one_guard_that_each_moves_one_comes_through(kv: KeyValue) -> None:
    guard = await kv.put("guard", b"g")

    async def write(index: int) -> bool:
        try:
            await kv.put_guarded("guard", b"%d" % index, guard="guard", revision=guard)
        except WrongRevisionError:
            return False
        return True

    assert sum(await asyncio.gather(*map(write, range(20)))) == 1


async def test_it_works_behind_codecs(kv: KeyValue) -> None:
    coded = kv.with_codec(keys=ns.Base64Keys(), values=ns.Base64Values())
    guard = await coded.put("der Wächter *", b"g")
    await coded.put_guarded("ein Schlüssel", b"v", guard="der Wächter *", revision=guard)
    with pytest.raises(WrongRevisionError):
        await coded.put_guarded("ein Schlüssel", b"w", guard="der Wächter *", revision=guard - 1)
    entry = await coded.get("ein Schlüssel")
    assert entry is not None
    assert entry.value == b"v"


async def test_wrong_arguments_are_refused_before_anything_is_sent(
    js: JetStream, kv: KeyValue, stream_name: str
) -> None:
    with pytest.raises(KeyNameError):
        await kv.put_guarded("k", b"", guard="*", revision=1)
    with pytest.raises(KeyNameError):
        await kv.put_guarded(">", b"", guard="guard", revision=1)
    for revision in (-1, True, 2**64, "1"):
        with pytest.raises(ConfigError, match="revision"):
            await kv.put_guarded("k", b"", guard="guard", revision=revision)  # pyright: ignore[reportArgumentType] - That is the point.
    mirror = await js.kv.create(f"{stream_name}_M", mirror=stream_name)
    with pytest.raises(ConfigError, match="mirror"):
        await mirror.put_guarded("k", b"", guard="guard", revision=0)
    assert [key async for key in kv.keys()] == []


async def test_a_deleted_bucket_is_said_to_be_gone(js: JetStream, kv: KeyValue) -> None:
    await js.kv.delete(kv.name)
    with pytest.raises(BucketNotFoundError, match=kv.name):
        await kv.put_guarded("k", b"", guard="guard", revision=0)
