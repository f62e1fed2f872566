"""Markers that the server writes for keys that have expired, seen by every client.

nats-py 2.16 takes such a marker for a value in `get` and for a conflict in `create` (finding 15),
so it makes keys that expire here and reads a watch, and is not asked for more. nats.js 3.4 lists
such a marker among the keys: it is not asked for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.kv import BucketOptions, Seen
from tests.interop.replicas import holds
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.ours import Ours

pytestmark = pytest.mark.asyncio


async def wait_for_markers(ours: Ours, bucket: str, keys: list[str]) -> None:
    """Wait until the server has let all keys expire."""
    stream = await ours.js.streams.get(f"KV_{bucket}")

    async def are_gone() -> bool:
        found = [await stream.get(last_by_subject=f"$KV.{bucket}.{key}") for key in keys]
        return all(m is not None and "Nats-Marker-Reason" in m.headers for m in found)

    assert await eventually_async(are_gone, within_s=30)


@pytest.mark.proves("1d", "limit marker TTL")
@pytest.mark.finding(15)
@pytest.mark.needs_go
@pytest.mark.needs_node
@pytest.mark.parametrize("replicas", [1, 3], ids=["R1", "R3"])
async def test_expired_key_is_gone_for_every_client_and_can_be_created_at_once(
    ours: Ours,
    our_buckets: KvClient,
    cli_buckets: KvClient,
    js_buckets: KvClient,
    py_buckets: KvClient,
    stream_name: str,
    replicas: int,
    settle: Callable[[str], Awaitable[None]],
) -> None:
    options = BucketOptions(name=stream_name, marker_ttl_s=60, replicas=replicas)
    readers = {"ours": our_buckets, "cli": cli_buckets, "js": js_buckets}
    writers = {**readers, "py": py_buckets}
    await our_buckets.create_bucket(options)
    # One for each pair, so that all expire at about the same time.
    keys = sorted(f"{writer}.{reader}" for writer in writers for reader in readers)
    for key in keys:
        await writers[key.partition(".")[0]].create(stream_name, key, b"v", ttl_s=1)
    await wait_for_markers(ours, stream_name, keys)

    async def check() -> None:
        for name, reader in readers.items():
            if reader is not js_buckets:
                assert await reader.keys(stream_name) == []
            for writer in writers:
                key = f"{writer}.{name}"
                assert await reader.get(stream_name, key) is None
                assert await reader.history(stream_name, key) == [Seen(key, "PURGE")]
        for reader in writers.values():
            seen = await reader.watch(stream_name, len(keys))
            assert sorted(each.key for each in seen) == keys
            assert {each.operation for each in seen} == {"PURGE"}

    await holds(check, replicas=replicas)
    await settle(f"KV_{stream_name}")
    for key in keys:
        await readers[key.partition(".")[2]].create(stream_name, key, b"new")
    assert await our_buckets.keys(stream_name) == keys
