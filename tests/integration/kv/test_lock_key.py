"""A lock's key where what is known of it is old: only what was stored counts."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream.errors import LockLostError, WrongRevisionError
from natsstream.kv.locks.leases import Claim, make_terms
from natsstream.kv.locks.lock_key import LockKey
from tests.support.buckets import bucket_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from natsstream import JetStream, KeyValue

pytestmark = pytest.mark.asyncio

LIMIT_S = 20


@pytest_asyncio.fixture
async def kv(js: JetStream, stream_name: str) -> KeyValue:
    """A bucket that can keep locks."""
    return await js.kv.create(stream_name, limit_marker_ttl=1, storage="memory")


def key_of(kv: KeyValue, holder: str) -> LockKey:
    return LockKey(bucket_of(kv), "l", holder, make_terms(60))


async def test_a_key_is_claimed_over_the_marker_that_is_known(kv: KeyValue) -> None:
    await kv.put("l", b"another's")
    marker = await kv.delete("l")
    lease = await key_of(kv, "a").take(LIMIT_S, marker=marker)
    assert lease is not None
    # One message, so that nobody could come between.
    assert lease.token == marker + 1


async def test_a_key_is_claimed_where_the_known_marker_is_gone(kv: KeyValue) -> None:
    lease = await key_of(kv, "a").take(LIMIT_S, marker=7)
    assert lease is not None


async def test_a_key_that_another_took_over_the_known_marker_is_the_others(kv: KeyValue) -> None:
    await kv.put("l", b"another's")
    marker = await kv.delete("l")
    other = await key_of(kv, "a").take(LIMIT_S, marker=marker)
    assert other is not None
    assert await key_of(kv, "b").take(LIMIT_S, marker=marker) is None
    entry = await kv.get("l", consistent=True)
    assert entry is not None
    assert entry.revision == other.revision


async def test_an_older_record_of_its_own_is_no_renewal(kv: KeyValue) -> None:
    """So answers a server that led before: what it tells is not what is stored by now."""
    key = key_of(kv, "a")
    lease = await key.take(LIMIT_S)
    assert lease is not None
    with pytest.raises(WrongRevisionError):
        await key.renew(replace(lease, revision=lease.revision + 5), LIMIT_S)


async def test_a_renewal_whose_answer_was_lost_is_found_and_counts(kv: KeyValue) -> None:
    key = key_of(kv, "a")
    lease = await key.take(LIMIT_S)
    assert lease is not None
    newer = await key.renew(lease, LIMIT_S)
    found = await key.renew(lease, LIMIT_S)
    assert found.revision == newer.revision
    assert found.token == lease.token


async def test_a_key_that_another_holds_is_neither_renewed_nor_given_back(kv: KeyValue) -> None:
    key = key_of(kv, "a")
    lease = await key.take(LIMIT_S)
    assert lease is not None
    await kv.put("l", Claim("thief", "t", 60).to_bytes())
    with pytest.raises(LockLostError, match="thief"):
        await key.renew(lease, LIMIT_S)
    await key.give_back(lease)
    entry = await kv.get("l", consistent=True)
    assert entry is not None
    assert b"thief" in entry.value


async def test_a_claim_that_is_left_twice_lets_the_loop_complain_of_nothing(
    kv: KeyValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left while it is asked for, and while it is taken back: nobody hears how its request ends."""
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    await kv.put("l", b"another's")
    bucket, are_gone = bucket_of(kv), asyncio.Event()
    create = bucket.create

    async def refused_late(name: str, value: bytes, **options: Any) -> int:
        await are_gone.wait()
        return await create(name, value, **options)

    monkeypatch.setattr(bucket, "create", refused_late)
    key, before = key_of(kv, "a"), asyncio.all_tasks()

    await begin_and_leave(key.take(LIMIT_S))
    await begin_and_leave(key.give_back(None))

    others = asyncio.all_tasks() - before
    assert len(others) == 1
    are_gone.set()
    await asyncio.wait(others)
    del key, others
    gc.collect()
    assert told == []


async def begin_and_leave(call: Coroutine[object, object, object]) -> None:
    """Cancel a call in its first wait."""
    task = asyncio.create_task(call)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
