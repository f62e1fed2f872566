"""Locks: one holder at a time, told of its loss, with tokens that only grow."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

import natsstream as ns
from natsstream.errors import (
    ConfigError,
    KeyNameError,
    LockHeldError,
    LockLostError,
    UsageError,
    WrongRevisionError,
)
from natsstream.kv.locks import leases, lock_key
from tests.support.eventually import eventually_async
from tests.support.locks import LONG_TTL_S, give_back_patiently, renew_soon

if TYPE_CHECKING:
    from natsstream import JetStream, KeyValue, Lock
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def kv(js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch) -> KeyValue:
    """A bucket that can keep locks, on a server that may be slow to take them back."""
    give_back_patiently(monkeypatch)
    return await js.kv.create(stream_name, limit_marker_ttl=1, storage="memory")


async def has_consumers(kv: KeyValue, count: int) -> None:
    """Wait until the bucket has so many consumers; a watch that is left waits a second for it."""

    async def is_so() -> bool:
        return (await kv.stream.info()).state.consumer_count == count

    await eventually_async(is_so, within_s=20)


async def test_a_lock_has_one_holder_and_its_token_grows(kv: KeyValue) -> None:
    tokens: list[int] = []
    for _ in range(3):
        async with kv.lock("l", holder="me") as lock:
            assert lock.is_held
            lock.check()
            tokens.append(lock.token)
            with pytest.raises(LockHeldError) as caught:
                async with kv.lock("l", timeout=0):
                    pass
            assert (caught.value.name, caught.value.holder) == ("l", "me")
        assert not lock.is_held
        assert await kv.get("l", consistent=True) is None
    assert tokens == sorted(set(tokens))


async def test_who_waits_gets_the_lock_when_it_is_given_back(kv: KeyValue) -> None:
    async def wait() -> int:
        async with kv.lock("l", timeout=20) as lock:
            return lock.token

    async with kv.lock("l") as first:
        waiting = [asyncio.create_task(wait()) for _ in range(3)]
        await has_consumers(kv, 3)
    tokens = await asyncio.gather(*waiting)
    assert min(tokens) > first.token
    assert len(set(tokens)) == 3
    await has_consumers(kv, 0)


async def test_waiting_ends_at_its_deadline_and_says_who_holds_it(kv: KeyValue) -> None:
    async with kv.lock("l", holder="the other"):
        with pytest.raises(LockHeldError, match="the other") as caught:
            async with kv.lock("l", timeout=1):
                pass
        assert caught.value.holder == "the other"
        assert caught.value.retryable
        await has_consumers(kv, 0)


async def test_a_lock_outlives_its_ttl_while_it_is_held(
    kv: KeyValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is renewed more often than by itself: so it also outlives a machine that stands still."""
    monkeypatch.setattr(leases, "_TRIES_IN_LEASE", 12)
    begun = asyncio.get_running_loop().time()
    async with kv.lock("l", ttl=4, margin=0.2) as lock:
        first = lock.revision
        assert await _renewals(lock, until=begun + 4.2) >= 3
        assert lock.is_held
        assert lock.token == first
        assert lock.revision > first
        assert 0 < lock.remaining <= 3.8


async def _renewals(lock: Lock, *, until: float) -> int:
    """Count the renewals that come until a time of the loop's clock."""
    seen = {lock.revision}
    while asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.01)
        lock.check()
        seen.add(lock.revision)
    return len(seen) - 1


async def test_the_lock_of_a_holder_that_is_gone_becomes_free(kv: KeyValue) -> None:
    """Its process is dead: nobody renews, nobody gives back; only the server's expiry is left."""
    dead = await kv.create("l", b"somebody else's words", ttl=1)
    async with kv.lock("l", timeout=20) as lock:
        assert lock.token > dead


async def test_a_lock_that_was_taken_away_cancels_its_block(
    kv: KeyValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew_soon(monkeypatch)
    lock = kv.lock("l", ttl=LONG_TTL_S)

    async def hold() -> None:
        async with lock:
            await kv.delete("l")
            await asyncio.sleep(30)

    with pytest.raises(LockLostError, match="its key is gone") as caught:
        await hold()
    assert (caught.value.name, caught.value.token) == ("l", lock.token)
    assert await lock.lost() is caught.value
    assert not lock.is_held
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_lock_that_another_took_over_is_lost_and_stays_the_others(
    kv: KeyValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew_soon(monkeypatch)

    async def hold() -> None:
        async with kv.lock("l", ttl=LONG_TTL_S, on_loss="tell") as lock:
            await kv.put("l", b'{"holder": "thief", "claim_id": "x", "ttl": 1}')
            await asyncio.wait_for(lock.lost(), 20)
            with pytest.raises(LockLostError):
                lock.check()
            with pytest.raises(LockLostError):
                await lock.put("k", b"late")

    with pytest.raises(LockLostError, match="thief"):
        await hold()
    assert await kv.get("k") is None
    left = await kv.get("l", consistent=True)
    assert left is None or b"thief" in left.value


async def test_another_error_of_the_block_goes_before_the_loss(kv: KeyValue) -> None:
    async def hold() -> None:
        async with kv.lock("l", ttl=1, on_loss="tell") as lock:
            await kv.delete("l")
            await lock.lost()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await hold()


async def test_a_block_that_is_cancelled_from_outside_stays_cancelled(kv: KeyValue) -> None:
    held = asyncio.Event()

    async def hold() -> None:
        async with kv.lock("l"):
            held.set()
            await asyncio.sleep(30)

    task = asyncio.create_task(hold())
    await held.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with kv.lock("l", timeout=0):
        pass


async def test_who_is_cancelled_while_waiting_leaves_nothing_behind(kv: KeyValue) -> None:
    async with kv.lock("l"):
        waiter = kv.lock("l", timeout=None)
        task = asyncio.create_task(waiter.__aenter__())
        await has_consumers(kv, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await has_consumers(kv, 0)
    assert await kv.get("l", consistent=True) is None


async def test_a_guarded_write_of_a_zombie_is_refused(kv: KeyValue) -> None:
    async with kv.lock("l", ttl=60) as old:
        assert await old.put("k", b"old") > old.token
        old_revision = old.revision
    async with kv.lock("l", ttl=60) as new:
        await new.put("k", b"new")
        with pytest.raises(WrongRevisionError) as caught:
            await kv.put_guarded("k", b"zombie", guard="l", revision=old_revision)
        assert caught.value.key == "l"
        with pytest.raises(WrongRevisionError):
            await kv.update("l", b"zombie", revision=old_revision)
    entry = await kv.get("k")
    assert entry is not None
    assert entry.value == b"new"


async def test_a_lock_can_be_given_back_early(kv: KeyValue) -> None:
    async with kv.lock("l") as lock:
        await lock.release()
        await lock.release()
        assert not lock.is_held
        async with kv.lock("l", timeout=0) as other:
            assert other.token > lock.token
        with pytest.raises(UsageError, match="given back"):
            lock.check()
        with pytest.raises(UsageError, match="given back"):
            await lock.lost()


async def test_a_lock_is_entered_once_and_has_no_token_before(kv: KeyValue) -> None:
    lock = kv.lock("l")
    assert not lock.is_held
    with pytest.raises(UsageError):
        _ = lock.token
    async with lock:
        pass
    with pytest.raises(UsageError, match="once"):
        await lock.__aenter__()


async def test_bucket_with_a_history_is_not_told_to_remove_it(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(stream_name, history=2, storage="memory")
    with pytest.raises(ConfigError) as caught:
        async with kv.lock("l"):
            pass

    assert "history" not in caught.value.hint
    assert 'js.kv.ensure("locks", limit_marker_ttl=60)' in caught.value.hint


async def test_what_a_bucket_needs_for_locks_is_told(js: JetStream, stream_name: str) -> None:
    plain = await js.kv.create(stream_name, storage="memory")
    with pytest.raises(ConfigError, match="limit_marker_ttl"):
        async with plain.lock("l"):
            pass
    await js.kv.update(stream_name, limit_marker_ttl=1)
    async with plain.lock("l"):  # It looks again before it refuses.
        pass
    history = await js.kv.update(stream_name, history=3)
    with pytest.raises(ConfigError, match="keeps 3 revisions"):
        async with history.lock("l"):
            pass
    short = await js.kv.update(stream_name, history=1, ttl=5)
    with pytest.raises(ConfigError, match="forgets its keys after 5 s"):
        async with short.lock("l", ttl=6):
            pass


async def test_wrong_options_are_refused_before_anything_is_sent(kv: KeyValue) -> None:
    with pytest.raises(KeyNameError):
        kv.lock("a b")
    with pytest.raises(KeyNameError):
        kv.election("*")
    with pytest.raises(ConfigError, match="ttl"):
        kv.lock("l", ttl=0.5)
    with pytest.raises(ConfigError, match="on_loss"):
        kv.lock("l", on_loss="ignore")  # pyright: ignore[reportArgumentType] - That is the point.
    with pytest.raises(ConfigError, match="timeout"):
        kv.lock("l", timeout=-1)


async def test_a_deleted_bucket_ends_a_lock(
    js: JetStream, kv: KeyValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew_soon(monkeypatch)
    # Half a second for a renewal has no room for sending it again where nobody listens.
    monkeypatch.setattr(js, "publish", partial(js.publish, retry_attempts=0))
    lock = kv.lock("l", ttl=LONG_TTL_S)

    async def hold() -> None:
        async with lock:
            await js.kv.delete(kv.name)
            await asyncio.sleep(30)

    with pytest.raises(LockLostError, match="bucket is gone"):
        await hold()
    assert not lock.is_held


async def test_a_lock_survives_a_restart_of_the_server_that_is_fast_enough(
    fresh_server: NatsServer,
) -> None:
    async with ns.connect(fresh_server.url, reconnect_timeout=60) as js:
        kv = await js.kv.create("locks", limit_marker_ttl=1)
        async with kv.lock("l", ttl=30, margin=1) as lock:
            await asyncio.to_thread(fresh_server.kill)
            await asyncio.to_thread(fresh_server.start)
            assert await lock.put("k", b"v") > lock.token
            assert lock.is_held


async def test_a_holder_without_a_server_gives_up_before_the_server_would(
    fresh_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_key, "_CLEAN_UP_S", 0.1)  # It would wait 2 s for nothing.
    async with ns.connect(fresh_server.url, reconnect_timeout=60) as js:
        kv = await js.kv.create("locks", limit_marker_ttl=1)
        loop = asyncio.get_running_loop()
        begun = loop.time()

        async def hold() -> None:
            async with kv.lock("l", ttl=2, margin=1):
                await asyncio.to_thread(fresh_server.pause)
                await asyncio.sleep(30)

        with pytest.raises(LockLostError, match="could not be renewed"):
            await hold()
        # No less than it was good for; how much later it is told is the machine's.
        assert loop.time() - begun >= 1
        await asyncio.to_thread(fresh_server.resume)
        async with kv.lock("l", timeout=30):
            pass


async def test_a_value_over_the_lock_itself_is_refused(kv: KeyValue) -> None:
    async with kv.lock("mine", ttl=10) as lock:
        with pytest.raises(ConfigError, match="'mine' is the lock itself"):
            await lock.put("mine", b"x")
        await lock.put("yours", b"x")
        lock.check()
