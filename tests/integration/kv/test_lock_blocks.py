"""A lock's block: what the loss of the lock, errors and cancels make of it, and of each other."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream.errors import LockLostError
from natsstream.kv.locks import lock_key
from tests.support.buckets import bucket_of
from tests.support.eventually import eventually_async
from tests.support.locks import give_back_patiently

if TYPE_CHECKING:
    from natsstream import JetStream, KeyValue, Lock

pytestmark = pytest.mark.asyncio

# The largest margin of the shortest ttl: so long a lock is believed in without a renewal.
MARGIN_S = 0.5
BELIEF_S = 0.5


@pytest_asyncio.fixture
async def kv(js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch) -> KeyValue:
    """A bucket that can keep locks, on a server that may be slow to take them back."""
    give_back_patiently(monkeypatch)
    return await js.kv.create(stream_name, limit_marker_ttl=1, storage="memory")


def brief(kv: KeyValue) -> Lock:
    """Describe a lock whose time is soon over, on a loop that stands still."""
    return kv.lock("l", ttl=1, margin=MARGIN_S)


def outlive() -> None:
    """Block the event loop until a brief lock's time is over, so that nobody could tell of it."""
    time.sleep(BELIEF_S + 0.01)


def is_clean() -> bool:
    """Tell whether no cancel is left on this task."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() == 0


async def test_a_loss_inside_a_task_group_ends_its_tasks_and_is_told(kv: KeyValue) -> None:
    ended: list[str] = []

    async def child() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("child")

    async def hold() -> None:
        async with kv.lock("l", ttl=1), asyncio.TaskGroup() as group:
            group.create_task(child())
            await kv.delete("l")

    with pytest.raises(LockLostError):
        await hold()
    assert ended == ["child"]
    assert is_clean()


async def test_errors_of_a_task_group_that_the_loss_ends_go_first(kv: KeyValue) -> None:
    async def child() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            raise ZeroDivisionError

    async def hold() -> None:
        async with kv.lock("l", ttl=1), asyncio.TaskGroup() as group:
            group.create_task(child())
            await kv.delete("l")

    with pytest.raises(ExceptionGroup) as caught:
        await hold()
    assert isinstance(caught.value.exceptions[0], ZeroDivisionError)
    assert is_clean()


async def test_a_timeout_inside_the_block_is_not_taken_for_the_loss(kv: KeyValue) -> None:
    async def hold() -> None:
        async with kv.lock("l", ttl=1):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(30)
            await kv.delete("l")
            async with asyncio.timeout(30):
                await asyncio.sleep(30)

    with pytest.raises(LockLostError):
        await hold()
    assert is_clean()


async def test_a_timeout_around_the_block_ends_it_and_frees_the_lock(kv: KeyValue) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2), kv.lock("l", ttl=60):
            await asyncio.sleep(30)
    async with kv.lock("l", timeout=0):
        pass
    assert is_clean()


async def test_a_block_that_only_looked_at_the_loss_is_cancelled_by_it(kv: KeyValue) -> None:
    async def hold() -> None:
        async with brief(kv) as lock:
            outlive()
            assert not lock.is_held
            await asyncio.sleep(30)

    with pytest.raises(LockLostError):
        await hold()
    assert is_clean()


async def test_a_block_that_was_told_by_an_error_can_tidy_up(kv: KeyValue) -> None:
    tidied: list[str] = []

    async def hold() -> None:
        async with brief(kv) as lock:
            outlive()
            with pytest.raises(LockLostError):
                lock.check()
            await asyncio.sleep(0.01)
            tidied.append("tidied")

    with pytest.raises(LockLostError):
        await hold()
    assert tidied == ["tidied"]
    assert is_clean()


async def test_an_error_of_the_block_stays_when_the_loss_cancels_its_end(kv: KeyValue) -> None:
    async def hold() -> None:
        async with brief(kv) as lock:
            outlive()
            assert not lock.is_held
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await hold()
    assert is_clean()


async def test_a_cancel_from_outside_goes_before_the_loss(kv: KeyValue) -> None:
    has_ended = asyncio.Event()

    async def hold() -> None:
        async with brief(kv):
            has_ended.set()
            try:
                await asyncio.sleep(30)
            finally:
                outlive()

    task = asyncio.create_task(hold())
    await has_ended.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_who_is_cancelled_at_any_moment_leaves_no_lock_behind(kv: KeyValue) -> None:
    """A claim that is under way is stored after its caller was cancelled."""

    async def hold() -> None:
        async with kv.lock("l", ttl=60):
            await asyncio.sleep(0)

    for index in range(80):
        task = asyncio.create_task(hold())
        await asyncio.sleep(index % 20 / 5_000)
        task.cancel()
        await asyncio.wait([task])
        assert await kv.get("l", consistent=True) is None, f"cancelled at {index % 20 / 5_000} s"


async def test_who_is_cancelled_when_the_lock_comes_leaves_nothing_behind(kv: KeyValue) -> None:
    async def hold() -> None:
        async with kv.lock("l", ttl=60):
            await asyncio.sleep(0)

    async def is_waited_for() -> bool:
        return (await kv.stream.info()).state.consumer_count > 0

    async def is_left_alone() -> bool:
        return not await is_waited_for()

    for index in range(25):
        async with kv.lock("l", ttl=60):
            task = asyncio.create_task(hold())
            await eventually_async(is_waited_for, within_s=10)
        await asyncio.sleep(index / 6_000)
        task.cancel()
        await asyncio.wait([task])
        assert await kv.get("l", consistent=True) is None, f"cancelled at {index / 6_000} s"
        await eventually_async(is_left_alone, within_s=10)


async def test_a_cancel_while_the_lock_is_given_back_does_not_keep_it(kv: KeyValue) -> None:
    for steps in range(8):
        async with kv.lock("l", ttl=60) as lock:
            task = asyncio.create_task(lock.release())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            if not lock.is_held:  # It had begun.
                assert await kv.get("l", consistent=True) is None


@pytest.mark.parametrize("cancels", [2, 3, 4])
async def test_who_is_cancelled_again_while_the_claim_is_taken_back_leaves_no_lock_behind(
    kv: KeyValue, monkeypatch: pytest.MonkeyPatch, cancels: int
) -> None:
    """The claim is stored when nobody waits for it any more."""
    bucket, may_go = bucket_of(kv), asyncio.Event()
    create = bucket.create

    async def stored_late(name: str, value: bytes, **options: Any) -> int:
        revision = await create(name, value, **options)
        await may_go.wait()
        return revision

    lock = kv.lock("l", ttl=60)
    monkeypatch.setattr(bucket, "create", stored_late)
    task = asyncio.ensure_future(lock.__aenter__())
    await eventually_async(lambda: kv.get("l", consistent=True))
    await cancel(task, cancels)
    may_go.set()
    await eventually_async(lambda: is_free(kv))


@pytest.mark.parametrize("cancels", [1, 2, 3, 4])
async def test_who_is_cancelled_again_and_again_while_leaving_leaves_no_lock_behind(
    kv: KeyValue, cancels: int
) -> None:
    """A renewal is in flight too, and leaving waits for it."""

    async def hold() -> None:
        async with kv.lock("l", ttl=60) as lock:
            entered.set_result(lock)

    entered: asyncio.Future[Lock] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(hold())
    await entered
    await cancel(task, cancels)
    await eventually_async(lambda: is_free(kv))


async def test_a_claim_that_is_answered_too_late_is_removed_though_its_caller_is_cancelled(
    kv: KeyValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket, is_removed, may_go = bucket_of(kv), asyncio.Event(), asyncio.Event()
    purge = bucket.purge

    async def held_up(key: str, **options: Any) -> int:
        is_removed.set()
        await may_go.wait()
        return await purge(key, **options)

    monkeypatch.setattr(bucket, "purge", held_up)

    def too_late(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(lock_key, "begun", too_late)
    task = asyncio.ensure_future(kv.lock("l", ttl=60).__aenter__())
    await is_removed.wait()
    await cancel(task, 2)
    may_go.set()
    await eventually_async(lambda: is_free(kv))


async def is_free(kv: KeyValue) -> bool:
    """Tell whether the lock is nobody's."""
    return await kv.get("l", consistent=True) is None


async def cancel(task: asyncio.Future[Any], times: int) -> None:
    """Cancel a task some times; it ends, and does not wait for its clean-up for ever."""
    for _ in range(times):
        task.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
    await asyncio.wait([task])
