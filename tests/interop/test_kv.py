"""Buckets: what one client does with keys, every other one sees, on R1 and on R3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.client import RefusedError
from tests.interop.clients.kv import WRONG_LAST_SEQUENCE, BucketOptions, Seen
from tests.interop.pairs import pairs
from tests.interop.replicas import holds

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.ours import Ours

pytestmark = pytest.mark.asyncio

# A replicated stream answers with another code.
WRONG_LAST_CODES = {WRONG_LAST_SEQUENCE, 10164}


async def last_revision(ours: Ours, bucket: str, key: str) -> int:
    """Return the sequence of a key's last message, by the stream and not by a bucket."""
    stream = await ours.js.streams.get(f"KV_{bucket}")
    found = await stream.get(last_by_subject=f"$KV.{bucket}.{key}")
    assert found is not None
    return found.sequence


@pytest.mark.proves("1d", "put / get / update(rev)")
@pytest.mark.proves("1d", "history")
@pairs("kv", replicated=True, with_peers=True)
async def test_every_operation_is_seen_by_every_client(
    ours: Ours,
    kv_writer: KvClient,
    kv_reader: KvClient,
    stream_name: str,
    replicas: int,
    settle: Callable[[str], Awaitable[None]],
) -> None:
    options = BucketOptions(name=stream_name, history=9, replicas=replicas)
    await kv_writer.create_bucket(options)
    await kv_writer.put(stream_name, "a.put", b"one")
    await kv_writer.put(stream_name, "a.put", b"two")
    await kv_writer.update(
        stream_name, "a.put", b"3", revision=await last_revision(ours, stream_name, "a.put")
    )
    await kv_writer.put(stream_name, "deleted", b"v")
    await kv_writer.delete(stream_name, "deleted")
    await kv_writer.put(stream_name, "purged", b"v")
    await kv_writer.purge(stream_name, "purged")
    await kv_writer.create(stream_name, "made/=_-", b"v")
    await kv_writer.delete(stream_name, "made/=_-")
    # nats.go and nats.js look on any replica whether the key that is there is a marker.
    await settle(f"KV_{stream_name}")
    await kv_writer.create(stream_name, "made/=_-", b"again")

    async def check() -> None:
        assert await kv_reader.keys(stream_name) == ["a.put", "made/=_-"]
        assert await kv_reader.get(stream_name, "a.put") == b"3"
        assert await kv_reader.get(stream_name, "made/=_-") == b"again"
        assert await kv_reader.get(stream_name, "deleted") is None
        assert await kv_reader.get(stream_name, "purged") is None
        assert await kv_reader.get(stream_name, "never") is None
        assert await kv_reader.history(stream_name, "a.put") == [
            Seen("a.put", "PUT", b"one"),
            Seen("a.put", "PUT", b"two"),
            Seen("a.put", "PUT", b"3"),
        ]
        assert await kv_reader.history(stream_name, "purged") == [Seen("purged", "PURGE")]
        assert await kv_reader.watch(stream_name, 4) == [
            Seen("a.put", "PUT", b"3"),
            Seen("deleted", "DEL"),
            Seen("purged", "PURGE"),
            Seen("made/=_-", "PUT", b"again"),
        ]

    await holds(check, replicas=replicas)


@pairs("kv", replicated=True)
async def test_writes_of_one_client_are_conflicts_for_the_others(
    ours: Ours,
    kv_writer: KvClient,
    kv_reader: KvClient,
    stream_name: str,
    replicas: int,
) -> None:
    await kv_writer.create_bucket(BucketOptions(name=stream_name, replicas=replicas))
    await kv_writer.create(stream_name, "k", b"first")
    revision = await last_revision(ours, stream_name, "k")
    await kv_writer.update(stream_name, "k", b"second", revision=revision)

    with pytest.raises(RefusedError) as exists:
        await kv_reader.create(stream_name, "k", b"mine")
    with pytest.raises(RefusedError) as stale:
        await kv_reader.update(stream_name, "k", b"mine", revision=revision)

    assert {exists.value.err_code, stale.value.err_code} <= WRONG_LAST_CODES

    async def check() -> None:
        assert await kv_writer.get(stream_name, "k") == b"second"

    await holds(check, replicas=replicas)


@pytest.mark.proves("1d", "create (recreate after delete)")
@pairs("kv")
async def test_deleted_and_purged_key_is_created_again_by_every_client(
    kv_writer: KvClient, kv_reader: KvClient, stream_name: str
) -> None:
    await kv_writer.create_bucket(BucketOptions(name=stream_name))
    for key in ("deleted", "purged"):
        await kv_writer.put(stream_name, key, b"old")
    await kv_writer.delete(stream_name, "deleted")
    await kv_writer.purge(stream_name, "purged")

    for key in ("deleted", "purged"):
        await kv_reader.create(stream_name, key, b"new")

    assert [await kv_writer.get(stream_name, key) for key in ("deleted", "purged")] == [b"new"] * 2
