"""Reading and writing single keys, on one server and on three replicas."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream import JetStream
from natsstream.errors import (
    ConfigError,
    KeyExistsError,
    WrongLastSequenceError,
    WrongRevisionError,
)
from natsstream.kv import bucket
from tests.support.buckets import bucket_on
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from natsstream import PubAck
    from natsstream.kv.key_value import KeyValue

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture(params=["R1", "R3"])
async def kv(
    request: pytest.FixtureRequest, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[KeyValue]:
    """A bucket with the server's markers: on the shared server, then on three replicas."""
    place: str = request.param
    async with bucket_on(
        place, stream_name, request, monkeypatch, limit_marker_ttl=1, history=5
    ) as bucket:
        yield bucket


async def test_absent_key_is_none(kv: KeyValue) -> None:
    assert await kv.get("a") is None
    assert await kv.get("a", consistent=True) is None
    assert await kv.get("a", revision=3) is None


@pytest.mark.smoke
@pytest.mark.proves("1d", "put / get / update(rev)")
@pytest.mark.parametrize("value", [b"", b"x", bytes(range(256))])
async def test_value_comes_back_with_its_revision_time_and_operation(
    kv: KeyValue, value: bytes
) -> None:
    revision = await kv.put("a.b/c=d_e-F", value)

    entry = await kv.get("a.b/c=d_e-F", consistent=True)

    assert entry is not None
    assert (entry.bucket, entry.key, entry.value) == (kv.name, "a.b/c=d_e-F", value)
    assert (entry.revision, entry.operation, entry.delta) == (revision, "PUT", 0)
    assert entry.created_ns > 0
    stored = await kv.stream.get(revision)
    assert stored is not None
    assert stored.time_ns == entry.created_ns


async def test_reading_through_the_leader_sees_each_own_write(kv: KeyValue) -> None:
    for number in range(50):
        revision = await kv.put("a", b"%d" % number)

        entry = await kv.get("a", consistent=True)

        assert entry is not None
        assert entry.revision == revision


@pytest.mark.proves("1d", "get revision")
async def test_an_older_revision_is_read_while_the_history_has_it(kv: KeyValue) -> None:
    revisions = [await kv.put("a", b"%d" % number) for number in range(7)]

    # The history is 5; a replica that lags would still have it.
    assert await kv.get("a", revision=revisions[0], consistent=True) is None
    for number in (2, 3, 6):
        entry = await kv.get("a", revision=revisions[number])
        assert entry is not None
        assert entry.value == b"%d" % number


@pytest.mark.proves("1d", "get revision")
async def test_a_revision_of_another_key_or_of_a_marker_is_none(kv: KeyValue) -> None:
    other = await kv.put("b", b"1")
    marker = await kv.delete("a")

    assert await kv.get("a", revision=other) is None
    assert await kv.get("a", revision=marker) is None


async def test_created_key_exists(kv: KeyValue) -> None:
    revision = await kv.create("a", b"1")

    with pytest.raises(KeyExistsError) as caught:
        await kv.create("a", b"2")

    error = caught.value
    assert (error.bucket, error.key, error.revision) == (kv.name, "a", revision)
    assert error.err_code in (10071, 10164)
    entry = await kv.get("a", consistent=True)
    assert entry is not None
    assert entry.value == b"1"


@pytest.mark.proves("1d", "create (recreate after delete)")
@pytest.mark.parametrize("way", ["delete", "purge"])
async def test_key_is_created_again_behind_a_marker(kv: KeyValue, way: str) -> None:
    await kv.create("a", b"1")
    marker = await (kv.delete("a") if way == "delete" else kv.purge("a"))

    revision = await kv.create("a", b"2")

    assert revision > marker
    with pytest.raises(KeyExistsError):
        await kv.create("a", b"3")


@pytest.mark.sampled_variants
@pytest.mark.proves("1d", "create (recreate after delete)")
@pytest.mark.proves("1d", "per-key TTL create / purge TTL")
async def test_key_is_created_again_right_after_it_expired(kv: KeyValue) -> None:
    first = await kv.create("a", b"1", ttl=1)

    async def create_again() -> int:
        try:
            return await kv.create("a", b"2", ttl=60)
        except KeyExistsError:
            return 0

    revision = await eventually_async(create_again, within_s=30)

    assert revision > first
    entry = await kv.get("a", consistent=True)
    assert entry is not None
    assert (entry.value, entry.revision) == (b"2", revision)


@pytest.mark.proves("1d", "limit marker TTL")
async def test_the_servers_own_marker_is_no_value_and_no_obstacle(
    js: JetStream, stream_name: str
) -> None:
    """It has another header than a client's; nats-py could not create over it."""
    kv = await js.kv.create(stream_name, limit_marker_ttl=600, storage="memory")
    await kv.create("a", b"1", ttl=1)

    async def has_marker() -> bool:
        return [entry.operation async for entry in kv.history("a")] == ["PURGE"]

    await eventually_async(has_marker, within_s=30)
    assert await kv.get("a") is None
    assert await kv.get("a", revision=2) is None
    assert await kv.create("a", b"2") == 3


@pytest.mark.proves("1d", "create (recreate after delete)")
async def test_one_of_many_who_create_a_key_at_once_succeeds(kv: KeyValue) -> None:
    """First where it never was, then over each kind of marker."""
    for remove in (None, kv.delete, kv.purge):
        if remove is not None:
            await remove("a")
        outcomes = await asyncio.gather(
            *(kv.create("a", b"%d" % number) for number in range(12)), return_exceptions=True
        )

        won = [index for index, each in enumerate(outcomes) if isinstance(each, int)]
        assert len(won) == 1, outcomes
        assert all(isinstance(each, int | KeyExistsError) for each in outcomes), outcomes
        entry = await kv.get("a", consistent=True)
        assert entry is not None
        assert (entry.value, entry.revision) == (b"%d" % won[0], outcomes[won[0]])


async def test_create_gives_up_on_a_key_that_others_remove_and_write_all_the_time(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kv = await js.kv.create(stream_name, storage="memory")
    await kv.delete("a")
    publish = JetStream.publish

    async def publish_behind_a_marker(
        self: JetStream, subject: str, *args: Any, **how: Any
    ) -> PubAck:
        await publish(self, subject, headers={"KV-Operation": "DEL"})
        return await publish(self, subject, *args, **how)

    monkeypatch.setattr(JetStream, "publish", publish_behind_a_marker)
    monkeypatch.setattr(bucket, "_CREATE_S", 0.1)
    with pytest.raises(KeyExistsError, match="all the time") as caught:
        await kv.create("a", b"1")

    assert (caught.value.revision, caught.value.retryable) == (None, True)


@pytest.mark.proves("1d", "put / get / update(rev)")
async def test_update_with_the_newest_revision_succeeds(kv: KeyValue) -> None:
    first = await kv.create("a", b"1")
    second = await kv.update("a", b"2", revision=first)

    assert await kv.update("a", b"", revision=second) > second


@pytest.mark.proves("1d", "put / get / update(rev)")
async def test_update_fails_when_the_revision_is_stale(kv: KeyValue) -> None:
    first = await kv.create("a", b"1")
    second = await kv.put("a", b"2")

    with pytest.raises(WrongRevisionError) as caught:
        await kv.update("a", b"3", revision=first)

    error = caught.value
    assert isinstance(error, WrongLastSequenceError)
    assert (error.bucket, error.key) == (kv.name, "a")
    assert error.revision in (second, None)  # Replicated buckets may not tell.
    assert error.err_code in (10071, 10164)
    entry = await kv.get("a", consistent=True)
    assert entry is not None
    assert entry.value == b"2"


async def test_update_of_a_key_that_is_absent_needs_revision_zero(kv: KeyValue) -> None:
    with pytest.raises(WrongRevisionError) as caught:
        await kv.update("a", b"1", revision=9)
    assert caught.value.revision == 0
    assert await kv.update("a", b"1", revision=0)


async def test_counting_by_update_loses_no_count(kv: KeyValue) -> None:
    await kv.create("n", b"0")

    async def count(times: int) -> None:
        while times:
            entry = await kv.get("n", consistent=True)
            assert entry is not None
            try:
                await kv.update("n", b"%d" % (int(entry.value) + 1), revision=entry.revision)
            except WrongRevisionError:
                await asyncio.sleep(0)
            else:
                times -= 1

    await asyncio.gather(*(count(8) for _ in range(4)))

    entry = await kv.get("n", consistent=True)
    assert entry is not None
    assert entry.value == b"32"


@pytest.mark.proves("1d", "delete(last rev) / purge(last rev)")
@pytest.mark.parametrize("way", ["delete", "purge"])
async def test_removal_with_a_stale_revision_changes_nothing(kv: KeyValue, way: str) -> None:
    first = await kv.put("a", b"1")
    second = await kv.put("a", b"2")
    remove: Callable[..., Awaitable[int]] = kv.delete if way == "delete" else kv.purge

    with pytest.raises(WrongRevisionError):
        await remove("a", revision=first)

    assert [entry.revision async for entry in kv.history("a")] == [first, second]
    assert await remove("a", revision=second) > second
    assert await kv.get("a", consistent=True) is None


@pytest.mark.proves("1d", "delete(last rev) / purge(last rev)")
async def test_delete_keeps_the_history_and_purge_removes_it(kv: KeyValue) -> None:
    await kv.put("a", b"1")
    await kv.delete("a")
    assert [entry.operation async for entry in kv.history("a")] == ["PUT", "DEL"]

    await kv.purge("a")
    assert [entry.operation async for entry in kv.history("a")] == ["PURGE"]


async def test_revert_stores_the_old_value_as_the_newest(kv: KeyValue) -> None:
    first = await kv.put("a", b"1")
    await kv.put("a", b"2")
    await kv.delete("a")

    revision = await kv.revert("a", first)

    entry = await kv.get("a", consistent=True)
    assert entry is not None
    assert (entry.value, entry.revision) == (b"1", revision)


async def test_revert_to_what_is_no_value_of_the_key_is_refused(kv: KeyValue) -> None:
    other = await kv.put("b", b"1")
    await kv.put("a", b"1")
    marker = await kv.delete("a")

    for revision in (other, marker, 99):
        with pytest.raises(ConfigError, match="revision"):
            await kv.revert("a", revision)
    assert await kv.get("a", consistent=True) is None


async def test_life_time_of_a_value_is_refused_where_an_older_one_would_come_back(
    kv: KeyValue,
) -> None:
    revision = await kv.put("a", b"1")

    with pytest.raises(ConfigError, match="there again"):
        await kv.put("a", b"2", ttl=1)
    with pytest.raises(ConfigError, match="there again"):
        await kv.update("a", b"2", revision=revision, ttl=1)


@pytest.mark.proves("1d", "per-key TTL create / purge TTL")
async def test_purge_marker_with_a_life_time_goes_by_itself(kv: KeyValue) -> None:
    await kv.put("a", b"1")
    await kv.purge("a", ttl=1)

    async def is_gone() -> bool:
        return (await kv.stream.info()).state.messages == 0

    await eventually_async(is_gone, within_s=30)
    assert await kv.create("a", b"2")


async def test_put_and_update_with_a_life_time_where_no_history_is_kept(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(stream_name, limit_marker_ttl=60, storage="memory")
    revision = await kv.put("a", b"1", ttl=600)
    await kv.update("a", b"2", revision=revision, ttl=1)

    async def is_gone() -> bool:
        return await kv.get("a") is None

    await eventually_async(is_gone, within_s=30)


async def test_create_of_a_free_key_is_one_message_and_no_question(
    js: JetStream, stream_name: str
) -> None:
    """Over a marker it is one question to the leader and two messages."""
    kv = await js.kv.create(stream_name, storage="memory", limit_marker_ttl=60)
    async with (
        js.core.subscribe("$JS.API.>") as questions,
        js.core.subscribe(f"$KV.{stream_name}.>") as records,
    ):
        await kv.create("a", b"1", ttl=600)  # This connection knows the API level already.
        await kv.create("b", b"1")
        await kv.delete("b")
        await kv.create("b", b"2")
        await js.core.publish("$JS.API.END")
        await js.core.publish(f"$KV.{stream_name}.END")

        asked: list[str] = []
        async for message in questions:
            if message.subject == "$JS.API.END":
                break
            asked.append(message.subject)
        written: list[str] = []
        async for message in records:
            if message.subject.endswith(".END"):
                break
            written.append(message.subject.rpartition(".")[2])

    assert [each for each in asked if stream_name in each] == [
        f"$JS.API.STREAM.MSG.GET.KV_{stream_name}"
    ]
    assert written == ["a", "b", "b", "b", "b"]


@pytest.mark.proves("1d", "allow_direct on by default (ADR-8)")
async def test_bucket_without_direct_reads_is_read_through_its_leader(
    js: JetStream, stream_name: str
) -> None:
    """Also when direct reads are taken away while the bucket is open."""
    kv = await js.kv.create(stream_name, storage="memory")
    revision = await kv.put("a", b"1")
    await js.streams.update(f"KV_{stream_name}", allow_direct=False)

    for each in (kv, await js.kv.get(stream_name)):
        entry = await each.get("a")
        assert entry is not None
        assert entry.revision == revision
        assert await each.get("a", revision=revision) == entry


async def test_mirror_does_not_promise_what_its_origin_alone_knows(
    js: JetStream, stream_name: str
) -> None:
    origin = await js.kv.create(stream_name, storage="memory")
    mirror = await js.kv.create(f"{stream_name}_m", storage="memory", mirror={"name": stream_name})
    revision = await mirror.create("a", b"1")

    async def has_come() -> bool:
        return await mirror.get("a") is not None

    await eventually_async(has_come, within_s=30)
    with pytest.raises(ConfigError, match="mirror"):
        await mirror.get("a", consistent=True)
    entry = await origin.get("a", consistent=True)
    assert entry is not None
    assert entry.revision == revision
    with pytest.raises(KeyExistsError):
        await mirror.create("a", b"2")
    await mirror.delete("a")
    assert await mirror.create("a", b"3")  # It waits for the mirror to have the marker.
