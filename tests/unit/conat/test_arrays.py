"""Calls that wait for the arrays: which go on when messages come, and at what cost."""

from __future__ import annotations

import asyncio

import pytest

from natsstream.conat.arrays import Arrays
from natsstream.conat.names import StreamNames
from natsstream.conat.record import Record

pytestmark = pytest.mark.asyncio


class CountedSeq(int):
    """A sequence that counts how often one is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedSeq.comparisons += 1
        return int(self) == other

    def __lt__(self, other: int) -> bool:
        CountedSeq.comparisons += 1
        return int(self) < other

    def __le__(self, other: int) -> bool:
        CountedSeq.comparisons += 1
        return int(self) <= other

    __hash__ = int.__hash__


def opened() -> Arrays:
    arrays = Arrays(StreamNames("hub/x"), None, lambda _: None)
    arrays.begin()
    return arrays


def arrive(arrays: Arrays, seq: int, time_ns: int = 0) -> None:
    arrays.take(arrays.reconciler.message(Record(seq, time_ns or seq, "", b"", b"v")))


async def waiting(arrays: Arrays, *seqs: int) -> list[asyncio.Task[None]]:
    """Return a call for each sequence, all of which wait."""
    calls = [asyncio.create_task(arrays.reach(seq)) for seq in seqs]
    await asyncio.sleep(0)
    return calls


async def test_a_message_that_comes_does_not_look_at_all_calls_that_wait() -> None:
    arrays = opened()
    calls = await waiting(arrays, *map(CountedSeq, range(1, 1_001)))
    before = CountedSeq.comparisons
    arrive(arrays, 1)
    looks = CountedSeq.comparisons - before

    await calls[0]
    assert not any(call.done() for call in calls[1:])
    assert looks < 50
    arrays.end()
    await asyncio.gather(*calls)


async def test_calls_go_on_when_their_message_is_there_in_any_order_of_calls() -> None:
    arrays = opened()
    third, first, again, fourth = await waiting(arrays, 3, 1, 1, 4)
    for seq in (1, 3, 2):  # The second message fills a hole, and the third is applied with it.
        arrive(arrays, seq)

    await asyncio.gather(third, first, again)
    assert not fourth.done()
    arrays.end()
    await fourth


async def test_a_call_that_was_cancelled_leaves_the_others_waiting() -> None:
    arrays = opened()
    first, cancelled, also, last = await waiting(arrays, 1, 2, 2, 3)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    arrive(arrays, 1)
    also.cancel()
    await asyncio.wait([also, first])
    assert not last.done()
    for seq in (2, 3):
        arrive(arrays, seq)

    await asyncio.gather(first, last)
    assert cancelled.cancelled()
    assert also.cancelled()


async def test_a_stream_that_is_made_anew_lets_all_calls_go_on() -> None:
    arrays = opened()
    arrive(arrays, 1)
    calls = await waiting(arrays, 2, 9)
    arrays.take(arrays.reconciler.reset())

    await asyncio.gather(*calls)
    [later] = await waiting(arrays, 1)
    assert not later.done()
    arrive(arrays, 1, 7)
    await later
