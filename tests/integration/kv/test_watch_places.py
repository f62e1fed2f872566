"""Watches of buckets whose keys are stored elsewhere or otherwise: codecs, mirrors, domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import natsstream as ns
from natsstream.errors import CodecError
from tests.support.eventually import eventually_async
from tests.support.watches import initial, names, take, told

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.kv.watch import Watch

pytestmark = pytest.mark.asyncio


async def test_codecs_are_applied_to_keys_values_and_filters(
    js: JetStream, stream_name: str
) -> None:
    plain = await js.kv.create(stream_name, history=3, storage="memory")
    kv = plain.with_codec(keys=ns.Base64Keys(), values=ns.Base64Values())
    for key in ("a b", "ä.ö", "x"):
        await kv.put(key, key.encode())

    async with kv.watch() as watch, kv.watch("ä.*", "x") as some:
        assert [(each.key, each.value) for each in await initial(watch)] == [
            (key, key.encode()) for key in ("a b", "ä.ö", "x")
        ]
        assert [each.key for each in await initial(some)] == ["ä.ö", "x"]
        await kv.delete("ä.ö")
        assert told(await take(watch, 1)) == told(await take(some, 1)) == [("ä.ö", "DEL", b"")]
    assert await names(kv) == ["a b", "x"]
    assert await names(kv, "ä.>") == []
    assert [entry.value async for entry in kv.history("ä.ö")] == ["ä.ö".encode(), b""]


async def collect(watch: Watch, into: list[str]) -> None:
    """Add the keys of all batches, however they are cut, until the watch has caught up."""
    async for batch in watch.batches(until_caught_up=True):
        into += [entry.key for entry in batch]


async def test_entry_that_can_not_be_decoded_is_told_and_passed(
    js: JetStream, stream_name: str
) -> None:
    """By each way to read; what stands before and behind it comes."""
    plain = await js.kv.create(stream_name, storage="memory")
    kv = plain.with_codec(values=ns.Base64Values())
    await kv.put("a", b"1")
    await kv.put("b", b"2")
    await plain.put("c", b"\xff")
    await kv.put("d", b"4")

    async with kv.watch() as one, kv.watch() as some, kv.watch() as many:
        before = await take(one, 2)
        with pytest.raises(CodecError) as told_once:
            await anext(one)
        behind = await take(one, 1)
        with pytest.raises(CodecError):
            _ = [entry async for entry in some.initial()]
        rest = await initial(some)
        first: list[str] = []
        with pytest.raises(CodecError):
            await collect(many, first)
        second: list[str] = []
        await collect(many, second)

    assert [entry.key for entry in before + behind] == ["a", "b", "d"]
    assert (told_once.value.key, told_once.value.revision) == ("c", 3)
    assert [entry.key for entry in rest] == ["d"]
    assert (first, second) == (["a", "b"], ["d"])


async def test_mirror_is_watched_under_the_keys_of_its_origin(
    js: JetStream, stream_name: str
) -> None:
    origin = await js.kv.create(stream_name, history=3, storage="memory")
    await origin.put("a.1", b"1")
    copy = await js.kv.create(
        f"{stream_name}_copy", mirror=stream_name, history=3, storage="memory"
    )

    async def is_copied() -> bool:
        return await names(copy) == ["a.1"]

    await eventually_async(is_copied, within_s=20)
    async with copy.watch("a.*") as watch:
        assert told(await initial(watch)) == [("a.1", "PUT", b"1")]
        await origin.put("a.1", b"2")
        await origin.delete("a.1")
        assert told(await take(watch, 2)) == [("a.1", "PUT", b"2"), ("a.1", "DEL", b"")]
    assert await names(copy) == []
    assert [entry.revision async for entry in copy.history("a.1")] == [1, 2, 3]
