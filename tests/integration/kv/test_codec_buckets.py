"""Buckets with codecs: every call takes and gives the application's keys and values."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest

import natsstream as ns
from natsstream.errors import CodecError, ConfigError, KeyExistsError, KeyNameError

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

HOSTILE = ("Acme Inc.contact", "*", ">", "a.*.b", "é€\U0001f600", "a/b c", "\x00\r\n", "$KV", " ")


class Zipped:
    """A value codec of a user's own."""

    def encode(self, value: bytes) -> bytes:
        return zlib.compress(value)

    def decode(self, stored: bytes) -> bytes:
        try:
            return zlib.decompress(stored)
        except zlib.error as error:
            raise ValueError(str(error)) from error


@pytest.mark.proves("1d", "codecs (ADR-54)")
@pytest.mark.parametrize("key", HOSTILE)
async def test_every_call_takes_any_text_as_a_key(
    js: JetStream, stream_name: str, key: str
) -> None:
    plain = await js.kv.create(stream_name, storage="memory", history=5)
    kv = plain.with_codec(keys=ns.Base64Keys())
    await kv.put("other", b"0")

    first = await kv.create(key, b"1")
    with pytest.raises(KeyExistsError) as caught:
        await kv.create(key, b"2")
    assert caught.value.key == key
    await kv.update(key, b"2", revision=first)
    entry = await kv.get(key)
    assert entry is not None
    assert (entry.key, entry.value) == (key, b"2")
    assert [each async for each in kv.keys()] == ["other", key]
    await kv.delete(key)
    await kv.revert(key, first)
    await kv.purge(key)
    assert [(each.key, each.operation) async for each in kv.history()] == [
        ("other", "PUT"), (key, "PURGE"),
    ]  # fmt: skip
    assert await kv.purge_deletes(older_than=0) == 1
    assert [each async for each in plain.keys()] == ["b3RoZXI"]


@pytest.mark.proves("1d", "codecs (ADR-54)")
async def test_filters_keep_their_wildcards(js: JetStream, stream_name: str) -> None:
    kv = (await js.kv.create(stream_name, storage="memory")).with_codec(keys=ns.Base64Keys())
    for key in ("Acme Inc.contact", "Acme Inc.phone", "Other.contact"):
        await kv.put(key, b"")

    assert [key async for key in kv.keys("Acme Inc.*")] == ["Acme Inc.contact", "Acme Inc.phone"]
    assert [key async for key in kv.keys("*.contact")] == ["Acme Inc.contact", "Other.contact"]
    assert await kv.purge_matching("Acme Inc.>") == 2
    assert [key async for key in kv.keys()] == ["Other.contact"]


async def test_paths_are_plain_keys_for_others(js: JetStream, stream_name: str) -> None:
    plain = await js.kv.create(stream_name, storage="memory")
    kv = plain.with_codec(keys=ns.PathKeys())
    await kv.put("/config/app/db", b"1")
    await kv.put("config/x", b"2")

    assert [key async for key in plain.keys()] == ["_root_.config.app.db", "config.x"]
    assert [key async for key in kv.keys("/config/>")] == ["/config/app/db"]
    with pytest.raises(KeyNameError):
        await kv.put("config.x", b"3")


@pytest.mark.proves("1d", "codecs (ADR-54)")
async def test_values_go_through_their_codec_and_markers_do_not(
    js: JetStream, stream_name: str
) -> None:
    plain = await js.kv.create(stream_name, storage="memory", history=5)
    kv = plain.with_codec(keys=ns.Base64Keys()).with_codec(values=Zipped())
    for value in (b"", b"x" * 1_000):
        revision = await kv.put("a b", value)
        entry = await kv.get("a b", revision=revision)
        assert entry is not None
        assert entry.value == value
    await kv.delete("a b")

    stored = await plain.get("YSBi", revision=2)
    assert stored is not None
    assert zlib.decompress(stored.value) == b"x" * 1_000
    assert [each.value async for each in kv.history("a b")] == [b"", b"x" * 1_000, b""]
    await kv.revert("a b", 2)
    async with kv.watch(meta_only=True) as watch:
        assert [each.value async for each in watch.initial()] == [b""]


async def test_value_without_the_codec_is_an_error_with_key_and_revision(
    js: JetStream, stream_name: str
) -> None:
    plain = await js.kv.create(stream_name, storage="memory")
    revision = await plain.put("a", b"plain")

    with pytest.raises(CodecError) as caught:
        await plain.with_codec(values=Zipped()).get("a")
    assert (caught.value.bucket, caught.value.key) == (stream_name, "a")
    assert caught.value.revision == revision


async def test_codec_is_given_once(js: JetStream, stream_name: str) -> None:
    kv = await js.kv.create(stream_name, storage="memory")
    coded = kv.with_codec(keys=ns.Base64Keys())

    with pytest.raises(ConfigError, match="ChainedKeys"):
        coded.with_codec(keys=ns.PathKeys())
    with pytest.raises(ConfigError):
        kv.with_codec()
    with pytest.raises(ConfigError):
        kv.with_codec(keys="base64")  # pyright: ignore[reportArgumentType] - The point of the test.
    await kv.put("plain", b"")  # The bucket itself is as it was.
