"""The future of an ack, which makes the ack when it is asked for, and the window of those."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import UsageError
from natsstream.publish.ack_window import AckFuture, AckWindow
from natsstream.publish.pub_ack import PubAck

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

pytestmark = pytest.mark.asyncio

ACK = PubAck("S", 7, domain="hub")


async def by_callback(future: AckFuture) -> PubAck:
    told: list[PubAck] = []
    future.add_done_callback(lambda done: told.append(done.result()))
    await asyncio.wait([future])
    return told[0]


async def by_gather(future: AckFuture) -> PubAck:
    return (await asyncio.gather(future))[0]


async def by_timeout(future: AckFuture) -> PubAck:
    return await asyncio.wait_for(future, 5)


async def by_shield(future: AckFuture) -> PubAck:
    return await asyncio.shield(future)


async def by_await(future: AckFuture) -> PubAck:
    return await future


async def by_result(future: AckFuture) -> PubAck:
    await asyncio.wait([future])
    return future.result()


@pytest.mark.parametrize(
    "wait", [by_await, by_result, by_callback, by_gather, by_timeout, by_shield]
)
@pytest.mark.parametrize("raw", [("S", 7, False, "hub"), ACK], ids=["quick", "whole"])
async def test_every_way_of_waiting_gives_the_ack(
    wait: Callable[[AckFuture], Awaitable[PubAck]], raw: tuple[str, int, bool, str] | PubAck
) -> None:
    future = AckFuture()
    asyncio.get_running_loop().call_soon(future.settle, raw)

    ack = await wait(future)

    assert ack == ACK
    assert await future is ack


class Counted:
    """An awaitable that counts how often it had to wait.

    Attributes:
        waits: How often.
    """

    def __init__(self, inner: Coroutine[None, None, None]) -> None:
        self.waits = 0
        self._inner = inner

    def __await__(self) -> Generator[object, None, None]:
        inner = self._inner.__await__()
        try:
            each = next(inner)
            while True:
                self.waits += 1
                try:
                    yield each
                except asyncio.CancelledError as error:
                    each = inner.throw(error)
                else:
                    each = next(inner)
        except StopIteration:
            return


class Sends:
    """Sends through a window, each under a name, as a publisher does.

    Attributes:
        window: The window.
        entered: Names of the messages that have entered, in order.
        tasks: The sends, in order.
        counted: How often each had to wait.
    """

    def __init__(self, count_max: int, size_max: int = 1 << 20) -> None:
        self.window = AckWindow(count_max, size_max)
        self.entered: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.counted: list[Counted] = []
        self._in_flight: list[AckFuture] = []

    def begin(self, name: str, size: int = 1, *, fails: bool = False) -> asyncio.Task[None]:
        """Send in a task of its own."""
        counted = Counted(self._send(name, size, fails=fails))

        async def wait() -> None:
            await counted

        self.counted.append(counted)
        self.tasks.append(asyncio.create_task(wait()))
        return self.tasks[-1]

    async def _send(self, name: str, size: int, *, fails: bool) -> None:
        if not self.window.has_room(size):
            await self.window.wait_for_room(size)
        if fails:
            raise UsageError("an earlier one failed")
        entry = AckFuture()
        entry.size, entry.is_over = size, False
        self.window.enter(entry)
        assert self.window.count <= 4
        self._in_flight.append(entry)
        self.entered.append(name)

    def ack(self, count: int) -> None:
        """Ack the oldest messages with one batch of acks."""
        for entry in self._in_flight[:count]:
            self.window.settle(entry, ACK)
        del self._in_flight[:count]
        self.window.wake()


async def rest() -> None:
    """Return once every task has gone as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_acks_wake_no_more_sends_than_there_is_room_for() -> None:
    """Counts waits: one for each send that finds the window full, however many others there are."""
    sends = Sends(4)
    names = [f"{at}" for at in range(100)]
    for name in names:
        sends.begin(name)
    await rest()

    while len(sends.entered) < 100:
        before = len(sends.entered)
        sends.ack(2)
        await rest()
        assert len(sends.entered) == before + 2

    assert sends.entered == names
    assert [each.waits for each in sends.counted] == [0] * 4 + [1] * 96


async def test_later_send_goes_behind_those_that_were_let_in() -> None:
    sends = Sends(2)
    for name in "abcd":
        sends.begin(name)
    await rest()
    sends.ack(2)  # Lets c and d in, which have not gone on yet.
    sends.ack(0)

    assert not sends.window.has_room(1)
    sends.begin("e")
    await rest()
    sends.ack(1)
    await rest()

    assert sends.entered == ["a", "b", "c", "d", "e"]


async def test_small_message_does_not_go_past_a_large_one() -> None:
    sends = Sends(4, 10)
    sends.begin("a", 6)
    sends.begin("b", 3)
    sends.begin("large", 9)
    sends.begin("small", 1)
    await rest()

    sends.ack(1)
    await rest()
    assert sends.entered == ["a", "b"]
    sends.ack(1)
    await rest()

    assert sends.entered == ["a", "b", "large", "small"]


@pytest.mark.parametrize("when", ["it waits", "it was let in"])
async def test_send_that_is_cancelled_passes_its_room_on(when: str) -> None:
    sends = Sends(1, 10)
    sends.begin("a")
    left = sends.begin("b", 20)
    sends.begin("c")
    await rest()

    if when == "it waits":
        left.cancel()
        sends.ack(1)
    else:
        sends.ack(1)
        left.cancel()
    await rest()

    assert left.cancelled()
    assert sends.entered == ["a", "c"]
    sends.ack(1)
    assert sends.window.has_room(10)


async def test_large_send_that_is_cancelled_lets_a_small_one_in() -> None:
    sends = Sends(4, 10)
    sends.begin("a", 6)
    left = sends.begin("b", 9)
    sends.begin("c", 3)
    await rest()
    assert sends.entered == ["a"]

    left.cancel()
    await rest()

    assert sends.entered == ["a", "c"]


async def test_send_that_fails_when_it_is_let_in_passes_its_room_on() -> None:
    sends = Sends(1)
    sends.begin("a")
    failed = [sends.begin("b", fails=True), sends.begin("c", fails=True)]
    sends.begin("d")
    await rest()

    sends.ack(1)
    await rest()

    assert all(isinstance(task.exception(), UsageError) for task in failed)
    assert sends.entered == ["a", "d"]


async def test_end_wakes_all_at_once() -> None:
    sends = Sends(1)
    sends.begin("a")
    failed = [sends.begin(f"{at}", fails=True) for at in range(20)]
    await rest()

    sends.window.wake_all()
    await rest()

    assert all(isinstance(task.exception(), UsageError) for task in failed)


async def test_flush_waits_for_its_own_messages_only() -> None:
    sends = Sends(4)
    entries = [AckFuture(), AckFuture()]
    for entry in entries:
        entry.size, entry.is_over = 1, False
        sends.window.enter(entry)
    flush = asyncio.create_task(sends.window.wait_for(entries[:1]))
    await rest()

    sends.window.settle(entries[1], ACK)
    sends.window.wake()
    await rest()
    assert not flush.done()
    sends.window.settle(entries[0], ACK)
    sends.window.wake()

    await flush
