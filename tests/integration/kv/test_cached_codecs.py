"""A local mirror of a bucket with codecs: what others write without them ends nothing."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

import natsstream as ns
from natsstream.errors import CodecError, ConfigError
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import JetStream, KeyValue

pytestmark = pytest.mark.asyncio

# "a" and "b" as Base64Keys stores them, and a key that it never writes.
STORED_A, STORED_B, FOREIGN = "YQ", "Yg", "no-base64="
WAIT_S = 30.0


@pytest_asyncio.fixture
async def plain(js: JetStream, stream_name: str) -> KeyValue:
    """The bucket as it is stored."""
    return await js.kv.create(stream_name, storage="memory", history=2)


@pytest_asyncio.fixture
async def kv(plain: KeyValue) -> KeyValue:
    """The same bucket with codecs for keys and values."""
    return plain.with_codec(keys=ns.Base64Keys(), values=ns.Base64Values())


async def test_a_value_without_the_codec_is_raised_where_it_is_read(
    plain: KeyValue, kv: KeyValue
) -> None:
    await kv.put("a", b"1")
    await kv.put("b", b"2")
    async with kv.cached() as mirror:
        bad = await plain.put(STORED_A, b"?")
        await mirror.wait_for(bad, timeout=WAIT_S)

        with pytest.raises(CodecError) as uncached:
            await kv.get("a")
        with pytest.raises(CodecError) as caught:
            mirror.get("a")
        assert str(caught.value) == str(uncached.value)
        assert (caught.value.key, caught.value.revision) == ("a", bad)
        assert mirror.keys() == [key async for key in kv.keys()] == ["b", "a"]
        assert "a" in mirror
        assert len(mirror) == 2
        assert [(each.key, each.revision) for each in mirror.unreadable] == [("a", bad)]
        entry = mirror.get("b")
        assert entry is not None
        assert entry.value == b"2"
        items = dict(mirror.items())
        assert (items["b"].error, items["b"].value) == (None, b"2")
        assert (items["a"].error, items["a"].data) == (mirror.unreadable[0], b"?")
        with pytest.raises(CodecError):
            _ = items["a"].value


async def test_a_mirror_is_filled_behind_what_it_can_not_decode(
    plain: KeyValue, kv: KeyValue
) -> None:
    for number in range(50):
        await plain.put(f"bad.{number}=", b"?")
    await plain.put(STORED_A, b"?")
    await kv.put("b", b"2")
    async with kv.cached() as mirror:
        assert mirror.keys() == ["a", "b"]
        assert len(mirror.unreadable) == 51
        assert mirror.get("bad.1=") is await kv.get("bad.1=") is None
        revision = await mirror.put("c", b"3")
        assert mirror.revision == revision


async def test_a_key_that_is_written_anew_or_deleted_can_be_read(
    plain: KeyValue, kv: KeyValue
) -> None:
    for key in (STORED_A, STORED_B, FOREIGN):
        await plain.put(key, b"?")
    async with kv.cached() as mirror:
        assert len(mirror.unreadable) == 3
        size = mirror.size_bytes
        await mirror.put("a", b"1")
        await mirror.delete("b")
        await mirror.wait_for(await plain.delete(FOREIGN), timeout=WAIT_S)
        assert mirror.unreadable == ()
        assert [(key, each.value) for key, each in mirror.items()] == [("a", b"1")]
        assert mirror.size_bytes < size


async def test_changes_go_on_behind_what_can_not_be_decoded(plain: KeyValue, kv: KeyValue) -> None:
    async with kv.cached() as mirror, aclosing(mirror.changes()) as changes:
        waiting = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        await plain.put(STORED_A, b"?")
        changed = await waiting
        with pytest.raises(CodecError) as caught:
            _ = changed.value
        assert caught.value.key == changed.key == "a"
        await mirror.put("b", b"2")
        assert (await anext(changes)).key == "b"
        await mirror.delete("a")
        assert (await anext(changes)).operation == "DEL"


async def test_a_listing_of_the_mirror_passes_keys_that_it_can_not_decode(
    plain: KeyValue, kv: KeyValue
) -> None:
    await plain.put(FOREIGN, b"?")
    await plain.put(STORED_B, b"?")
    await kv.put("a", b"1")
    with pytest.raises(CodecError):
        _ = [key async for key in kv.keys()]
    assert [key async for key in kv.keys(on_unreadable="leave_out")] == ["b", "a"]
    with pytest.raises(ConfigError):
        _ = [key async for key in kv.keys(on_unreadable="hide")]  # pyright: ignore[reportArgumentType] - The point of the test.
    async with kv.cached() as mirror:
        await plain.stream.purge(subject=f"$KV.{kv.name}.{STORED_B}")
        assert await mirror.resync() == 1
        assert mirror.keys() == ["a"]


async def test_a_mirror_of_objects_hands_out_what_no_codec_can_decode(
    plain: KeyValue, kv: KeyValue
) -> None:
    typed = kv.typed(ns.JSON)
    await typed.put("b", {"n": 1})
    async with typed.cached() as mirror, aclosing(mirror.changes()) as changes:
        bad = await plain.put(STORED_A, b"?")
        await mirror.wait_for(bad, timeout=WAIT_S)

        with pytest.raises(CodecError):
            mirror.get("a")
        items = dict(mirror.items())
        assert items["b"].value == {"n": 1}
        assert isinstance(items["a"].error, CodecError)
        with pytest.raises(CodecError):
            _ = items["a"].value
        changed = await anext(changes)
        assert (changed.key, changed.error) == ("a", items["a"].error)
        await mirror.put("a", 5)
        assert (await anext(changes)).value == 5


async def test_what_has_expired_is_told_no_more(js: JetStream, stream_name: str) -> None:
    plain = await js.kv.create(stream_name, storage="memory", ttl=2)
    async with plain.with_codec(keys=ns.Base64Keys()).cached() as mirror:
        await mirror.wait_for(await plain.put(FOREIGN, b"?"), timeout=WAIT_S)

        async def is_gone() -> bool:
            return mirror.keys() == [] and mirror.unreadable == () and mirror.size_bytes == 0

        await eventually_async(is_gone, within_s=WAIT_S)
