"""A local mirror of a bucket: what it answers, how stale it is, when it ends."""

from __future__ import annotations

import asyncio
import math
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

import natsstream as ns
from natsstream.errors import (
    BucketNotFoundError,
    CacheFullError,
    ConfigError,
    KeyNameError,
    RequestTimeoutError,
    UsageError,
)
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream import JetStream, KeyValue
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def kv(js: JetStream, stream_name: str) -> KeyValue:
    """A bucket."""
    return await js.kv.create(stream_name, limit_marker_ttl=1, storage="memory")


async def until(condition: Callable[[], bool], *, within_s: float = 20) -> None:
    """Wait until something is so."""

    async def ask() -> bool:
        return condition()

    await eventually_async(ask, within_s=within_s)


async def test_a_mirror_has_all_that_the_bucket_held(kv: KeyValue) -> None:
    for number in range(20):
        await kv.put(f"k.{number}", b"%d" % number)
    await kv.delete("k.3")
    async with kv.cached() as mirror:
        assert mirror.is_caught_up
        assert mirror.is_connected
        assert mirror.staleness < 60
        assert len(mirror) == 19
        assert mirror.keys() == [f"k.{number}" for number in range(20) if number != 3]
        assert list(mirror) == mirror.keys()
        assert dict(mirror.items())["k.4"].value == b"4"
        entry = mirror.get("k.5")
        assert entry is not None
        assert entry.value == b"5"
        assert mirror.get("k.3") is None
        assert "k.5" in mirror
        assert "k.3" not in mirror
        assert mirror.get("nothing") is None
        assert mirror.revision == 21


async def test_a_mirror_of_an_empty_bucket_is_caught_up(kv: KeyValue) -> None:
    async with kv.cached() as mirror:
        assert mirror.is_caught_up
        assert len(mirror) == 0


async def test_own_writes_are_read_once_they_are_waited_for(kv: KeyValue) -> None:
    async with kv.cached() as mirror:
        revision = await kv.put("a", b"1")
        await mirror.wait_for(revision)
        entry = mirror.get("a")
        assert entry is not None
        assert (entry.value, entry.revision, mirror.revision) == (b"1", revision, revision)


async def test_writes_through_the_mirror_are_read_at_once(kv: KeyValue) -> None:
    async with kv.cached("m.>") as mirror:
        first = await mirror.create("m.a", b"1")
        second = await mirror.update("m.a", b"2", revision=first)
        entry = mirror.get("m.a")
        assert entry is not None
        assert (entry.value, entry.revision) == (b"2", second)
        await mirror.delete("m.a")
        assert mirror.get("m.a") is None
        await mirror.put("m.b", b"3")
        assert mirror.keys() == ["m.b"]
        await mirror.purge("m.b")
        assert mirror.keys() == []
        assert mirror.size_bytes == 0
        await mirror.put("other", b"4")  # It is not mirrored, so there is nothing to wait for.
        assert "other" not in mirror
    entry = await kv.get("other")
    assert entry is not None


async def test_waiting_for_what_is_not_mirrored_ends_at_its_deadline(kv: KeyValue) -> None:
    async with kv.cached("m.*") as mirror:
        revision = await kv.put("other", b"1")
        with pytest.raises(RequestTimeoutError, match="has not seen"):
            await mirror.wait_for(revision, timeout=0.2)


async def test_an_expired_key_is_not_answered(kv: KeyValue) -> None:
    async with kv.cached() as mirror:
        await mirror.create("a", b"1", ttl=1)
        assert mirror.revision >= 1  # It was here, however long this machine stood still since.
        await until(lambda: "a" not in mirror)


async def test_a_key_expires_here_while_the_server_is_away(fresh_server: NatsServer) -> None:
    async with ns.connect(fresh_server.url, reconnect_timeout=60) as js:
        mortal = await js.kv.create("mortal", limit_marker_ttl=1)
        aged = await js.kv.create("aged", ttl=2)
        async with mortal.cached() as one, aged.cached() as two:
            await one.put("stays", b"")
            await one.create("a", b"1", ttl=2)
            await two.put("a", b"1")
            assert one.revision >= 2
            assert two.revision >= 1
            await asyncio.to_thread(fresh_server.pause)
            await until(lambda: "a" not in one and "a" not in two)
            assert one.keys() == ["stays"]
            assert len(two) == 0
            assert one.staleness > 0
            await asyncio.to_thread(fresh_server.resume)


async def test_changes_tell_the_newest_of_each_key_and_deletions(kv: KeyValue) -> None:
    await kv.put("old", b"0")
    async with kv.cached() as mirror, aclosing(mirror.changes()) as changes:
        waiting = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        await mirror.put("a", b"1")
        first = await waiting
        assert (first.key, first.value) == ("a", b"1")
        await mirror.put("b", b"1")
        await mirror.put("b", b"2")
        await mirror.delete("a")
        second, third = await anext(changes), await anext(changes)
        assert (second.key, second.value) == ("b", b"2")
        assert (third.key, third.operation) == ("a", "DEL")


async def test_keys_that_go_without_a_marker_are_found_by_a_listing(kv: KeyValue) -> None:
    await kv.put("a", b"1")
    await kv.put("b", b"1")
    async with kv.cached() as mirror:
        await kv.stream.purge(subject=f"$KV.{kv.name}.a")
        assert await mirror.resync() == 1
        assert mirror.keys() == ["b"]


async def test_a_mirror_goes_on_after_a_restart_and_drops_what_went_meanwhile(
    fresh_server: NatsServer,
) -> None:
    async with (
        ns.connect(fresh_server.url, reconnect_timeout=60) as js,
        ns.connect(fresh_server.url, reconnect_timeout=60) as other,
    ):
        kv = await js.kv.create("b")
        async with kv.cached() as mirror:
            await mirror.put("a", b"1")
            await mirror.put("b", b"1")
            await asyncio.to_thread(fresh_server.kill)
            await asyncio.to_thread(fresh_server.start)
            theirs = await other.kv.ensure("b")
            # No watch is told of this: it leaves no marker.
            await theirs.stream.purge(subject="$KV.b.a")
            await theirs.put("c", b"1")
            await until(lambda: mirror.keys() == ["b", "c"], within_s=30)
            assert mirror.is_connected


async def test_a_mirror_that_would_grow_too_large_ends_with_an_error(kv: KeyValue) -> None:
    async with kv.cached(max_bytes=2_000) as mirror:
        waiting = asyncio.ensure_future(mirror.wait_for(1_000))
        for number in range(10):
            await kv.put(f"k{number}", bytes(100))
        with pytest.raises(CacheFullError) as caught:
            await waiting
        assert caught.value.limit_bytes == 2_000
        with pytest.raises(CacheFullError):
            mirror.get("k0")
    with pytest.raises(CacheFullError):
        async with kv.cached(max_bytes=2_000):
            pass


async def test_a_deleted_bucket_ends_its_mirror(js: JetStream, kv: KeyValue) -> None:
    async with kv.cached() as mirror:
        await mirror.put("a", b"1")
        await js.kv.delete(kv.name)
        with pytest.raises(BucketNotFoundError):
            await mirror.wait_for(1_000, timeout=20)
        with pytest.raises(BucketNotFoundError):
            mirror.get("a")


async def test_a_mirror_is_for_its_block_and_leaves_nothing_behind(kv: KeyValue) -> None:
    mirror = kv.cached()
    assert mirror.staleness == math.inf
    assert not mirror.is_caught_up
    with pytest.raises(UsageError, match="not entered"):
        mirror.get("a")
    async with mirror:
        assert (await kv.stream.info()).state.consumer_count == 1
    with pytest.raises(UsageError, match="was left"):
        mirror.get("a")
    with pytest.raises(UsageError, match="once"):
        await mirror.__aenter__()

    async def is_clean() -> bool:
        return (await kv.stream.info()).state.consumer_count == 0

    await eventually_async(is_clean, within_s=20)


async def test_wrong_options_are_refused(kv: KeyValue) -> None:
    with pytest.raises(KeyNameError):
        kv.cached("a..b")
    with pytest.raises(ConfigError, match="max_bytes"):
        kv.cached(max_bytes=0)
    with pytest.raises(ConfigError, match="timeout"):
        kv.cached(timeout=0)
