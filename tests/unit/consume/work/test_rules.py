"""What becomes of a message when its handler has ended, and which options fit a consumer."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.consume.delivery.ack_kinds import Reject, Retry
from natsstream.consume.delivery.backoff import Backoff
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.consume.work.handlers import check_handler
from natsstream.consume.work.options import WorkOptions, make_policy, renew_policy
from natsstream.consume.work.rules import Policy, abandoned, decide, is_abandoned, last_delivery
from natsstream.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from natsstream.api.requests import Api

BACKOFF = Backoff((1.0, 5.0, 30.0))


def policy(
    *, max_attempts: int | None = 3, max_deliver: int | None = None, has_letters: bool = True
) -> Policy:
    """Return what a worker does with failures."""
    return Policy(
        backoff=BACKOFF,
        max_attempts=max_attempts,
        max_deliver=max_deliver,
        has_letters=has_letters,
    )


def source(**fields: Any) -> ConsumerSource:
    """Return a consumer; its connection is not used by rules."""
    return ConsumerSource(api=cast("Api", None), stream="S", consumer="c", **fields)


@given(delivered=st.integers(1, 100), max_attempts=st.integers(1, 10))
def test_failing_message_is_dead_at_its_last_attempt_and_not_before(
    delivered: int, max_attempts: int
) -> None:
    rules = policy(max_attempts=max_attempts)

    decision = decide(ValueError("x"), delivered=delivered, policy=rules)

    assert decision.action == ("dead" if delivered >= max_attempts else "nak")
    assert is_abandoned(delivered, rules) == (delivered > max_attempts)
    assert last_delivery(rules) == max_attempts
    assert last_delivery(policy(max_attempts=None, max_deliver=max_attempts)) == max_attempts
    assert last_delivery(policy(max_attempts=3, max_deliver=max_attempts)) == min(3, max_attempts)


@given(delivered=st.integers(1, 10**9))
def test_without_limit_a_failing_message_always_comes_again(delivered: int) -> None:
    decision = decide(ValueError(), delivered=delivered, policy=policy(max_attempts=None))

    assert (decision.action, decision.delay_s) == ("nak", (1.0, 5.0, 30.0)[min(delivered, 3) - 1])
    assert not is_abandoned(delivered, policy(max_attempts=None))
    assert last_delivery(policy(max_attempts=None)) is None


@pytest.mark.parametrize(
    ("error", "delivered", "action", "delay_s", "reason"),
    [
        (None, 99, "ack", 0, "unknown"),
        (Reject("no such thing"), 1, "dead", 0, "rejected"),
        (Retry(delay=7), 1, "nak", 7, "unknown"),
        (Retry(delay=0), 2, "nak", 0, "unknown"),
        (Retry(), 2, "nak", 5, "unknown"),
        (Retry(delay=7), 3, "dead", 0, "attempts"),
        (asyncio.CancelledError(), 1, "nak", 1, "unknown"),
    ],
)
def test_verdict_follows_from_the_outcome(
    error: BaseException | None, delivered: int, action: str, delay_s: float, reason: str
) -> None:
    decision = decide(error, delivered=delivered, policy=policy())

    assert (decision.action, decision.delay_s, decision.reason) == (action, delay_s, reason)


@pytest.mark.parametrize("error", [ValueError(), Retry(delay=7)])
def test_server_gives_up_what_fails_at_the_last_delivery(error: BaseException) -> None:
    rules = policy(max_attempts=None, max_deliver=3, has_letters=False)

    assert decide(error, delivered=2, policy=rules).action == "nak"
    assert decide(error, delivered=3, policy=rules).action == "give_up"
    # Delivered before the limit was lowered it does not come again; where it was raised it does.
    assert decide(error, delivered=3, policy=rules).delay_s == 0
    beyond = decide(error, delivered=4, policy=rules)
    delay_s = 7 if isinstance(error, Retry) else rules.backoff.delay_s(4)
    assert (beyond.action, beyond.delay_s) == ("give_up", delay_s)
    assert decide(Reject("x"), delivered=3, policy=rules).action == "term"
    assert decide(None, delivered=3, policy=rules).action == "ack"


def test_without_letters_the_dead_are_terminated() -> None:
    rules = policy(has_letters=False)

    assert decide(Reject("x\ny"), delivered=1, policy=rules).action == "term"
    assert decide(Reject("x\ny"), delivered=1, policy=rules).text == "x y"
    assert abandoned(4, rules).action == "term"
    assert abandoned(4, policy()).reason == "abandoned"


@pytest.mark.parametrize(
    ("max_attempts", "max_deliver", "dead_letter", "found"),
    [
        (None, -1, None, None),
        (None, 4, None, None),
        (None, -1, "Q", 5),
        (None, 3, "Q", 3),
        (2, 3, "Q", 2),
        (2, -1, None, 2),
    ],
)
def test_attempts_are_what_is_said_or_what_the_consumer_allows(
    max_attempts: int | None, max_deliver: int, dead_letter: str | None, found: int | None
) -> None:
    options = WorkOptions(max_attempts=max_attempts, dead_letter=dead_letter)

    assert make_policy(options, source(max_deliver=max_deliver)).max_attempts == found


def test_lowered_max_deliver_ends_with_a_letter_and_abandons_nothing() -> None:
    options = WorkOptions(max_attempts=5, dead_letter="Q")
    before = make_policy(options, source(max_deliver=9))

    now = renew_policy(before, options, source(max_deliver=3, backoff_ns=(7 * 10**9,)))

    assert (now.max_attempts, now.max_deliver, now.backoff.delay_s(1)) == (5, 3, 7)
    assert [decide(ValueError(), delivered=n, policy=now).action for n in (2, 3)] == ["nak", "dead"]
    assert not is_abandoned(4, now)
    assert last_delivery(now) == 3


@pytest.mark.parametrize(("before", "now", "found"), [(2, 6, 6), (6, 2, 6), (2, -1, 5), (-1, 9, 9)])
def test_attempts_that_follow_max_deliver_are_raised_with_it(
    before: int, now: int, found: int
) -> None:
    for attempts, wanted in ((None, found), (1, 1)):
        options = WorkOptions(max_attempts=attempts, dead_letter="Q")
        policy = make_policy(options, source(max_deliver=before))
        assert renew_policy(policy, options, source(max_deliver=now)).max_attempts == wanted


@pytest.mark.parametrize(
    "fields",
    [{"ack_policy": "none"}, {"ack_policy": "all"}, {"deliver_subject": "x"}, {"max_deliver": 2}],
)
def test_consumer_that_does_not_fit_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        make_policy(WorkOptions(max_attempts=3), source(**fields))

    assert caught.value.hint


@pytest.mark.parametrize(
    "fields",
    [
        {"concurrency": 0},
        {"concurrency": "16"},
        {"concurrency": 10**9},
        {"dead_letter": "a.b"},
        {"dead_letter": b"Q"},
        {"backoff": 5},
        {"backoff": [-1]},
        {"backoff": ["soon"]},
        {"max_attempts": 0},
        {"max_attempts": True},
        {"on_error": "log"},
        {"keepalive": 1},
        {"prefetch": 0},
        {"confirm": "yes"},
        {"stop_timeout": -1},
        {"stop_timeout": float("inf")},
    ],
)
def test_options_of_the_wrong_kind_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        WorkOptions(**fields)


async def takes_one(message: object) -> None:
    """Handle a message."""
    del message


async def takes_two(first: object, message: object) -> None:
    """Handle a message with something else."""
    del first, message


class Handles:
    """A callable object."""

    async def __call__(self, message: object) -> None:
        """Handle a message."""

    async def method(self, message: object) -> None:
        """Handle a message."""


@functools.wraps(takes_one)
def wrapped(message: object) -> object:
    """Pass a message on, as decorators do."""
    return takes_one(message)


@pytest.mark.parametrize(
    "handler",
    [takes_one, functools.partial(takes_two, 1), Handles(), Handles().method, wrapped],
)
def test_coroutine_functions_of_any_shape_are_handlers(handler: object) -> None:
    assert check_handler(handler) is handler


def plain(message: object) -> None:
    """Handle nothing: no coroutine."""


def generator(message: object) -> Iterator[None]:
    """Handle nothing: a generator."""
    del message
    yield


async def async_generator(message: object) -> AsyncIterator[None]:
    """Handle nothing: an async generator."""
    del message
    yield


async def takes_none() -> None:
    """Handle nothing: takes no message."""


@pytest.mark.parametrize(
    "handler", [None, "f", 5, plain, generator, async_generator, takes_none, takes_two, Handles]
)
def test_what_can_not_handle_is_refused_before_the_first_message(handler: object) -> None:
    with pytest.raises(ConfigError) as caught:
        check_handler(handler)

    assert caught.value.hint
