"""Findings 1, 20 and 21: what a watch can be asked for, and that it leaves nothing.

20: a watch of nats-py 2.16 takes one filter, no `updates_only`, no start at a revision, and hands
out values where only metadata is asked for. 21: its watchers leave their consumers for minutes, and
each `purge_deletes` a subscription too. 1: none of it works with the newer form of ack subjects.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.streams import consumer_count

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream, KeyValue

pytestmark = pytest.mark.asyncio

CALLS = 40
NEW_FORM = "feature_flags { js_ack_fc_v2: true }"


async def filled(js: JetStream, name: str) -> KeyValue:
    """Return a bucket with the revisions 1 to 6, one of them a marker."""
    bucket = await js.kv.create(name, history=5)
    await bucket.put("a.1", b"old")
    await bucket.put("a.1", b"new")
    await bucket.put("b.1", b"v")
    await bucket.put("c", b"v")
    await bucket.put("gone", b"v")
    await bucket.delete("gone")
    return bucket


@pytest.mark.proves("1d", "watch many filters")
@pytest.mark.finding(20)
async def test_watch_follows_many_filters(js: JetStream, stream_name: str) -> None:
    bucket = await filled(js, stream_name)

    async with bucket.watch("a.*", "c") as watch:
        initial = [(entry.key, entry.value) async for entry in watch.initial()]
        await bucket.put("b.1", b"unseen")
        await bucket.put("a.2", b"seen")
        entry = await anext(watch)

    assert initial == [("a.1", b"new"), ("c", b"v")]
    assert (entry.key, entry.value) == ("a.2", b"seen")


@pytest.mark.proves("1d", "include_history / ignore_deletes / meta_only / updates_only")
@pytest.mark.finding(20)
async def test_watch_of_updates_begins_with_the_next_one(js: JetStream, stream_name: str) -> None:
    bucket = await filled(js, stream_name)

    async with bucket.watch(updates_only=True) as watch:
        assert [entry async for entry in watch.initial()] == []
        await bucket.put("c", b"next")
        entry = await anext(watch)

    assert (entry.key, entry.value, entry.revision) == ("c", b"next", 7)


@pytest.mark.finding(20)
async def test_watch_goes_on_after_a_revision(js: JetStream, stream_name: str) -> None:
    bucket = await filled(js, stream_name)

    async with bucket.watch(resume_after=2) as watch:
        found = [entry.revision async for entry in watch.initial()]

    assert found == [3, 4, 5, 6]


@pytest.mark.finding(20)
async def test_watch_of_metadata_gets_no_values(js: JetStream, stream_name: str) -> None:
    bucket = await filled(js, stream_name)

    async with bucket.watch(meta_only=True) as watch:
        found = [(entry.key, entry.value, entry.operation) async for entry in watch.initial()]

    assert found == [
        ("a.1", b"", "PUT"),
        ("b.1", b"", "PUT"),
        ("c", b"", "PUT"),
        ("gone", b"", "DEL"),
    ]


@pytest.mark.finding(20)
async def test_watch_replays_nothing_when_its_consumer_is_deleted(
    js: JetStream, stream_name: str
) -> None:
    """nats-py begins again with the whole history when that happens before its first entry."""
    bucket = await js.kv.create(stream_name, history=64)
    for number in range(5):
        await bucket.put("k", b"%d" % number)

    async with bucket.watch() as watch:
        await delete_consumers(bucket)
        first = await anext(watch)
        await delete_consumers(bucket)
        await bucket.put("k", b"5")
        second = await anext(watch)

    assert [(entry.value, entry.revision) for entry in (first, second)] == [(b"4", 5), (b"5", 6)]


async def delete_consumers(bucket: KeyValue) -> None:
    """Delete the consumers of a bucket's stream, as an administrator does."""
    async for name in bucket.stream.consumers.names():
        await bucket.stream.consumers.delete(name)


async def read_keys(bucket: KeyValue) -> None:
    """List the keys."""
    assert len([key async for key in bucket.keys()]) == 3


async def leave_keys(bucket: KeyValue) -> None:
    """Leave the listing at the first key."""
    keys = bucket.keys()
    await anext(keys)
    await keys.aclose()


async def leave_a_watch(bucket: KeyValue) -> None:
    """Leave a watch at its first entry."""
    async with bucket.watch() as watch:
        await anext(watch)


async def purge_deletes(bucket: KeyValue) -> None:
    """Purge the markers, which are too young for it: the history before them goes."""
    await bucket.purge_deletes(older_than=60)


@pytest.mark.sampled_variants
@pytest.mark.finding(21)
@pytest.mark.parametrize(
    "call", [read_keys, leave_keys, leave_a_watch, purge_deletes], ids=lambda f: f.__name__
)
async def test_forty_calls_on_a_bucket_leave_nothing(
    js: JetStream, stream_name: str, call: Callable[[KeyValue], Awaitable[None]]
) -> None:
    bucket = await filled(js, stream_name)
    tasks = asyncio.all_tasks()

    for _ in range(CALLS):
        await call(bucket)

    async def is_clean() -> bool:
        return await consumer_count(bucket.stream) == 0 and asyncio.all_tasks() <= tasks

    await eventually_async(is_clean)


@pytest.mark.finding(1)
async def test_bucket_is_watched_with_the_new_ack_form() -> None:
    with NatsServer(config=NEW_FORM) as server:
        async with connect(server.url) as js, asyncio.timeout(30):
            bucket = await filled(js, "settings")
            async with bucket.watch() as watch:
                initial = [entry.revision async for entry in watch.initial()]
                await bucket.put("k", b"v")
                entry = await anext(watch)
            keys = sorted([key async for key in bucket.keys()])
            box = await js.objects.create("files")
            await box.put("o", b"x" * 300_000)
            data = await box.get("o")

    assert (initial, entry.revision) == ([2, 3, 4, 6], 7)
    assert keys == ["a.1", "b.1", "c", "k"]
    assert data == b"x" * 300_000
