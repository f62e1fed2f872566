"""Locks are keys of a bucket: what the nats CLI and nats.js see of them, and do to them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import LockHeldError, LockLostError
from tests.interop.clients.client import RefusedError
from tests.interop.clients.kv import BucketOptions, Seen

if TYPE_CHECKING:
    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.nats_cli_kv import CliBuckets
    from tests.interop.clients.ours import Ours

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_go, pytest.mark.needs_node]

# Longer than a test: nothing here may depend on an expiry.
TTL_S = 60
LIMIT_S = 30.0
# Renewed each third of it.
SHORT_TTL_S = 5


@pytest.fixture
def options(stream_name: str) -> BucketOptions:
    """A bucket that can keep locks."""
    return BucketOptions(name=stream_name, marker_ttl_s=TTL_S)


async def test_lock_is_a_key_that_others_can_read_and_not_take(
    ours: Ours,
    cli_buckets: CliBuckets,
    js_buckets: KvClient,
    options: BucketOptions,
) -> None:
    await cli_buckets.create_bucket(options)
    bucket = await ours.js.kv.get(options.name)

    async with bucket.lock("jobs.nightly", ttl=TTL_S, holder="me, été") as lock:
        for client in (cli_buckets, js_buckets):
            assert await client.keys(options.name) == ["jobs.nightly"]
            claim = json.loads(await client.get(options.name, "jobs.nightly") or b"")
            assert (claim["holder"], claim["ttl"]) == ("me, été", TTL_S)
            with pytest.raises(RefusedError):
                await client.create(options.name, "jobs.nightly", b"mine")
        seen = await cli_buckets.watch(options.name, 1)
        assert [(each.key, each.operation) for each in seen] == [("jobs.nightly", "PUT")]
        assert lock.is_held

    for client in (cli_buckets, js_buckets):
        assert await client.keys(options.name) == []
        assert await client.get(options.name, "jobs.nightly") is None


async def test_key_of_the_cli_is_a_lock_that_it_holds(
    ours: Ours, cli_buckets: CliBuckets, options: BucketOptions
) -> None:
    await cli_buckets.create_bucket(options)
    await cli_buckets.create(options.name, "jobs", b"a shell script", ttl_s=TTL_S)
    bucket = await ours.js.kv.get(options.name)

    with pytest.raises(LockHeldError):
        async with bucket.lock("jobs", ttl=TTL_S, timeout=0):
            pytest.fail("two hold it")

    async def take() -> str:
        async with bucket.lock("jobs", ttl=TTL_S, timeout=LIMIT_S):
            return "taken"

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(take())
        await cli_buckets.delete(options.name, "jobs")
    assert waiting.result() == "taken"


async def test_lock_that_another_client_deletes_is_lost(
    ours: Ours, cli_buckets: CliBuckets, options: BucketOptions
) -> None:
    """An operator can free a lock whose holder does not end: the next renewal tells the holder."""
    await cli_buckets.create_bucket(options)
    bucket = await ours.js.kv.get(options.name)

    async def hold() -> None:
        async with bucket.lock("jobs", ttl=SHORT_TTL_S, on_loss="tell") as lock:
            await cli_buckets.delete(options.name, "jobs")
            async with asyncio.timeout(LIMIT_S):
                await lock.lost()

    with pytest.raises(LockLostError):
        await hold()

    assert await cli_buckets.history(options.name, "jobs") == [Seen("jobs", "DEL")]
    await cli_buckets.create(options.name, "jobs", b"mine")
