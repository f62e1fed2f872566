"""Findings 15, 17 and 18: what is read of a key, markers of the server, and conflicts.

15: nats-py 2.16 takes a server's marker for a value, so `create` fails after an expiry. 17: its
entries of `get` have neither time nor operation, and `b""` comes back as None. 18: its conflicts
have three types, and a replicated stream's code was unknown to `delete`; `purge` takes no revision.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import KeyExistsError, WrongLastSequenceError
from tests.support.clusters import connect_to, wait_for_leaders
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import JetStream, KeyValue
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio

SECOND_NS = 1_000_000_000


async def wait_for_marker(bucket: KeyValue, key: str) -> None:
    """Wait until the server has let a key expire."""

    async def is_gone() -> bool:
        found = await bucket.stream.get(last_by_subject=f"$KV.{bucket.name}.{key}")
        return found is not None and "Nats-Marker-Reason" in found.headers

    await eventually_async(is_gone)


@pytest.mark.finding(15)
async def test_expired_key_has_no_value_and_is_created_again_at_once(
    js: JetStream, stream_name: str
) -> None:
    bucket = await js.kv.create(stream_name, limit_marker_ttl=60)
    await bucket.create("lock", b"me", ttl=1)
    await wait_for_marker(bucket, "lock")

    assert await bucket.get("lock") is None
    assert [key async for key in bucket.keys()] == []
    (entry,) = [entry async for entry in bucket.history("lock")]
    assert (entry.operation, entry.value) == ("PURGE", b"")
    revision = await bucket.create("lock", b"other", ttl=60)

    found = await bucket.get("lock")
    assert found is not None
    assert (found.value, found.revision) == (b"other", revision)


@pytest.mark.proves("1d", "put / get / update(rev)")
@pytest.mark.finding(17)
async def test_entry_says_all_that_is_stored(js: JetStream, stream_name: str) -> None:
    bucket = await js.kv.create(stream_name, history=5)
    await bucket.put("k", b"older")
    revision = await bucket.put("k", b"")

    entries = [
        await bucket.get("k"),
        await bucket.get("k", consistent=True),
        await bucket.get("k", revision=revision),
        *[each async for each in bucket.entries("k")],
        [each async for each in bucket.history("k")][-1],
    ]

    (stored,) = {entry.created_ns for entry in entries if entry is not None}
    assert abs(stored - time.time_ns()) < 60 * SECOND_NS
    assert {
        (entry.bucket, entry.key, entry.value, entry.revision, entry.operation, entry.delta)
        for entry in entries
        if entry is not None
    } == {(stream_name, "k", b"", 2, "PUT", 0)}
    assert None not in entries


async def conflicts(bucket: KeyValue) -> None:
    """Make every write that expects a revision fail, and then succeed."""
    first = await bucket.create("k", b"1")
    second = await bucket.update("k", b"2", revision=first)

    with pytest.raises(KeyExistsError) as exists:
        await bucket.create("k", b"x")
    assert exists.value.revision == second
    for write in (
        bucket.update("k", b"x", revision=first),
        bucket.delete("k", revision=first),
        bucket.purge("k", revision=first),
    ):
        with pytest.raises(WrongLastSequenceError) as refused:
            await write
        assert "'k'" in str(refused.value)

    found = await bucket.get("k", consistent=True)
    assert found is not None
    assert (found.value, found.revision) == (b"2", second)
    third = await bucket.delete("k", revision=second)
    await bucket.purge("k", revision=third)


@pytest.mark.finding(18)
async def test_every_conflict_has_one_type(js: JetStream, stream_name: str) -> None:
    await conflicts(await js.kv.create(stream_name))


@pytest.mark.finding(18)
async def test_every_conflict_has_one_type_on_a_cluster(
    nats_cluster: NatsCluster, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server answers with another code than a single one."""
    async with connect_to(nats_cluster) as js:
        wait_for_leaders(js, monkeypatch)
        await conflicts(await js.kv.create(stream_name, replicas=3))
