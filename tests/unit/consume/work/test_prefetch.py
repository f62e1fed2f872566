"""How far ahead a worker asks: what is handled in a tenth of a second, within bounds."""

from __future__ import annotations

import pytest

from natsstream.consume.work.prefetch import AHEAD_S, WINDOW_MAX, PrefetchWindow


def measured(pace: PrefetchWindow, rate: float, start_s: float, *, again: float = 0.0) -> float:
    """Let a worker handle one sample at a rate; returns the time."""
    done = 0
    while True:
        done += 1
        if pace.count(2 if done % 10 < again * 10 else 1):
            break
    end_s = start_s + done / rate
    pace.measure(end_s)
    return end_s


@pytest.mark.parametrize("base", [1, 16, 100, 10_000])
@pytest.mark.parametrize("rate", [0.01, 100.0, 3_000.0, 1e9])
def test_window_is_what_is_handled_in_a_tenth_of_a_second(base: int, rate: float) -> None:
    pace = PrefetchWindow(base, 0.0)

    measured(pace, rate, 0.0)

    assert pace.window >= base
    assert pace.window <= max(base, min(rate * AHEAD_S, WINDOW_MAX))
    assert pace.window >= min(rate * AHEAD_S, WINDOW_MAX) / 2


def test_window_shrinks_when_handlers_become_slow() -> None:
    pace = PrefetchWindow(16, 0.0)

    now_s = measured(pace, 50_000, 0.0)
    assert pace.window == WINDOW_MAX
    measured(pace, 10, now_s)

    assert pace.window == 16


def test_few_failures_leave_the_window_and_many_deliveries_again_close_it() -> None:
    pace = PrefetchWindow(16, 0.0)

    now_s = measured(pace, 50_000, 0.0, again=0.1)
    assert pace.window == WINDOW_MAX
    measured(pace, 50_000, now_s, again=0.9)

    assert pace.window == 16


def test_clock_that_stands_still_is_no_error() -> None:
    pace = PrefetchWindow(16, 5.0)

    assert pace.measure(5.0) == 16
    while not pace.count(1):
        pass
    assert pace.measure(5.0) == WINDOW_MAX
