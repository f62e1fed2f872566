"""Objects that several users share: who gives up disturbs nobody, and nothing stays open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream.conat.shared import SharedObjects

if TYPE_CHECKING:
    from natsstream.conat.shared import Release

pytestmark = pytest.mark.asyncio


class Thing:
    """A shared object."""

    def __init__(self, release: Release) -> None:
        self.is_closed = False
        self._release = release

    async def close(self) -> None:
        await asyncio.sleep(0)
        if not self.is_closed and self._release():
            self.is_closed = True


class Opener:
    """Makes things, once `may_open` is set."""

    def __init__(self) -> None:
        self.may_open = asyncio.Event()
        self.made: list[Thing] = []
        self.begun = 0
        self.given_up = 0
        self.error: Exception | None = None

    async def make(self, release: Release) -> Thing:
        self.begun += 1
        try:
            await self.may_open.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.error is not None:
            raise self.error
        self.made.append(Thing(release))
        return self.made[-1]


def users(shared: SharedObjects[Thing], opener: Opener, count: int) -> list[asyncio.Task[Thing]]:
    """Ask for the same thing, each in a task of its own."""
    return [asyncio.create_task(shared.get("key", opener.make)) for _ in range(count)]


@pytest.mark.parametrize("turns", range(5))
async def test_those_who_give_up_leave_it_to_the_others(turns: int) -> None:
    shared, opener = SharedObjects[Thing](), Opener()
    first, second, third, fourth = users(shared, opener, 4)
    await asyncio.sleep(0)
    first.cancel()
    for _ in range(turns):
        await asyncio.sleep(0)
    second.cancel()
    opener.may_open.set()
    thing = await third
    assert await fourth is thing
    assert opener.begun == 1
    await thing.close()
    assert not thing.is_closed
    await thing.close()
    assert thing.is_closed


@pytest.mark.parametrize("turns", range(5))
async def test_when_all_give_up_nothing_stays(turns: int) -> None:
    shared, opener = SharedObjects[Thing](), Opener()
    waiting = users(shared, opener, 3)
    await asyncio.sleep(0)
    for each in waiting:
        each.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in ends] == [asyncio.CancelledError] * 3
    assert (opener.begun, opener.given_up) == (1, 1)
    opener.may_open.set()
    again = await shared.get("key", opener.make)
    assert opener.begun == 2
    await again.close()
    assert again.is_closed


@pytest.mark.parametrize("turns", range(6))
async def test_giving_up_as_it_is_opened_leaves_nothing_open(turns: int) -> None:
    shared, opener = SharedObjects[Thing](), Opener()

    async def use() -> None:
        await (await shared.get("key", opener.make)).close()

    using = asyncio.create_task(use())
    (other,) = users(shared, opener, 1)
    await asyncio.sleep(0)
    opener.may_open.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    other.cancel()
    await using
    (ended,) = await asyncio.gather(other, return_exceptions=True)
    if isinstance(ended, Thing):  # It had it before.
        await ended.close()
    assert all(thing.is_closed for thing in opener.made)


async def test_an_error_is_told_to_all_and_the_next_one_tries_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shared, opener = SharedObjects[Thing](), Opener()
    opener.error = ZeroDivisionError()
    waiting = users(shared, opener, 2)
    await asyncio.sleep(0)
    opener.may_open.set()
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in ends] == [ZeroDivisionError] * 2
    opener.error = None
    assert await shared.get("key", opener.make) is opener.made[0]
    assert not caplog.records
