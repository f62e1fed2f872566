"""Calls at the same time: how many, in which order, and how they fail."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from natsstream.api.at_once import IN_FLIGHT_MAX, at_once
from natsstream.read import leader_reads
from natsstream.read.leader_reads import LeaderReads
from natsstream.read.missing import MissingSequences

pytestmark = pytest.mark.asyncio


class Calls:
    """Counts those that run at the same time."""

    def __init__(self, *fails: int) -> None:
        self.begun: list[int] = []
        self.most = 0
        self._running = 0
        self._fails = fails

    async def __call__(self, item: int) -> int:
        self.begun.append(item)
        self._running += 1
        self.most = max(self.most, self._running)
        await asyncio.sleep(0)
        if item in self._fails:
            self._running -= 1
            raise ZeroDivisionError
        for _ in range(item % 3):
            await asyncio.sleep(0)
        self._running -= 1
        return -item


async def test_results_have_the_order_of_the_items() -> None:
    calls = Calls()
    assert await at_once(calls, range(200)) == [-item for item in range(200)]
    assert calls.most == IN_FLIGHT_MAX
    assert await at_once(calls, []) == []


async def test_after_a_failure_no_more_calls_begin() -> None:
    calls = Calls(3)
    with pytest.raises(ZeroDivisionError):
        await at_once(calls, range(200))
    assert calls.begun == [*range(IN_FLIGHT_MAX)]


async def test_the_last_messages_of_many_filters_are_asked_for_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = Calls()

    async def ask(_api: object, _stream: object, *, last_by_subject: str) -> None:
        await calls(int(last_by_subject))

    monkeypatch.setattr(leader_reads, "get_message", ask)
    filters = [str(number) for number in range(100)]
    leader = LeaderReads(
        cast("Any", None), "S", filters, missing=MissingSequences(), created_ns=None
    )
    assert await leader.last_held() is None
    assert calls.most == IN_FLIGHT_MAX
