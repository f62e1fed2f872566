"""Waiting for a lock: who gets it, how long it takes, and what is told when it is not got."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

import natsstream as ns
from natsstream.errors import (
    BucketNotFoundError,
    CodecError,
    ConnectionLostError,
    LockHeldError,
    RequestTimeoutError,
)
from natsstream.kv.locks import lock_key
from tests.support.eventually import eventually_async
from tests.support.locks import LONG_TTL_S, give_back_patiently, renew_soon

if TYPE_CHECKING:
    from natsstream import JetStream, KeyValue
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

# One that takes the lock again at once came before one that waits up to 14 times in a row.
TURNS_MAX = 500


@pytest_asyncio.fixture
async def kv(js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch) -> KeyValue:
    """A bucket that can keep locks, on a server that may be slow to take them back."""
    give_back_patiently(monkeypatch)
    return await js.kv.create(stream_name, limit_marker_ttl=1, storage="memory")


async def has_waiters(kv: KeyValue, count: int) -> None:
    async def is_so() -> bool:
        return (await kv.stream.info()).state.consumer_count == count

    await eventually_async(is_so, within_s=20)


async def is_away(js: JetStream) -> bool:
    return not js.is_connected


async def test_who_takes_the_lock_again_at_once_does_not_starve_who_waits(kv: KeyValue) -> None:
    async def wait() -> None:
        async with kv.lock("l", timeout=50):
            pass

    async with kv.lock("l"):
        waiting = asyncio.create_task(wait())
        await has_waiters(kv, 1)
    turns = 0
    while not waiting.done():
        async with kv.lock("l", timeout=50):
            turns += 1
        assert turns < TURNS_MAX
    await waiting


async def test_two_locks_of_one_name_in_one_process_exclude_each_other(kv: KeyValue) -> None:
    inside = most = 0

    async def work() -> None:
        nonlocal inside, most
        async with kv.lock("l", timeout=50, holder="the same"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(work())
    assert most == 1
    assert await kv.get("l", consistent=True) is None


async def test_locks_work_behind_codecs(kv: KeyValue, monkeypatch: pytest.MonkeyPatch) -> None:
    renew_soon(monkeypatch)
    coded = kv.with_codec(keys=ns.Base64Keys(), values=ns.Base64Values())
    async with coded.lock("nächtliche Läufe > *", ttl=LONG_TTL_S, holder="ich") as lock:
        first = lock.revision

        async def is_renewed() -> bool:
            return lock.revision > first

        await eventually_async(is_renewed, within_s=20)
        await lock.put("ein Ergebnis", b"42")
        with pytest.raises(LockHeldError, match="ich"):
            async with coded.lock("nächtliche Läufe > *", timeout=1):
                pass
        leader = await coded.election("nächtliche Läufe > *").leader()
        assert leader is not None
        assert leader.candidate == "ich"
    entry = await coded.get("ein Ergebnis")
    assert entry is not None
    assert entry.value == b"42"
    assert await coded.get("nächtliche Läufe > *", consistent=True) is None


async def test_what_others_wrote_without_the_codec_is_said_to_be_in_the_way(kv: KeyValue) -> None:
    await kv.put("bA", b"no base64!")
    coded = kv.with_codec(keys=ns.Base64Keys(), values=ns.Base64Values())
    with pytest.raises(CodecError):
        async with coded.lock("l", timeout=20):
            pass
    await has_waiters(kv, 0)


async def test_strange_words_in_the_key_are_another_s_lock(kv: KeyValue) -> None:
    async def wait(key: str, value: bytes) -> None:
        await kv.put(key, value)
        with pytest.raises(LockHeldError) as caught:
            async with kv.lock(key, timeout=1):
                pass
        assert caught.value.name == key
        assert len(caught.value.holder) <= 1_024

    async with asyncio.TaskGroup() as group:
        group.create_task(wait("deep", b"[" * 200_000))
        group.create_task(wait("endless", b'{"ttl": 1e400}'))
        group.create_task(wait("long", b'{"ttl": 1' + b"0" * 4_000 + b"}"))
        group.create_task(wait("no-text", b"\xff" * 99))


@pytest.mark.parametrize("timeout", [0, 1])
async def test_value_that_somebody_has_put_is_said_to_stay(kv: KeyValue, timeout: float) -> None:
    await kv.put("l", b"me")
    await kv.put("l-expiring", b"me", ttl=60)

    with pytest.raises(LockHeldError, match="is held by me") as caught:
        async with kv.lock("l", timeout=timeout):
            pass
    with pytest.raises(LockHeldError) as other:
        async with kv.lock("l-expiring", timeout=timeout):
            pass

    assert "no lock and does not expire: lock another key" in caught.value.hint
    assert "wait longer" in other.value.hint


async def test_a_bucket_that_is_deleted_ends_the_wait(js: JetStream, kv: KeyValue) -> None:
    async def wait() -> None:
        async with kv.lock("l", timeout=None):
            pass

    await kv.put("l", b"another's")
    waiting = asyncio.create_task(wait())
    await has_waiters(kv, 1)
    await js.kv.delete(kv.name)
    with pytest.raises(BucketNotFoundError):
        await asyncio.wait_for(waiting, 30)


async def test_a_server_that_does_not_answer_is_not_taken_for_a_holder(
    fresh_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_key, "_CLEAN_UP_S", 0.1)  # It would wait 2 s for nothing.
    async with ns.connect(fresh_server.url, reconnect_timeout=60) as js:
        kv = await js.kv.create("locks", limit_marker_ttl=1)
        await asyncio.to_thread(fresh_server.pause)
        try:
            with pytest.raises(RequestTimeoutError, match="no answer to its claim") as caught:
                async with kv.lock("l", timeout=0.2):
                    pass
        finally:
            await asyncio.to_thread(fresh_server.resume)
        assert caught.value.retryable
        assert caught.value.hint


@pytest.mark.parametrize(("ttl", "timeout"), [(60, 1), (1, 0)])
async def test_lock_without_a_server_says_so_when_its_time_is_over(
    fresh_server: NatsServer, ttl: float, timeout: float
) -> None:
    async with ns.connect(fresh_server.url, reconnect_timeout=60) as js:
        kv = await js.kv.create("locks", limit_marker_ttl=1)
        await asyncio.to_thread(fresh_server.kill)
        await eventually_async(lambda: is_away(js), within_s=20)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        with pytest.raises(
            ConnectionLostError, match=r"lock 'l' .*: no reconnect within 1"
        ) as told:
            async with kv.lock("l", ttl=ttl, timeout=timeout):
                pass
        # Taking the claim back would last for 2 s more.
        assert loop.time() - begun < 2.5
        assert "check the servers" in told.value.hint
        assert told.value.retryable
