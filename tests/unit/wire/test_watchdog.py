"""When a silent server is asked, and when it is given up; the clock is the test's."""

from __future__ import annotations

import asyncio

import pytest

from natsstream._wire import watchdog as module
from natsstream._wire.watchdog import Watchdog
from tests.support.clocks import Clock


class Watched:
    """A watchdog with two seconds between two looks, and what it did."""

    def __init__(self, clock: Clock, missed_max: int) -> None:
        self.pings: list[float] = []
        self.given_up: list[float] = []
        self.unsent = 0
        self.dog = Watchdog(
            interval_s=2,
            missed_max=missed_max,
            ping=lambda: self.pings.append(clock.now),
            give_up=self.given_up.append,
            unsent=lambda: self.unsent,
        )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module.asyncio, "get_running_loop", lambda: made)
    return made


def test_server_that_takes_what_was_written_is_alive_until_it_takes_no_more(clock: Clock) -> None:
    watched = Watched(clock, 2)
    watched.unsent = 1_000
    watched.dog.start()

    for _ in range(20):
        clock.advance(2)
        watched.unsent -= 10
    assert watched.given_up == []
    clock.advance(8)

    assert watched.given_up == [4]


@pytest.mark.parametrize("missed_max", [1, 2, 5])
def test_server_is_given_up_once_when_that_many_pings_were_not_answered(
    clock: Clock, missed_max: int
) -> None:
    watched = Watched(clock, missed_max)
    watched.dog.start()

    clock.advance(1_000)

    assert watched.pings == [2.0 * (n + 1) for n in range(missed_max)]
    assert watched.given_up == [2.0 * missed_max]


def test_server_that_says_something_between_two_looks_is_kept(clock: Clock) -> None:
    watched = Watched(clock, 2)
    watched.dog.start()

    for _ in range(100):
        clock.advance(3.9)  # One look in silence at most.
        watched.dog.heard()

    assert watched.given_up == []


def test_silence_is_counted_anew_for_each_connection(clock: Clock) -> None:
    watched = Watched(clock, 2)
    watched.dog.start()
    clock.advance(5)  # One missed.

    watched.dog.start()
    clock.advance(5)
    assert watched.given_up == []
    clock.advance(1)

    assert watched.given_up == [4.0]


def test_stopped_watchdog_does_nothing(clock: Clock) -> None:
    watched = Watched(clock, 1)
    watched.dog.start()
    watched.dog.stop()
    watched.dog.stop()

    clock.advance(100)

    assert (watched.pings, watched.given_up) == ([], [])


def test_late_look_counts_once(clock: Clock) -> None:
    """After a call that blocked the loop, one timer is due, and not one for each interval."""
    watched = Watched(clock, 2)
    watched.dog.start()
    clock.advance(3)  # One look, one ping, and now nothing runs for a minute.
    clock.timers[0].when = 60.0

    clock.advance(57.5)

    assert watched.given_up == []


@pytest.mark.asyncio
async def test_watchdog_runs_on_the_loop_that_it_is_started_on() -> None:
    given_up = asyncio.Event()
    dog = Watchdog(
        interval_s=0.001,
        missed_max=2,
        ping=lambda: None,
        give_up=lambda _: given_up.set(),
        unsent=lambda: 0,
    )
    dog.start()

    async with asyncio.timeout(30):
        await given_up.wait()
