"""A local mirror when something breaks: what it says of itself, and what ends it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

import natsstream as ns
from natsstream.errors import CodecError, NatsStreamError, RequestTimeoutError, UsageError
from natsstream.kv.bucket import Bucket
from natsstream.kv.cache.cached import CachedKeyValue
from natsstream.kv.cache.sync import CacheOptions
from natsstream.testing import FaultProxy
from tests.support.buckets import bucket_of
from tests.support.clusters import step_down
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import Entry, JetStream, KeyValue
    from natsstream.testing import NatsCluster, NatsNode, NatsServer

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def kv(js: JetStream, stream_name: str) -> KeyValue:
    """A bucket."""
    return await js.kv.create(stream_name, storage="memory")


def looking_often(kv: KeyValue, *filters: str) -> CachedKeyValue:
    """Make a mirror that looks at the server ten times a second."""
    return CachedKeyValue(bucket_of(kv), ns.RAW, filters, CacheOptions(look_every_s=0.1))


async def test_what_is_hidden_by_a_break_is_never_answered_as_fresh(
    server: NatsNode, kv: KeyValue
) -> None:
    """What went without a marker is found by a listing; until then the mirror says it is stale."""
    for number in range(500):
        await kv.put(f"k{number}", b"")
    with FaultProxy(server.port) as proxy:
        async with (
            ns.connect(proxy.url, reconnect_timeout=60) as mine,
            (await mine.kv.get(kv.name)).cached() as mirror,
        ):
            proxy.cut()
            await kv.stream.purge(subject=f"$KV.{kv.name}.k7")
            purged_at = time.monotonic()
            await kv.put("later", b"")
            proxy.heal()
            async with asyncio.timeout(30):
                while True:
                    known = time.monotonic() - mirror.staleness
                    is_hidden = "k7" not in mirror
                    assert is_hidden or known < purged_at
                    if is_hidden and known > purged_at:
                        break
                    await asyncio.sleep(0)
            assert "later" in mirror
            assert len(mirror) == 500


async def test_staleness_grows_while_the_server_does_not_answer(fresh_server: NatsServer) -> None:
    async with ns.connect(fresh_server.url, reconnect_timeout=60) as js:
        kv = await js.kv.create("b")
        async with looking_often(kv) as mirror:
            await mirror.put("a", b"1")
            await asyncio.to_thread(fresh_server.pause)
            paused_at = time.monotonic()
            with pytest.raises(RequestTimeoutError, match="has not seen"):
                await mirror.wait_for(1_000, timeout=0.3)
            assert time.monotonic() - mirror.staleness <= paused_at
            entry = mirror.get("a")
            assert entry is not None
            await asyncio.to_thread(fresh_server.resume)

            async def is_fresh() -> bool:
                return time.monotonic() - mirror.staleness > paused_at

            await eventually_async(is_fresh, within_s=30)


async def test_a_mirror_of_some_keys_is_fresh_also_when_others_are_written(kv: KeyValue) -> None:
    async with looking_often(kv, "mine.*") as mirror:
        began = time.monotonic()
        await kv.put("theirs", b"")

        async def is_fresh() -> bool:
            return time.monotonic() - mirror.staleness > began

        await eventually_async(is_fresh, within_s=30)
        assert mirror.revision == 0


async def test_a_mirror_with_many_filters_is_fresh_too(kv: KeyValue) -> None:
    """It asks no question for each of them."""
    async with looking_often(kv, *(f"mine{number}" for number in range(50))) as mirror:
        began = time.monotonic()
        await kv.put("theirs", b"")

        async def is_fresh() -> bool:
            return time.monotonic() - mirror.staleness > began

        await eventually_async(is_fresh, within_s=30)


async def test_a_slow_reader_of_changes_ends_with_what_the_bucket_has(kv: KeyValue) -> None:
    await kv.put("old", b"0")
    async with kv.cached() as mirror:
        changes = mirror.changes()
        writes = [kv.put(f"k{number % 10}", b"%d" % number) for number in range(300)]
        await asyncio.gather(*writes)
        for number in range(50):
            await kv.put(f"once{number}", b"")
            await kv.delete(f"once{number}")
        await kv.delete("old")
        await mirror.put("end", b"")
        told: list[Entry] = []
        async for entry in changes:
            told.append(entry)
            if entry.key == "end":
                break
        assert len(told) == 12
        assert [each.operation for each in told if each.key == "old"] == ["DEL"]
        held = {each.key: each for each in told if not each.is_deleted}
        assert {key: each.value for key, each in mirror.items()} == {
            key: each.value for key, each in held.items()
        }


async def test_changes_begin_with_the_call_and_end_with_the_block(kv: KeyValue) -> None:
    async with kv.cached() as mirror:
        changes = mirror.changes()
        await mirror.put("a", b"1")
        reading = asyncio.ensure_future(anext(changes))
        assert (await reading).key == "a"
        waiting = asyncio.ensure_future(anext(changes, None))
        await asyncio.sleep(0)
    assert await waiting is None


async def test_changes_tell_an_expired_key_before_its_next_value(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(f"{stream_name}_m", limit_marker_ttl=1, storage="memory")
    async with kv.cached() as mirror:
        await mirror.create("a", b"1", ttl=1)
        changes = mirror.changes()

        async def is_gone() -> bool:
            return mirror.keys() == []

        await eventually_async(is_gone, within_s=20)

        async def is_marked() -> bool:
            return (await kv.status()).revision == 2

        # A value that is stored just before the marker falls to it: see docs/decisions.md.
        await eventually_async(is_marked, within_s=20)
        await kv.put("a", b"2")
        newest = b""
        async with asyncio.timeout(20):
            async for entry in changes:
                newest = entry.value
                if newest == b"2":
                    break
        await mirror.put("end", b"")
        rest = await asyncio.wait_for(anext(changes), 20)
        assert rest.key == "end"


async def test_what_the_codec_can_not_read_says_which_key_and_ends_nothing(kv: KeyValue) -> None:
    mine = kv.with_codec(values=ns.Base64Values())
    async with mine.cached() as mirror:
        await mirror.put("a", b"1")
        revision = await kv.put("b", b"\xff not base64")
        await mirror.wait_for(revision, timeout=20)
        with pytest.raises(CodecError) as caught:
            mirror.get("b")
        assert (caught.value.key, caught.value.revision) == ("b", revision)
        entry = mirror.get("a")
        assert entry is not None
        assert entry.value == b"1"
        await mirror.put("a", b"2")
    async with mine.cached() as again:
        assert [each.key for each in again.unreadable] == ["b"]
    entry = await mine.get("a")
    assert entry is not None
    assert entry.value == b"2"


async def test_a_codec_that_raises_what_it_should_not_ends_the_mirror_too(kv: KeyValue) -> None:
    class Broken:
        def encode(self, value: bytes) -> bytes:
            return value

        def decode(self, stored: bytes) -> bytes:
            if stored == b"bad":
                raise LookupError("no such thing")
            return stored

    async with kv.with_codec(values=Broken()).cached() as mirror:
        waiting = asyncio.ensure_future(mirror.wait_for(1_000, timeout=20))
        await kv.put("a", b"bad")
        with pytest.raises(LookupError, match="no such thing"):
            await waiting
        with pytest.raises(LookupError):
            len(mirror)


async def test_a_foreign_key_that_is_no_text_ends_nothing(server: NatsNode, kv: KeyValue) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b'CONNECT {"verbose":false}\r\nPUB $KV.%s.\xff 1\r\nx\r\n' % kv.name.encode())
    await writer.drain()

    async def is_stored() -> bool:
        return (await kv.status()).values == 1

    await eventually_async(is_stored, within_s=20)
    writer.close()
    await writer.wait_closed()
    async with kv.cached() as mirror:
        await mirror.put("a", b"1")
        assert len(mirror) == 2
        assert "a" in mirror


async def test_a_mirror_that_was_left_writes_nothing(kv: KeyValue) -> None:
    mirror = kv.cached()
    with pytest.raises(UsageError, match="not entered"):
        await mirror.put("a", b"1")
    async with mirror:
        await mirror.put("a", b"1")
    with pytest.raises(UsageError, match="was left"):
        await mirror.put("a", b"2")
    with pytest.raises(UsageError, match="was left"):
        await mirror.delete("a")
    assert (await kv.status()).revision == 1


async def test_a_mirror_that_is_cancelled_anywhere_leaves_nothing_behind(kv: KeyValue) -> None:
    for number in range(50):
        await kv.put(f"k{number}", b"")

    async def use() -> None:
        async with kv.cached() as mirror:
            await mirror.wait_for(1_000, timeout=20)

    for steps in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55):
        task = asyncio.ensure_future(use())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def is_clean() -> bool:
        return (await kv.stream.info()).state.consumer_count == 0

    await eventually_async(is_clean, within_s=20)
    assert not [task for task in asyncio.all_tasks() if "Keeper" in repr(task)]


async def test_a_key_that_the_filters_leave_out_is_not_said_to_have_no_value(
    kv: KeyValue,
) -> None:
    await kv.put("theirs", b"1")
    async with kv.cached("mine.*") as mirror:
        assert mirror.get("mine.a") is None
        with pytest.raises(UsageError, match="mine"):
            mirror.get("theirs")
        assert "theirs" not in mirror
        with pytest.raises(ns.errors.KeyNameError):
            mirror.get("a..b")
        with pytest.raises(ns.errors.KeyNameError):
            mirror.get(["a"])  # pyright: ignore[reportArgumentType] - That is the point.
        assert ["a"] not in mirror


async def test_a_mirror_of_a_replicated_bucket_follows_across_a_change_of_leaders(
    cluster_js: JetStream, nats_cluster: NatsCluster, stream_name: str
) -> None:
    kv = await cluster_js.kv.ensure(stream_name, replicas=3, storage="memory")
    async with looking_often(kv) as mirror:
        for number in range(5):
            if number == 2:
                await step_down(cluster_js, nats_cluster, kv.stream.name)
            written = False
            while not written:
                try:
                    await kv.put(f"k{number}", b"%d" % number)
                    written = True
                except NatsStreamError as error:
                    if not error.retryable:
                        raise
        wanted = {f"k{number}" for number in range(5)}

        async def is_here() -> bool:
            return set(mirror.keys()) == wanted

        await eventually_async(is_here, within_s=40)
        wanted_after = time.monotonic()

        async def is_fresh() -> bool:
            return time.monotonic() - mirror.staleness > wanted_after

        await eventually_async(is_fresh, within_s=40)


async def test_a_value_that_the_server_has_again_is_answered(
    js: JetStream, stream_name: str
) -> None:
    """As after the crash of a server with one replica: the marker is gone, the value is there."""
    kv = await js.kv.create(
        stream_name, history=5, ttl=3_600, storage="memory", extra={"deny_delete": False}
    )
    await kv.put("old", b"1")
    await kv.put("a", b"1")
    async with kv.cached() as mirror:
        changes = mirror.changes()
        marker = await mirror.delete("a")
        assert (await anext(changes)).is_deleted
        newest = await mirror.put("b", b"2")
        assert (await anext(changes)).key == "b"
        await kv.stream.delete_message(marker)
        assert (await kv.get("a", consistent=True)) is not None
        await kv.stream.publish(f"$KV.{stream_name}.c", b"3")  # It comes by the watch.

        assert await mirror.resync() == 0
        again = mirror.get("a")
        assert again is not None
        assert (again.value, again.revision) == (b"1", 2)
        told = [(await anext(changes)).key for _ in range(2)]
        assert sorted(told) == ["a", "c"]
        assert mirror.keys() == ["old", "a", "b", "c"]
        assert mirror.revision == newest + 1
        assert await mirror.resync() == 0


async def test_a_deletion_that_comes_while_a_value_is_asked_for_counts(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kv = await js.kv.create(stream_name, history=5, storage="memory", extra={"deny_delete": False})
    await kv.put("a", b"1")
    async with kv.cached() as mirror:
        await kv.stream.delete_message(await mirror.delete("a"))
        ask = Bucket.get

        async def late(self: Bucket, key: str, **options: Any) -> object:
            found = await ask(self, key, **options)
            await mirror.wait_for(await kv.delete(key))
            return found

        monkeypatch.setattr(Bucket, "get", late)
        assert await mirror.resync() == 0
        assert mirror.get("a") is None


async def test_a_mirror_whose_tasks_others_cancel_answers_no_more(
    kv: KeyValue, caplog: pytest.LogCaptureFixture
) -> None:
    async with kv.cached() as mirror:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            if "CacheSync" in repr(task.get_coro()):
                task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        with pytest.raises(UsageError, match="was cancelled"):
            mirror.get("a")
        assert "open it again" in caplog.text
