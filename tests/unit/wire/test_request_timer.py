"""When a question is asked again and when it is given up; the clock is the test's."""

from __future__ import annotations

from typing import Any, cast

import pytest

from natsstream._wire.request_timer import RequestTimer
from tests.support.clocks import Clock


class Question:
    """A future that waits for one answer, on a loop of which nothing but the clock is there."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.answer: object = None
        self.asked: list[float] = []

    def get_loop(self) -> Clock:
        return self.clock

    def done(self) -> bool:
        return self.answer is not None

    def set_exception(self, error: Exception) -> None:
        assert self.answer is None
        self.answer = error

    def ask(self) -> None:
        self.asked.append(self.clock.now)


def waiting(question: Question, deadline: float, *, repeats: bool) -> RequestTimer:
    return RequestTimer(cast("Any", question), deadline, question.ask if repeats else None)


def test_question_is_asked_again_less_and_less_often_until_its_deadline() -> None:
    question = Question()
    waiting(question, 17, repeats=True)

    question.clock.advance(16.9)
    assert question.asked == [1, 3, 7, 11, 15]
    assert question.answer is None
    question.clock.advance(60)

    assert isinstance(question.answer, TimeoutError)
    assert len(question.asked) == 5
    assert question.clock.timers == []


def test_what_must_be_asked_once_is_asked_once() -> None:
    question = Question()
    waiting(question, 17, repeats=False)

    question.clock.advance(16.9)
    assert question.answer is None
    question.clock.advance(0.1)

    assert isinstance(question.answer, TimeoutError)
    assert question.asked == []


@pytest.mark.parametrize("repeats", [True, False])
def test_nothing_happens_after_an_answer_or_the_end(repeats: bool) -> None:  # noqa: FBT001 - a parameter.
    answered, left = Question(), Question()
    waiting(answered, 5, repeats=repeats)
    answered.answer = b"yes"
    waiting(left, 5, repeats=repeats).end()

    answered.clock.advance(60)
    left.clock.advance(60)

    assert (answered.answer, answered.asked) == (b"yes", [])
    assert (left.answer, left.asked) == (None, [])


def test_deadline_that_is_over_is_over_at_once() -> None:
    question = Question()
    question.clock.advance(10)
    waiting(question, 3, repeats=True)

    question.clock.advance(0)

    assert isinstance(question.answer, TimeoutError)
    assert question.asked == []
