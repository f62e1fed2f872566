"""Coroutines that begin at once, and the tasks that go on with them."""

from __future__ import annotations

import asyncio
import decimal
import gc
import weakref
from collections.abc import Awaitable, Callable

import pytest

from natsstream.eager import Begun

pytestmark = pytest.mark.asyncio


def begun(coroutine_of: Callable[[], Awaitable[str]]) -> Begun[str]:
    """Begin a coroutine here."""

    async def run() -> str:
        return await coroutine_of()

    return Begun(run(), asyncio.get_running_loop())


async def nothing() -> str:
    return "at once"


async def test_what_need_not_wait_ends_in_this_turn() -> None:
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "the loop")

    at_once = begun(nothing)
    assert not at_once.is_waiting
    assert at_once.result() == "at once"
    assert not turns
    # Its task was not needed, and says nothing.
    assert await at_once.task is None


async def test_an_error_of_the_first_part_is_raised_once_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails() -> str:
        raise ZeroDivisionError

    failed = begun(fails)
    assert not failed.is_waiting
    with pytest.raises(ZeroDivisionError):
        failed.result()
    await asyncio.sleep(0)
    assert failed.task.done()
    del failed
    assert not caplog.records


@pytest.mark.parametrize("wait_s", [0, 0.001])
async def test_what_waits_goes_on_as_a_task(wait_s: float) -> None:
    async def waits() -> str:
        await asyncio.sleep(wait_s)
        return "later"

    waiting = begun(waits)
    assert waiting.is_waiting
    assert not waiting.task.done()
    assert await waiting.task == "later"


async def test_both_parts_run_in_the_same_task_and_not_in_the_starter() -> None:
    tasks: list[asyncio.Task[object] | None] = []

    async def waits() -> str:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        tasks.append(asyncio.current_task())
        return ""

    starter = asyncio.current_task()
    waiting = begun(waits)
    assert asyncio.current_task() is starter
    await waiting.task
    assert tasks == [waiting.task, waiting.task]


async def test_a_timeout_of_the_first_part_ends_the_wait_inside() -> None:
    async def waits() -> str:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "never"

    assert await begun(waits).task == "timed out"


async def test_it_can_be_begun_out_of_a_callback() -> None:
    started: asyncio.Future[Begun[str]] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(lambda: started.set_result(begun(nothing)))
    assert (await started).result() == "at once"


async def test_what_it_waits_for_may_have_other_waiters() -> None:
    shared: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def waits() -> str:
        return await shared

    first, second = begun(waits), begun(waits)
    other = asyncio.ensure_future(waits())
    await asyncio.sleep(0)
    shared.set_result("all")
    assert await asyncio.gather(first.task, second.task, other) == ["all", "all", "all"]


async def test_it_has_a_context_of_its_own() -> None:
    async def waits() -> str:
        with decimal.localcontext() as context:
            context.prec = 3
            await asyncio.sleep(0)
            return str(decimal.getcontext().prec)

    waiting = begun(waits)
    assert decimal.getcontext().prec == decimal.DefaultContext.prec
    assert await waiting.task == "3"


async def test_a_task_is_shown_with_its_coroutine() -> None:
    async def waits() -> str:
        await asyncio.sleep(0)
        return ""

    waiting = begun(waits)
    assert "run()" in repr(waiting.task)
    assert waiting.task.get_stack()
    await waiting.task


async def test_errors_are_freed_without_the_collector() -> None:
    class Thing:
        pass

    async def fails(wait: Awaitable[None] | None, things: list[weakref.ref[Thing]]) -> str:
        thing = Thing()
        things.append(weakref.ref(thing))
        if wait is not None:
            await wait
        raise ZeroDivisionError

    loop, things = asyncio.get_running_loop(), list[weakref.ref[Thing]]()
    gc.collect()
    gc.disable()
    try:
        for wait in (None, asyncio.sleep(0), loop.create_future()):
            step = Begun(fails(wait, things), loop)
            if isinstance(wait, asyncio.Future):
                step.task.cancel()
            with pytest.raises((ZeroDivisionError, asyncio.CancelledError)) as caught:
                await step.task if step.is_waiting else step.result()
            del step, caught, wait
            await asyncio.sleep(0)

        async def starter() -> None:
            Begun(fails(None, things), loop).result()

        ended = asyncio.ensure_future(starter())
        await asyncio.wait([ended])
        assert isinstance(ended.exception(), ZeroDivisionError)
        del ended
        assert [thing() for thing in things] == [None] * 4
    finally:
        gc.enable()


async def test_a_loop_that_is_left_at_once_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        begun(nothing)
        raise SystemExit

    def leave() -> None:
        with pytest.raises(SystemExit):
            asyncio.run(main())
        loop = asyncio.new_event_loop()
        with pytest.raises(SystemExit):
            loop.run_until_complete(main())
        loop.close()
        gc.collect()

    await asyncio.to_thread(leave)
    assert not caplog.records


class TestCancelling:
    """A task is cancelled before or after its first turn."""

    @pytest.mark.parametrize("turns", [0, 1, 3])
    @pytest.mark.parametrize("waits_for", ["future", "turn", "task"])
    async def test_reaches_what_waits(self, turns: int, waits_for: str) -> None:
        ends: list[str] = []
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def child() -> None:
            try:
                await future
            except asyncio.CancelledError:
                ends.append("child")
                raise

        async def waits() -> str:
            try:
                if waits_for == "future":
                    await future
                elif waits_for == "task":
                    await asyncio.ensure_future(child())
                while True:
                    await asyncio.sleep(0)
            except asyncio.CancelledError:
                ends.append("waiter")
                raise

        waiting = begun(waits)
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting.task
        assert ends[-1] == "waiter"
        assert future.cancelled() == (waits_for == "future" or ends == ["child", "waiter"])

    async def test_what_has_come_meanwhile_does_not_hide_it(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ends: list[str] = []

        async def waits() -> str:
            try:
                await future
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise
            return "never"

        waiting = begun(waits)
        future.set_result(None)
        waiting.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting.task
        assert ends == ["cancelled"]

    async def test_keeps_its_message(self) -> None:
        told: list[object] = []

        async def waits() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                told.extend(error.args)
            return ""

        waiting = begun(waits)
        waiting.task.cancel("why")
        await waiting.task
        assert told == ["why"]

    async def test_of_what_has_ended_at_once_is_no_error(self) -> None:
        ended = begun(nothing)
        ended.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ended.task
        assert ended.result() == "at once"

    async def test_what_does_not_want_to_end_goes_on(self) -> None:
        async def waits() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)
            return "went on"

        waiting = begun(waits)
        waiting.task.cancel()
        assert await waiting.task == "went on"
