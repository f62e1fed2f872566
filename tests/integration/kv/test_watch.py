"""Watches of a bucket: what they begin with, what they go on with, and what they refuse."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream.errors import (
    BucketNotFoundError,
    ConfigError,
    KeyNameError,
    StreamRecreatedError,
    UsageError,
)
from natsstream.read import session
from natsstream.read.latest.wanted import FILTERS_MAX
from tests.support.eventually import eventually_async
from tests.support.watches import (
    consumer_count,
    fold,
    initial,
    names,
    no_consumers_stay,
    take,
    told,
)

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.kv.key_value import KeyValue

pytestmark = pytest.mark.asyncio


async def bucket(js: JetStream, name: str, **fields: Any) -> KeyValue:
    return await js.kv.create(name, storage="memory", **fields)


@pytest.mark.proves("1d", "watch: key/wildcard")
async def test_watch_begins_with_the_newest_of_each_key_and_goes_on(
    js: JetStream, stream_name: str
) -> None:
    kv = await bucket(js, stream_name, history=3)
    for key, value in (("a", b"1"), ("b", b"2"), ("a", b"3")):
        await kv.put(key, value)

    async with kv.watch() as watch:
        first = await initial(watch)
        was_caught_up = watch.is_caught_up
        await kv.put("c", b"4")
        await kv.delete("b")
        await kv.purge("a")
        later = await take(watch, 3)

    assert told(first) == [("b", "PUT", b"2"), ("a", "PUT", b"3")]
    assert [entry.delta for entry in first] == [1, 0]
    assert was_caught_up
    assert told(later) == [("c", "PUT", b"4"), ("b", "DEL", b""), ("a", "PURGE", b"")]
    assert [entry.revision for entry in later] == [4, 5, 6]
    assert {entry.bucket for entry in later} == {stream_name}


@pytest.mark.proves("1d", "end-of-initial-data signal")
async def test_initial_ends_when_there_is_nothing(js: JetStream, stream_name: str) -> None:
    """A bucket without keys, and filters that match none of them."""
    kv = await bucket(js, stream_name)

    async with kv.watch() as empty:
        assert await initial(empty) == []
        assert empty.is_caught_up
    await kv.put("a", b"1")
    async with kv.watch("b.*", "c") as none, kv.watch(updates_only=True) as updates:
        assert await initial(none) == []
        assert await initial(updates) == []
        await kv.put("b.x", b"2")
        assert told(await take(none, 1)) == told(await take(updates, 1)) == [("b.x", "PUT", b"2")]


async def test_empty_value_is_a_value(js: JetStream, stream_name: str) -> None:
    kv = await bucket(js, stream_name)
    await kv.put("a", b"")

    async with kv.watch(ignore_deletes=True) as watch:
        assert told(await initial(watch)) == [("a", "PUT", b"")]


@pytest.mark.proves("1d", "watch: key/wildcard")
@pytest.mark.proves("1d", "watch many filters")
async def test_filters_choose_and_may_overlap(js: JetStream, stream_name: str) -> None:
    kv = await bucket(js, stream_name)
    for key in ("user.1", "superuser.1", "user.1.name", "order.1", "user"):
        await kv.put(key, key.encode())

    async def keys(*filters: str) -> list[str]:
        async with kv.watch(*filters) as watch:
            return [entry.key async for entry in watch.initial()]

    assert await keys("user.*") == ["user.1"]
    assert await keys("user.>") == ["user.1", "user.1.name"]
    assert await keys("user") == ["user"]
    assert await keys("*.1", "user.>", "user.1", "user.1") == [
        "user.1", "superuser.1", "user.1.name", "order.1",
    ]  # fmt: skip
    assert await keys(">", "user") == ["user.1", "superuser.1", "user.1.name", "order.1", "user"]


@pytest.mark.proves("1d", "watch many filters")
async def test_as_many_filters_as_are_allowed_work(js: JetStream, stream_name: str) -> None:
    kv = await bucket(js, stream_name)
    await kv.put("key.7", b"7")
    await kv.put("other", b"8")

    async with kv.watch(*(f"key.{number}" for number in range(FILTERS_MAX))) as watch:
        assert told(await initial(watch)) == [("key.7", "PUT", b"7")]
    with pytest.raises(ConfigError, match="1001 filters"):
        kv.watch(*(f"key.{number}" for number in range(FILTERS_MAX + 1)))


@pytest.mark.proves("1d", "include_history / ignore_deletes / meta_only / updates_only")
async def test_history_comes_in_the_order_of_the_revisions(js: JetStream, stream_name: str) -> None:
    kv = await bucket(js, stream_name, history=2)
    for key, value in (("a", b"1"), ("b", b"2"), ("a", b"3"), ("a", b"4")):
        await kv.put(key, value)
    await kv.delete("b")

    async with kv.watch(include_history=True) as watch:
        entries = await initial(watch)

    assert [(entry.key, entry.revision) for entry in entries] == [
        ("b", 2), ("a", 3), ("a", 4), ("b", 5),
    ]  # fmt: skip
    assert [entry.delta for entry in entries] == [3, 2, 1, 0]


@pytest.mark.proves("1d", "include_history / ignore_deletes / meta_only / updates_only")
async def test_deletes_are_left_out_on_request(js: JetStream, stream_name: str) -> None:
    kv = await bucket(js, stream_name)
    await kv.put("a", b"1")
    await kv.delete("a")
    await kv.put("b", b"2")

    async with kv.watch(ignore_deletes=True) as watch:
        first = await initial(watch)
        await kv.purge("b")
        await kv.put("c", b"3")
        later = await take(watch, 1)

    assert told(first) == [("b", "PUT", b"2")]
    assert told(later) == [("c", "PUT", b"3")]


@pytest.mark.proves("1d", "include_history / ignore_deletes / meta_only / updates_only")
async def test_meta_only_leaves_out_the_values(js: JetStream, stream_name: str) -> None:
    kv = await bucket(js, stream_name)
    await kv.put("a", b"1" * 1_000)
    await kv.delete("b")

    async with kv.watch(meta_only=True) as watch:
        entries = await initial(watch)

    assert told(entries) == [("a", "PUT", b""), ("b", "DEL", b"")]


@pytest.mark.proves("1d", "limit marker TTL")
async def test_expired_keys_are_told_as_purged(js: JetStream, stream_name: str) -> None:
    """The marker is the server's own; the watch that begins later has it as well."""
    kv = await bucket(js, stream_name, limit_marker_ttl=60)

    async with kv.watch() as watch:
        before = await initial(watch)
        await kv.create("lease", b"1", ttl=1)  # It lives while it is watched, however slowly.
        entries = await take(watch, 2)
    async with kv.watch() as watch, kv.watch(ignore_deletes=True) as values:
        again = await initial(watch)
        left = await initial(values)

    assert before == []
    assert told(entries) == [("lease", "PUT", b"1"), ("lease", "PURGE", b"")]
    assert told(again) == [("lease", "PURGE", b"")]
    assert left == []
    assert await names(kv) == []


@pytest.mark.proves("1d", "resume from revision")
async def test_watch_goes_on_after_a_revision(js: JetStream, stream_name: str) -> None:
    """The place is right among the initial entries too, and behind the last revision."""
    kv = await bucket(js, stream_name, history=5)
    for number in range(6):
        await kv.put(f"k{number % 3}", b"%d" % number)

    async with kv.watch(include_history=True) as watch:
        found = await take(watch, 2)
        place, identity = watch.revision, watch.created_ns
    async with kv.watch(resume_after=place, created_ns=identity) as watch:
        found += await initial(watch)
        place = watch.revision
    async with kv.watch(resume_after=place, created_ns=identity) as watch:
        assert await initial(watch) == []
        await kv.put("new", b"6")
        found += await take(watch, 1)
    async with kv.watch(resume_after=0) as watch:
        everything = await initial(watch)

    assert [entry.revision for entry in found] == [1, 2, 3, 4, 5, 6, 7]
    assert told(everything) == told(found)


async def test_newest_entries_that_were_not_taken_come_after_the_place(
    js: JetStream, stream_name: str
) -> None:
    kv = await bucket(js, stream_name)
    for number in range(5):
        await kv.put(f"k{number}", b"%d" % number)

    async with kv.watch() as watch:
        found = await take(watch, 2)
        place = watch.revision
    async with kv.watch(resume_after=place) as watch:
        found += await initial(watch)

    assert [entry.key for entry in found] == [f"k{number}" for number in range(5)]


@pytest.mark.proves("1d", "end-of-initial-data signal")
async def test_key_that_is_replaced_during_the_beginning_is_part_of_it(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two messages are under way at most, so the last keys are replaced before their turn."""
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 2)
    kv = await bucket(js, stream_name)
    for number in range(20):
        await kv.put(f"k{number}", b"old")

    async with kv.watch() as watch:
        entries = await take(watch, 3)
        await kv.put("k19", b"new")
        await kv.put("k0", b"new")
        await kv.put("more", b"new")
        entries += await initial(watch)

    assert fold(entries) == {
        **{f"k{number}": b"old" for number in range(1, 19)},
        "k0": b"new", "k19": b"new", "more": b"new",
    }  # fmt: skip
    assert [entry.revision for entry in entries] == sorted({entry.revision for entry in entries})


async def test_deleted_bucket_ends_the_watch(js: JetStream, stream_name: str) -> None:
    kv = await bucket(js, stream_name)
    await kv.put("a", b"1")

    async with kv.watch() as watch:
        await initial(watch)
        waiting = asyncio.ensure_future(anext(watch))
        await eventually_async(lambda: is_followed(kv), within_s=30)
        await js.kv.delete(stream_name)
        with pytest.raises(BucketNotFoundError):
            await waiting
    with pytest.raises(BucketNotFoundError):
        async with kv.watch():
            pass


async def is_followed(kv: KeyValue) -> bool:
    return await consumer_count(kv) == 1


async def test_bucket_that_was_made_again_is_another_one(js: JetStream, stream_name: str) -> None:
    """To a watch that follows, and to places that are kept: with the identity, and without."""
    kv = await bucket(js, stream_name)
    await kv.put("a", b"1")
    await kv.put("a", b"2")

    async with kv.watch() as watch:
        await initial(watch)
        place, identity = watch.revision, watch.created_ns
        await js.kv.delete(stream_name)
        await bucket(js, stream_name)
        with pytest.raises(StreamRecreatedError):
            await anext(watch)
    with pytest.raises(StreamRecreatedError):
        async with kv.watch(resume_after=place, created_ns=identity):
            pass
    with pytest.raises(StreamRecreatedError, match="ends at 0, before 2"):
        async with kv.watch(resume_after=place):
            pass
    await no_consumers_stay(kv)


async def test_place_beyond_the_last_revision_is_not_blamed_on_a_bucket_that_is_the_same(
    js: JetStream, stream_name: str
) -> None:
    kv = await bucket(js, stream_name)
    revision = await kv.put("a", b"1")
    async with kv.watch() as watch:
        identity = watch.created_ns
    with pytest.raises(StreamRecreatedError, match=f"ends at {revision}, before 999") as caught:
        async with kv.watch(resume_after=999, created_ns=identity):
            pass

    assert "the number is wrong" in caught.value.detail
    assert "deleted and created" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"include_history": True, "updates_only": True}, ConfigError, "two starts"),
        ({"resume_after": 3, "updates_only": True}, ConfigError, "two starts"),
        ({"resume_after": 0, "include_history": True}, ConfigError, "two starts"),
        ({"resume_after": -1}, ConfigError, "resume_after"),
        ({"resume_after": "3"}, ConfigError, "resume_after"),
        ({"resume_after": 2**64 - 1}, ConfigError, "resume_after"),
        ({"created_ns": 0}, ConfigError, "created_ns"),
        ({"created_ns": 2**63}, ConfigError, "created_ns"),
        ({"meta_only": 1}, ConfigError, "meta_only"),
        ({"ignore_deletes": None}, ConfigError, "ignore_deletes"),
        ({"include_history": "yes"}, ConfigError, "include_history"),
    ],
)
async def test_options_that_can_not_work_are_refused(
    js: JetStream, stream_name: str, options: Any, error: type[UsageError], text: str
) -> None:
    kv = await bucket(js, stream_name)

    with pytest.raises(error, match=text):
        kv.watch(**options)


@pytest.mark.parametrize("key", ["", ".", "a..b", "a b", "a.>.b", "a*", "ä", "a\n", 7, None, b"a"])
async def test_filters_that_are_none_are_refused(js: JetStream, stream_name: str, key: Any) -> None:
    kv = await bucket(js, stream_name)

    with pytest.raises(KeyNameError):
        kv.watch("fine", key)
    with pytest.raises(KeyNameError):
        await anext(kv.keys(key))
    with pytest.raises(KeyNameError):
        await anext(kv.history(key))


async def test_watch_that_is_not_open_says_so(js: JetStream, stream_name: str) -> None:
    kv = await bucket(js, stream_name)
    watch = kv.watch()

    with pytest.raises(UsageError, match="the watch is not open"):
        await anext(watch)
    with pytest.raises(UsageError, match="the watch is not open"):
        _ = watch.revision
    with pytest.raises(UsageError, match="the watch is not open"):
        watch.events()
    async with watch:
        pass
    with pytest.raises(UsageError, match="a watch opens once"):
        async with watch:
            pass
