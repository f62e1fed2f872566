"""Calls that wait for a place."""

from __future__ import annotations

import asyncio

import pytest

from natsstream.waiters import Waiters

pytestmark = pytest.mark.asyncio


async def turn() -> None:
    for _ in range(2):
        await asyncio.sleep(0)


async def test_those_go_on_whose_place_has_come_and_at_the_end_all() -> None:
    waiters = Waiters[int]()
    tasks = [asyncio.ensure_future(waiters.wait(place)) for place in (3, 1, 2, 3, 9)]
    await turn()

    waiters.release_below(3)
    await turn()
    assert [task.done() for task in tasks] == [False, True, True, False, False]
    waiters.release_below(4)
    await turn()
    assert [task.done() for task in tasks] == [True, True, True, True, False]
    waiters.release_all()
    await turn()
    assert tasks[-1].done()
    assert len(waiters) == 0


async def test_those_of_one_place_go_on_in_the_order_of_their_calls() -> None:
    waiters, order = Waiters[int](), list[int]()

    async def call(number: int) -> None:
        await waiters.wait(7)
        order.append(number)

    tasks = [asyncio.ensure_future(call(number)) for number in range(20)]
    await turn()
    waiters.release_below(8)
    await asyncio.gather(*tasks)
    assert order == list(range(20))


async def test_a_cancelled_call_is_forgotten_at_once() -> None:
    waiters = Waiters[tuple[int, int]]()
    kept = asyncio.ensure_future(waiters.wait((1, 2)))
    gone = [asyncio.ensure_future(waiters.wait((1, place))) for place in (1, 2, 2, 3)]
    await turn()
    for task in gone:
        task.cancel()
    await asyncio.wait(gone)
    assert len(waiters) == 1

    waiters.release_below((2, 0))
    await kept
