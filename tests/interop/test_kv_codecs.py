"""Keys in another form than they are stored in: ours and the base64 codec of nats.js (ADR-54).

orbit.go's kvcodec is on no module proxy: what it writes stands in `tests/unit/kv/test_codecs.py`,
and here nats.go reads and writes the stored keys.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from natsstream import Base64Keys, ChainedKeys, PathKeys
from natsstream.errors import KeyNameError
from tests.interop.clients.client import RefusedError
from tests.interop.clients.kv import BucketOptions, Seen
from tests.interop.clients.nats_js_kv import JsBuckets
from tests.interop.clients.ours_kv import OurBuckets

if TYPE_CHECKING:
    from natsstream import KeyCodec
    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.nats_js import NatsJs
    from tests.interop.clients.ours import Ours

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_node]

# No key of a bucket without a codec but the last; the base64 of the last but one has a `/`.
KEYS = ["a b.c: d", "a b.été", "a b.? ?ÿ", "plain"]


def stored_key(key: str) -> str:
    """Return the key as it is stored: the standard alphabet of Latin-1, token by token."""
    return ".".join(base64.b64encode(each.encode("latin-1")).decode() for each in key.split("."))


@pytest.mark.proves("1d", "codecs (ADR-54)")
@pytest.mark.parametrize("writing", ["ours", "nats-js"])
async def test_keys_of_the_base64_codec_are_those_of_nats_js(
    ours: Ours, nats_js: NatsJs, stream_name: str, writing: str
) -> None:
    our_side = OurBuckets(ours.js, keys=Base64Keys("standard"))
    js_side = JsBuckets(nats_js, codec="base64")
    clients: list[KvClient] = [our_side, js_side]
    writer, reader = clients if writing == "ours" else clients[::-1]
    await writer.create_bucket(BucketOptions(name=stream_name, history=3))
    for key in KEYS:
        await writer.put(stream_name, key, key.encode())
    await writer.delete(stream_name, "plain")

    stored = await ours.read(f"KV_{stream_name}", 5)
    assert [message.subject for message in stored] == [
        f"$KV.{stream_name}.{stored_key(key)}" for key in [*KEYS, "plain"]
    ]
    assert await reader.keys(stream_name) == sorted(KEYS[:3])
    for key in KEYS[:3]:
        assert await reader.get(stream_name, key) == key.encode()
    assert await reader.get(stream_name, "plain") is None
    assert await reader.history(stream_name, "plain") == [
        Seen("plain", "PUT", b"plain"),
        Seen("plain", "DEL"),
    ]
    assert await reader.watch(stream_name, 4) == [
        *(Seen(key, "PUT", key.encode()) for key in KEYS[:3]),
        Seen("plain", "DEL"),
    ]
    await reader.create(stream_name, "plain", b"again")
    assert await writer.get(stream_name, "plain") == b"again"


@pytest.mark.proves("1d", "codecs (ADR-54)")
async def test_filters_with_the_base64_codec_find_what_those_of_nats_js_find(
    ours: Ours, nats_js: NatsJs, stream_name: str
) -> None:
    js_side = JsBuckets(nats_js, codec="base64")
    await js_side.create_bucket(BucketOptions(name=stream_name))
    for key in [*KEYS, "legal.x y"]:
        await js_side.put(stream_name, key, b"v")
    bucket = (await ours.js.kv.get(stream_name)).with_codec(keys=Base64Keys("standard"))

    # It checks a filter before it encodes it, so that it takes none with other tokens.
    for pattern, count in {"legal.*": 1, "*.*": 4, ">": 5, "*": 1}.items():
        found = sorted([key async for key in bucket.keys(pattern)])
        assert found == await js_side.keys_matching(stream_name, pattern)
        assert len(found) == count
    assert [key async for key in bucket.keys("a b.*")] == KEYS[:3]
    with pytest.raises(RefusedError, match="invalid key"):
        await js_side.keys_matching(stream_name, "a b.*")


async def test_key_that_has_no_form_is_refused_by_both(
    ours: Ours, nats_js: NatsJs, stream_name: str
) -> None:
    js_side = JsBuckets(nats_js, codec="base64")
    our_side = OurBuckets(ours.js, keys=Base64Keys("standard"))
    await our_side.create_bucket(BucketOptions(name=stream_name))

    # Beyond Latin-1; base64 with a plus, which no key may have.
    for key in ("€", "ûï¾"):
        with pytest.raises(RefusedError):
            await js_side.put(stream_name, key, b"v")
        with pytest.raises(KeyNameError):
            await our_side.put(stream_name, key, b"v")


# A codec of orbit.go's kvcodec, a key, and the key that it stores.
STORED: dict[str, tuple[KeyCodec, str, str]] = {
    "base64": (Base64Keys(), "Acme Inc.été ÿþ?>", "QWNtZSBJbmM.w6l0w6kgw7_Dvj8-"),
    "path": (PathKeys(), "/config/app/log", "_root_.config.app.log"),
    "relative-path": (PathKeys(), "config/app", "config.app"),
    "chain": (ChainedKeys(PathKeys(), Base64Keys()), "/a/é", "X3Jvb3Rf.YQ.w6k"),
}


@pytest.mark.needs_go
@pytest.mark.sampled
@pytest.mark.parametrize(("codec", "key", "stored"), STORED.values(), ids=list(STORED))
async def test_keys_of_codecs_are_stored_where_nats_go_finds_them(
    ours: Ours, go_buckets: KvClient, stream_name: str, codec: KeyCodec, key: str, stored: str
) -> None:
    our_side = OurBuckets(ours.js, keys=codec)
    await go_buckets.create_bucket(BucketOptions(name=stream_name, history=3))

    await our_side.put(stream_name, key, b"ours")
    assert await go_buckets.get(stream_name, stored) == b"ours"
    assert await go_buckets.keys(stream_name) == [stored]

    await go_buckets.put(stream_name, stored, b"go")
    assert await our_side.get(stream_name, key) == b"go"
    assert await our_side.keys(stream_name) == [key]
    assert await our_side.history(stream_name, key) == [
        Seen(key, "PUT", b"ours"),
        Seen(key, "PUT", b"go"),
    ]
