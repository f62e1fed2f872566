"""What a bucket's stream holds after each call, message by message, whoever made the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.kv import BucketOptions

if TYPE_CHECKING:
    from tests.interop.clients.client import Headers
    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.ours import Ours

pytestmark = pytest.mark.asyncio

# The server lets no marker live shorter than this.
MARKER_TTL_S = 30
EXPECTED = "Nats-Expected-Last-Subject-Sequence"


def with_seconds(headers: Headers) -> Headers:
    """Return headers with a life in seconds, where a client wrote a duration of Go."""
    return {
        name: [value.removesuffix("s") for value in values] if name == "Nats-TTL" else values
        for name, values in headers.items()
    }


async def test_messages_of_a_bucket_are_those_of_the_conventions(
    ours: Ours, kv_writer: KvClient, stream_name: str
) -> None:
    options = BucketOptions(name=stream_name, history=9, marker_ttl_s=MARKER_TTL_S)
    await kv_writer.create_bucket(options)
    await kv_writer.put(stream_name, "put", b"v\n\0\xff")
    await kv_writer.create(stream_name, "created", b"v")
    await kv_writer.update(stream_name, "created", b"w", revision=2)
    await kv_writer.delete(stream_name, "created")
    await kv_writer.create(stream_name, "created", b"again")
    await kv_writer.purge(stream_name, "put")
    await kv_writer.create(stream_name, "short", b"v", ttl_s=40)
    await kv_writer.purge(stream_name, "short", ttl_s=40)
    await kv_writer.put(stream_name, "empty", b"")

    stored = await ours.read(f"KV_{stream_name}", 7)

    delete: Headers = {"KV-Operation": ["DEL"]}
    purge: Headers = {"KV-Operation": ["PURGE"], "Nats-Rollup": ["sub"]}
    assert [(m.subject, with_seconds(m.headers), m.data) for m in stored] == [
        (f"$KV.{stream_name}.{key}", headers, data)
        for key, headers, data in [
            ("created", {EXPECTED: ["0"]}, b"v"),
            ("created", {EXPECTED: ["2"]}, b"w"),
            ("created", delete, b""),
            ("created", {EXPECTED: ["4"]}, b"again"),
            ("put", purge, b""),
            ("short", purge | {"Nats-TTL": ["40"]}, b""),
            ("empty", {}, b""),
        ]
    ]


@pytest.mark.proves("1d", "per-key TTL create / purge TTL")
async def test_life_of_a_key_is_stored_with_it(
    ours: Ours, kv_writer: KvClient, stream_name: str
) -> None:
    await kv_writer.create_bucket(BucketOptions(name=stream_name, marker_ttl_s=MARKER_TTL_S))

    await kv_writer.create(stream_name, "k", b"v", ttl_s=40)

    (stored,) = await ours.read(f"KV_{stream_name}", 1)
    assert with_seconds(stored.headers) == {EXPECTED: ["0"], "Nats-TTL": ["40"]}
