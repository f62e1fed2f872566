"""Unit tests of the rule for breaks: which cause counts, how long to wait, when to give up."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from natsstream.read.recovery import RETRY_WAIT_MAX_S, RETRY_WAIT_S, Recovery

LIMIT_S = 10.0


def test_first_cause_counts_where_none_is_worse() -> None:
    recovery = Recovery[str](LIMIT_S)
    recovery.note("heartbeats")
    recovery.note("connection")

    assert recovery.cause == "heartbeats"


def test_worst_cause_counts_whatever_came_first() -> None:
    recovery = Recovery[str](LIMIT_S, severity=("leader", "heartbeats", "connection"))
    recovery.note("heartbeats")
    recovery.note("leader")
    milder = recovery.cause
    recovery.note("connection")

    assert milder == "heartbeats"
    assert recovery.cause == "connection"


def test_progress_does_not_end_a_break() -> None:
    """What was sent before the break may still arrive behind it."""
    recovery = Recovery[str](LIMIT_S)
    recovery.note("connection")
    recovery.reset()

    assert recovery.cause == "connection"


def test_reader_that_gave_up_gets_all_of_the_time_again() -> None:
    recovery = Recovery[str](LIMIT_S)
    first = recovery.next_wait(0)
    recovery.next_wait(1)

    assert first == 0
    assert recovery.next_wait(LIMIT_S) is None
    assert recovery.next_wait(LIMIT_S) == 0
    assert recovery.left_s(LIMIT_S) == LIMIT_S


def test_reader_without_a_limit_never_gives_up() -> None:
    recovery = Recovery[str](math.inf)
    waits = [recovery.next_wait(10.0**power) for power in range(20)]

    assert waits[0] == 0
    assert waits[-1] == RETRY_WAIT_MAX_S


def test_new_limit_holds_for_a_break_that_goes_on() -> None:
    recovery = Recovery[str](LIMIT_S)
    recovery.next_wait(0)
    recovery.limit(2 * LIMIT_S)

    assert recovery.left_s(LIMIT_S) == 2 * LIMIT_S


def test_wait_ends_with_the_time() -> None:
    recovery = Recovery[str](LIMIT_S)
    recovery.next_wait(0)

    assert recovery.next_wait(LIMIT_S - 0.01) == recovery.left_s(LIMIT_S - 0.01)


class Model:
    """The rule in other words: the moments of the attempts since the last progress."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.attempts: list[float] = []

    def next_wait(self, now: float) -> float | None:
        """Return what the rule should say."""
        self.began = now if self.began is None else self.began
        if now >= self.began + LIMIT_S:
            self.forget()
            return None
        self.attempts.append(now)
        waits = [0.0]
        while len(waits) < len(self.attempts):
            waits.append(min(max(2 * waits[-1], RETRY_WAIT_S), RETRY_WAIT_MAX_S))
        return min(waits[-1], self.began + LIMIT_S - now)

    def forget(self) -> None:
        """Begin anew."""
        self.began, self.attempts = None, []


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4_000).map(lambda ms: ms / 1_000),
            st.sampled_from(["look", "progress", "wait", "wait", "wait"]),
        )
    )
)
def test_waits_are_those_of_the_model(steps: list[tuple[float, str]]) -> None:
    recovery, model, now = Recovery[str](LIMIT_S), Model(), 0.0
    for passed_s, action in steps:
        now += passed_s
        if action == "wait":
            assert recovery.next_wait(now) == model.next_wait(now)
        elif action == "progress":
            recovery.reset()
            model.forget()
        else:
            left_s = recovery.left_s(now)
            model.began = now if model.began is None else model.began
            assert left_s == max(model.began + LIMIT_S - now, 0)
