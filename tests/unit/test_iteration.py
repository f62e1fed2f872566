"""Iterators that go on after a cancelled call."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress

import pytest

from natsstream.errors import EventLoopError, UsageError
from natsstream.iteration import Calls, Flattened, Steps

pytestmark = pytest.mark.asyncio


class Source:
    """A generator of numbers that waits before each, until it is told to go on."""

    def __init__(self, count: int) -> None:
        self.turn = asyncio.Event()
        self.is_closed = False
        self._count = count

    async def numbers(self) -> AsyncGenerator[int]:
        try:
            for number in range(self._count):
                await self.turn.wait()
                self.turn.clear()
                yield number
        finally:
            self.is_closed = True


async def cancelled(items: AsyncIterator[int]) -> None:
    """Wait for the next item, and give up."""
    waiting = asyncio.ensure_future(anext(items))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_step_outlives_those_who_waited_for_it() -> None:
    source = Source(3)
    items = Steps(source.numbers())

    found: list[int] = []
    for _ in range(3):
        await cancelled(items)
        await cancelled(items)
        source.turn.set()
        found.append(await anext(items))

    assert found == [0, 1, 2]
    with pytest.raises(StopAsyncIteration):
        await anext(items)


async def test_what_came_while_nobody_waited_is_the_next_item() -> None:
    source = Source(2)
    items = Steps(source.numbers())

    await cancelled(items)
    source.turn.set()
    for _ in range(3):  # The step ends in turns of its own.
        await asyncio.sleep(0)
    assert await anext(items) == 0


async def test_an_error_comes_once_and_ends_the_items() -> None:
    async def failing() -> AsyncGenerator[int]:
        yield 1
        await asyncio.sleep(0)
        raise ZeroDivisionError

    items = Steps(failing())
    assert await anext(items) == 1
    await cancelled(items)
    with pytest.raises(ZeroDivisionError):
        await anext(items)
    with pytest.raises(StopAsyncIteration):
        await anext(items)


async def test_two_tasks_do_not_wait_for_one_item() -> None:
    source = Source(1)
    items = Steps(source.numbers())
    first = asyncio.ensure_future(anext(items))
    await asyncio.sleep(0)

    with pytest.raises(UsageError, match="another task"):
        await anext(items)
    source.turn.set()
    assert await first == 0


async def test_closing_ends_the_generator_and_whoever_waits() -> None:
    source = Source(1)
    items = Steps(source.numbers())
    waiting = asyncio.ensure_future(anext(items))
    for _ in range(2):  # The wait begins, then the step.
        await asyncio.sleep(0)

    await items.aclose()
    assert source.is_closed
    with pytest.raises(StopAsyncIteration):
        await waiting
    with pytest.raises(StopAsyncIteration):
        await anext(items)
    await items.aclose()


async def test_an_iterator_that_nobody_has_any_more_ends_its_step() -> None:
    source = Source(1)
    items = Steps(source.numbers())
    await cancelled(items)

    del items
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0)
    assert source.is_closed


async def test_steps_that_need_not_wait_take_no_turn_of_the_loop() -> None:
    async def numbers() -> AsyncGenerator[int]:
        for number in range(100):
            yield number

    turns: list[None] = []
    asyncio.get_running_loop().call_soon(turns.append, None)
    assert [number async for number in Steps(numbers())] == [*range(100)]
    assert not turns


class Waited:
    """Numbers that are there once `arrived` is set, and a wait for them."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.waits = 0
        self.steps = 0

    async def wait(self) -> None:
        self.waits += 1
        await self.arrived.wait()

    async def numbers(self) -> AsyncGenerator[int]:
        for number in range(3):
            self.steps += 1
            await self.arrived.wait()
            self.arrived.clear()
            yield number


async def test_a_step_begins_when_the_wait_is_over() -> None:
    source = Waited()
    items = Steps(source.numbers(), wait=source.wait)
    for number in range(3):
        await cancelled(items)
        await cancelled(items)
        assert source.steps == number
        source.arrived.set()
        assert await anext(items) == number
        assert source.steps == number + 1
    assert source.waits == 9


async def test_nobody_waits_while_another_does() -> None:
    source = Waited()
    items = Steps(source.numbers(), wait=source.wait)
    first = asyncio.ensure_future(anext(items))
    await asyncio.sleep(0)
    with pytest.raises(UsageError, match="another task"):
        await anext(items)
    source.arrived.set()
    assert await first == 0


async def test_closing_ends_a_wait_although_the_generator_takes_its_time() -> None:
    arrived = asyncio.Event()

    async def numbers() -> AsyncGenerator[int]:
        try:
            yield 0
            yield 1
        finally:
            arrived.set()
            await asyncio.sleep(0.001)

    async def wait() -> None:
        if begun:
            await arrived.wait()

    begun: list[int] = []
    items = Steps(numbers(), wait=wait)
    begun.append(await anext(items))
    waiting = asyncio.ensure_future(anext(items))
    await asyncio.sleep(0)
    await items.aclose()
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_a_wait_that_ends_too_early_does_no_harm() -> None:
    source = Source(2)

    async def wait() -> None:
        await asyncio.sleep(0)

    items = Steps(source.numbers(), wait=wait)
    for number in range(2):
        await cancelled(items)
        await cancelled(items)
        source.turn.set()
        assert await anext(items) == number


async def test_another_event_loop_is_told() -> None:
    async def numbers() -> AsyncGenerator[int]:
        yield 1
        yield 2

    items = Steps(numbers())
    assert await anext(items) == 1
    with pytest.raises(EventLoopError, match="another event loop"):
        await asyncio.to_thread(asyncio.run, items.asend(None))
    assert await anext(items) == 2


async def test_items_of_a_list_come_without_a_step() -> None:
    async def lists() -> AsyncGenerator[list[int]]:
        for start in (0, 3):
            await asyncio.sleep(0)
            yield [start, start + 1]
            yield []

    items = Flattened(lists(), iter)
    found: list[int] = []
    await cancelled(items)
    async for item in items:
        found.append(item)
        if item == 0:
            break
    found += [item async for item in items]
    assert found == [0, 1, 3, 4]


async def test_an_item_that_cannot_be_read_ends_the_items() -> None:
    is_closed = False

    async def lists() -> AsyncGenerator[list[int]]:
        nonlocal is_closed
        try:
            yield [2, 0, 1]
            yield [1]
        finally:
            is_closed = True

    items = Flattened(lists(), lambda numbers: (4 // each for each in numbers))
    assert await anext(items) == 2
    with pytest.raises(ZeroDivisionError):
        await anext(items)
    assert is_closed
    with pytest.raises(StopAsyncIteration):
        await anext(items)


async def test_calls_go_on_until_there_is_none() -> None:
    waiting = [3, 2, 1]

    async def take() -> int | None:
        await asyncio.sleep(0)
        return waiting.pop() if waiting else None

    items = Calls(take)
    await cancelled(items)
    assert [item async for item in items] == [1, 2, 3]
    waiting.append(4)
    await items.aclose()
    assert [item async for item in items] == []


async def test_an_error_can_be_thrown_in_as_into_a_generator() -> None:
    source = Source(1)
    items = Steps(source.numbers())
    await cancelled(items)

    with pytest.raises(ZeroDivisionError):
        await items.athrow(ZeroDivisionError("x"))
    assert source.is_closed


async def test_an_error_that_is_kept_keeps_neither_the_iterator_nor_its_step() -> None:
    source = Source(1)

    async def loop() -> None:
        async for _ in Flattened(lists(), iter):
            pass

    async def lists() -> AsyncGenerator[list[int]]:
        async for number in source.numbers():
            yield [number]

    gc.disable()  # A cycle would be found by chance.
    try:
        looping = asyncio.ensure_future(loop())
        for _ in range(4):
            await asyncio.sleep(0)
        looping.cancel()
        with pytest.raises(asyncio.CancelledError) as kept:
            await looping
        for _ in range(6):
            await asyncio.sleep(0)
        assert source.is_closed
        assert kept.value
    finally:
        gc.enable()


async def test_the_error_of_a_step_is_in_no_cycle() -> None:
    class Held:
        """Something that can be watched."""

    async def failing() -> AsyncGenerator[int]:
        held = Held()
        gone.append(weakref.ref(held))
        yield 1
        raise ZeroDivisionError

    gone: list[weakref.ref[Held]] = []
    gc.disable()
    try:
        items = Steps(failing())
        assert await anext(items) == 1
        with suppress(ZeroDivisionError):
            await anext(items)
        await asyncio.sleep(0)
        assert gone[0]() is None
    finally:
        gc.enable()


async def test_closing_ends_a_call_that_waits_and_closes_what_it_reads_from() -> None:
    source = Source(1)
    steps = Steps(source.numbers())
    items = Calls(lambda: anext(steps, None), steps)
    waiting = asyncio.ensure_future(anext(items))
    for _ in range(2):
        await asyncio.sleep(0)

    await items.aclose()
    with pytest.raises(StopAsyncIteration):
        await waiting
    assert source.is_closed
    assert not waiting.cancelled()


async def test_a_call_that_is_cancelled_while_it_is_closed_stays_cancelled() -> None:
    async def take() -> int | None:
        await asyncio.Event().wait()
        return None

    items = Calls(take)
    waiting = asyncio.ensure_future(anext(items))
    await asyncio.sleep(0)
    waiting.cancel()
    await items.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_two_may_close_at_the_same_time() -> None:
    source = Source(1)
    items = Steps(source.numbers())
    await cancelled(items)
    await asyncio.gather(items.aclose(), items.aclose())
    assert source.is_closed


async def test_a_part_that_cannot_be_read_ends_the_items() -> None:
    async def parts() -> AsyncGenerator[int]:
        for number in (1, 0, 2):
            yield number

    items = Flattened(parts(), lambda number: [4 // number])
    assert await anext(items) == 4
    with pytest.raises(ZeroDivisionError):
        await anext(items)
    assert [item async for item in items] == []
