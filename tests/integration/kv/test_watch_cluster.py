"""Watches of a replicated bucket, whose leader changes and whose replicas lag."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing, suppress
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import NatsStreamError
from tests.support.clusters import step_down
from tests.support.watches import fold, initial, names, take

if TYPE_CHECKING:
    from natsstream import Connection, JetStream
    from natsstream.kv.key_value import KeyValue
    from natsstream.testing import NatsCluster

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

KEYS = 20


def impatient(cluster: NatsCluster) -> Connection:
    """Describe a connection that asks again soon: an election loses what is asked meanwhile."""
    return connect(cluster.urls, request_timeout=2, reconnect_timeout=60)


async def opened(js: JetStream, name: str) -> KeyValue:
    """Open a bucket: an election, or a node that stands still, may lose the question."""
    while True:
        with suppress(NatsStreamError):
            return await js.kv.get(name)
        await asyncio.sleep(0.05)


async def put(kv: KeyValue, key: str, value: bytes) -> int:
    """Write a key, whatever the cluster does meanwhile; returns the last revision of it."""
    while True:
        with suppress(NatsStreamError):
            return await kv.put(key, value)


async def ensure(js: JetStream, name: str, **fields: Any) -> KeyValue:
    while True:
        try:
            return await js.kv.ensure(name, replicas=3, **fields)
        except NatsStreamError as error:
            if not error.retryable:
                raise


@pytest.mark.proves("1d", "watch: key/wildcard")
async def test_watch_goes_on_when_the_leader_changes(
    nats_cluster: NatsCluster, cluster_js: JetStream, stream_name: str
) -> None:
    await ensure(cluster_js, stream_name, history=64)
    async with impatient(nats_cluster) as js, impatient(nats_cluster) as other:
        kv = await opened(js, stream_name)
        writes = await opened(other, stream_name)
        is_over = False

        async def write() -> None:
            number = 0
            while not is_over:
                await put(writes, f"k{number % KEYS}", b"%d" % number)
                number += 1
                await asyncio.sleep(0.001)
            await put(writes, "end", b"")

        writer = asyncio.ensure_future(write())
        async with kv.watch() as watch:
            entries = await take(watch, 20)
            for _ in range(2):
                await step_down(cluster_js, nats_cluster, f"KV_{stream_name}")
                entries += await take(watch, 20)
            is_over = True
            while entries[-1].key != "end":
                entries += await take(watch, 1)
        await writer
        kept = [entry.revision async for entry in kv.history()]
        state = {entry.key: entry.value async for entry in kv.entries()}

    revisions = [entry.revision for entry in entries]
    assert revisions == sorted(set(revisions))
    # The writer asks again after a lost answer, so revisions tell what was stored.
    assert {*revisions} >= {each for each in kept if each >= revisions[0]}
    assert fold(entries) == state


async def test_what_was_acknowledged_is_among_the_initial_entries(
    cluster_js: JetStream, stream_name: str
) -> None:
    """The consumer may sit on a replica that has not got it yet: the leader is asked."""
    kv = await ensure(cluster_js, stream_name)

    async with kv.watch() as empty:
        assert await initial(empty) == []
    for number in range(10):
        await put(kv, f"k{number}", b"x")
        async with kv.watch() as watch:
            assert len(await initial(watch)) == number + 1
        assert len(await names(kv)) == number + 1
    assert len(await names(kv, "k7", "k8", "k2")) == 3
    assert len(await names(kv, *(f"k{number}" for number in range(20)))) == 10
    async with kv.watch(*(f"new{number}" for number in range(20))) as none:
        assert await initial(none) == []
        await put(kv, "new7", b"x")
        assert [entry.key for entry in await take(none, 1)] == ["new7"]


async def test_listings_read_where_every_acknowledged_write_is_known(
    cluster_js: JetStream, stream_name: str
) -> None:
    """On another replica, which may lag, a key that was just deleted might still be listed."""
    kv = await ensure(cluster_js, stream_name)
    await put(kv, "a", b"1")
    while True:
        before = await leader_of(kv)
        async with AsyncExitStack() as stack:
            for _ in range(4):
                keys = await stack.enter_async_context(aclosing(kv.keys()))
                entries = await stack.enter_async_context(aclosing(kv.entries("a")))
                assert (await anext(keys), (await anext(entries)).value) == ("a", b"1")
            infos = [info async for info in kv.stream.consumers.list()]
        if await leader_of(kv) == before:
            break

    assert {info.cluster.leader for info in infos if info.cluster} == {before}
    assert await names(kv) == ["a"]


async def leader_of(kv: KeyValue) -> str:
    cluster = (await kv.stream.info()).cluster
    assert cluster is not None
    return cluster.leader


async def test_resumed_watch_goes_on_at_another_leader(
    nats_cluster: NatsCluster, cluster_js: JetStream, stream_name: str
) -> None:
    kv = await ensure(cluster_js, stream_name, history=5)
    for number in range(9):
        await put(kv, f"k{number % 3}", b"%d" % number)
    async with kv.watch(include_history=True) as watch:
        entries = await take(watch, 4)
        place, identity = watch.revision, watch.created_ns
    await step_down(cluster_js, nats_cluster, f"KV_{stream_name}")

    async with kv.watch(resume_after=place, created_ns=identity) as watch:
        entries += await initial(watch)

    kept = [entry.revision async for entry in kv.history()]
    assert [entry.revision for entry in entries] == kept
