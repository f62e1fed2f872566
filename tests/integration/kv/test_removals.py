"""Removing markers and many keys: what goes, and what must never go."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream import JetStream
from natsstream.errors import (
    BucketNotFoundError,
    ConfigError,
    KeyNameError,
    RequestTimeoutError,
)
from natsstream.streams.stream import Stream
from tests.support.buckets import bucket_on
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import PubAck
    from natsstream.kv.key_value import KeyValue

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture(params=["R1", "R3"])
async def kv(
    request: pytest.FixtureRequest, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[KeyValue]:
    """A bucket: on the shared server, then on three replicas."""
    place: str = request.param
    async with bucket_on(place, stream_name, request, monkeypatch, history=5) as kv:
        yield kv


async def told(kv: KeyValue) -> dict[str, list[str]]:
    """Return the operations that the bucket keeps of each key, oldest first."""
    records: dict[str, list[str]] = {}
    async for entry in kv.history(">"):
        records.setdefault(entry.key, []).append(entry.operation)
    return records


async def becomes(kv: KeyValue, records: dict[str, list[str]]) -> None:
    """Wait until the bucket keeps this: a replica may learn of a removal later than the leader."""
    now: dict[str, list[str]] = {}

    async def is_so() -> bool:
        nonlocal now
        now = await told(kv)
        return now == records

    with suppress(AssertionError):
        await eventually_async(is_so, within_s=30)
    assert now == records


@pytest.mark.proves("1d", "purge deletes")
async def test_old_markers_go_and_values_stay(kv: KeyValue) -> None:
    for key in ("deleted", "purged", "kept"):
        await kv.put(key, b"1")
    await kv.delete("deleted")
    await kv.purge("purged")

    assert await kv.purge_deletes(older_than=0) == 3

    await becomes(kv, {"kept": ["PUT"]})
    assert await kv.purge_deletes(older_than=0) == 0


async def test_of_young_markers_only_the_history_goes(kv: KeyValue) -> None:
    await kv.put("a", b"1")
    await kv.put("a", b"2")
    await kv.delete("a")

    assert await kv.purge_deletes() == 2  # Half an hour is the default.

    await becomes(kv, {"a": ["DEL"]})
    assert await kv.purge_deletes(older_than=3600) == 0


@pytest.mark.proves("1d", "purge deletes")
@pytest.mark.parametrize("older_than", [0, 3600])
async def test_key_that_is_written_again_meanwhile_keeps_its_value(
    kv: KeyValue, monkeypatch: pytest.MonkeyPatch, older_than: float
) -> None:
    """In nats.go, nats.js and nats-key-value the value is gone."""
    await kv.put("a", b"1")
    await kv.delete("a")
    purge = Stream.purge

    async def purge_behind_a_write(self: Stream, *, subject: str, last_seq: int) -> int:
        await kv.put("a", b"2")
        await kv.put("a", b"3")
        return await purge(self, subject=subject, last_seq=last_seq)

    monkeypatch.setattr(Stream, "purge", purge_behind_a_write)
    await kv.purge_deletes(older_than=older_than)

    marker = [] if older_than == 0 else ["DEL"]
    await becomes(kv, {"a": [*marker, "PUT", "PUT"]})


async def test_many_markers_are_removed_side_by_side_and_not_all_at_once(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kv = await js.kv.create(stream_name, storage="memory")
    await asyncio.gather(*(kv.delete(f"k{number}") for number in range(200)))
    purge = Stream.purge
    under_way, most = 0, 0

    async def counted(self: Stream, *, subject: str, last_seq: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            return await purge(self, subject=subject, last_seq=last_seq)
        finally:
            under_way -= 1

    monkeypatch.setattr(Stream, "purge", counted)

    assert await kv.purge_deletes(older_than=0) == 200
    assert most == 64
    assert (await kv.stream.info()).state.messages == 0


async def test_removal_that_fails_ends_the_others_and_is_told(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kv = await js.kv.create(stream_name, storage="memory")
    for number in range(100):
        await kv.delete(f"k{number}")
    purge = Stream.purge
    begun, ended = 0, 0

    async def failing(self: Stream, *, subject: str, last_seq: int) -> int:
        nonlocal begun, ended
        begun += 1
        if last_seq == 1:
            raise RequestTimeoutError("no answer")
        removed = await purge(self, subject=subject, last_seq=last_seq)
        ended += 1
        return removed

    monkeypatch.setattr(Stream, "purge", failing)
    with pytest.raises(RequestTimeoutError):
        await kv.purge_deletes(older_than=0)

    assert (begun, ended) == (64, 63)  # What was behind them has not begun.
    monkeypatch.setattr(Stream, "purge", purge)
    assert await kv.purge_deletes(older_than=0) == 37


@pytest.mark.sampled_variants
async def test_no_acknowledged_value_is_lost_to_removals_beside_it(kv: KeyValue) -> None:
    stop = asyncio.Event()

    async def remove() -> None:
        while not stop.is_set():
            await kv.purge_deletes(older_than=0)

    async def write(key: str) -> None:
        for number in range(25):
            revision = await kv.create(key, b"%d" % number)
            entry = await kv.get(key, consistent=True)
            assert entry is not None
            assert entry.revision == revision
            await kv.delete(key, revision=revision)
        await kv.create(key, b"last")

    async with asyncio.TaskGroup() as tasks:
        removing = tasks.create_task(remove())
        await asyncio.gather(write("a"), write("b"))
        stop.set()
    await removing

    assert {entry.key: entry.value async for entry in kv.entries()} == {"a": b"last", "b": b"last"}


async def test_purging_by_a_filter_marks_each_key(kv: KeyValue) -> None:
    for key in ("s.1", "s.2", "s.2.x", "t"):
        await kv.put(key, b"1")
    await kv.delete("s.2")

    assert await kv.purge_matching("s.*") == 1
    await becomes(kv, {"s.1": ["PURGE"], "s.2": ["PUT", "DEL"], "s.2.x": ["PUT"], "t": ["PUT"]})
    assert await kv.purge_matching("s.>", "t") == 2
    assert [key async for key in kv.keys()] == []


async def test_purging_many_keys_marks_all(kv: KeyValue) -> None:
    await asyncio.gather(*(kv.put(f"k{number}", b"") for number in range(200)))

    assert await kv.purge_matching(">") == 200
    assert (await kv.stream.info()).state.messages == 200


async def test_key_that_is_written_before_its_marker_keeps_its_value(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kv = await js.kv.create(stream_name, storage="memory")
    for key in ("a", "b"):
        await kv.put(key, b"old")
    publish = JetStream.publish

    async def publish_behind_a_write(
        self: JetStream, subject: str, *args: Any, **how: Any
    ) -> PubAck:
        if subject.endswith(".a"):
            await publish(self, subject, b"new")
        return await publish(self, subject, *args, **how)

    monkeypatch.setattr(JetStream, "publish", publish_behind_a_write)
    assert await kv.purge_matching(">") == 1

    assert {entry.key: entry.value async for entry in kv.entries()} == {"a": b"new"}


@pytest.mark.parametrize("headers", [{"KV-Operation": "PURGE"}, {}])
async def test_record_under_a_wildcards_name_is_not_taken_for_the_wildcard(
    js: JetStream, stream_name: str, headers: dict[str, str]
) -> None:
    """nats-py stores such: its `purge("*")` writes a marker under the subject with the star."""
    kv = await js.kv.create(stream_name, storage="memory")
    await kv.put("a", b"1")
    await kv.put("b", b"1")
    for name in ("*", ">"):
        await js.raw.jetstream().publish(f"$KV.{stream_name}.{name}", b"", headers=headers)

    assert await kv.purge_deletes(older_than=0) == 0
    assert await kv.purge_matching("b") == 1
    assert (await kv.get("a")) is not None


@pytest.mark.parametrize("name", ["", "a b", ".a", "a..b", ">.a", "é"])
async def test_what_is_no_filter_removes_nothing(
    js: JetStream, stream_name: str, name: str
) -> None:
    kv = await js.kv.create(stream_name, storage="memory")
    await kv.put("a", b"1")

    with pytest.raises(KeyNameError):
        await kv.purge_matching("a", name)
    with pytest.raises(ConfigError):
        await kv.purge_matching()
    with pytest.raises(ConfigError):
        await kv.purge_deletes(older_than=-1)
    assert [key async for key in kv.keys()] == ["a"]


async def test_servers_own_markers_are_removed_and_leave_none(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(stream_name, storage="memory", limit_marker_ttl=600)
    await kv.create("a", b"1", ttl=1)

    async def has_marker() -> bool:
        return [entry.operation async for entry in kv.history("a")] == ["PURGE"]

    await eventually_async(has_marker, within_s=30)
    assert await kv.purge_deletes(older_than=0) == 1
    assert await told(kv) == {}


async def test_mirror_removes_nothing_of_its_copy(js: JetStream, stream_name: str) -> None:
    await js.kv.create(stream_name, storage="memory")
    mirror = await js.kv.create(f"{stream_name}_m", storage="memory", mirror={"name": stream_name})

    with pytest.raises(ConfigError, match="mirror"):
        await mirror.purge_deletes()


async def test_deleted_bucket_is_told_as_such(js: JetStream, stream_name: str) -> None:
    kv = await js.kv.create(stream_name, storage="memory")
    await js.kv.delete(stream_name)

    with pytest.raises(BucketNotFoundError):
        await kv.purge_deletes()
    with pytest.raises(BucketNotFoundError):
        await kv.purge_matching(">")


@pytest.mark.proves("1d", "purge deletes")
async def test_removals_leave_no_consumer(js: JetStream, stream_name: str) -> None:
    """nats-py leaves one for each call."""
    kv = await js.kv.create(stream_name, storage="memory")
    await kv.put("a", b"1")
    for _ in range(5):
        await kv.purge_deletes()
        await kv.purge_matching("b")

    async def has_none() -> bool:
        return (await kv.stream.info()).state.consumer_count == 0

    await eventually_async(has_none, within_s=30)
