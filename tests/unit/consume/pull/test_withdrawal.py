"""How a reader ends its open pulls: those that are being filled are waited for. Time is virtual."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream.consume.delivery.limit_watch import LimitWatch
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.consume.delivery.tuning import DEFAULT_TUNING
from natsstream.consume.pull.open_pulls import OpenPulls, PullTimes
from natsstream.consume.pull.withdrawal import withdraw
from natsstream.errors import NatsStreamError, PermissionDeniedError, RequestTimeoutError
from natsstream.fields import Fields
from tests.support import virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

ASKED = 10
BUSY_S, BUSY_MAX_S = DEFAULT_TUNING.busy_s, DEFAULT_TUNING.busy_max_s


class Reader:
    """A reader with one pull, and the server that answers its looks.

    Attributes:
        answer: Fields of the consumer's info, or an error, from now on.
        trip_s: How long an answer takes.
        still_until: The server says nothing before.
        delivered: Messages that the consumer has sent, to others too.
        others: Messages that others get between two looks.
        looks: How often it was asked.
        missing: How many messages were missing when the pulls were withdrawn.
    """

    def __init__(self, *, acks: str = "explicit", policy: str = "none", **answer: object) -> None:
        self.answer: dict[str, object] | NatsStreamError = answer
        self.trip_s = 0.001
        self.still_until = 0.0
        self.delivered = self.others = 0
        self.looks = 0
        self.missing = -1
        self.pulls = OpenPulls()
        self.loop = asyncio.get_running_loop()
        self.limit_watch = LimitWatch(5.0)
        self.source = ConsumerSource(
            api=cast("Any", self),
            stream="S",
            consumer="c",
            ack_policy=acks,
            priority_policy=policy,
        )
        self.pulls.add(b"1", ASKED, self.loop.time(), times=PullTimes(expires_s=30.0))

    def deliver_at(self, time: float, count: int) -> None:
        """Let messages arrive at a time."""

        def deliver() -> None:
            self.delivered += count
            self.pulls.deliver(count, self.loop.time())

        self.loop.call_at(time, deliver)

    async def withdraw(self) -> float:
        """Withdraw the pulls; return how long that took."""
        begun = self.loop.time()
        subscription = SimpleNamespace(pulls=self.pulls, stop=self._stop)
        sender = SimpleNamespace(
            source=self.source, limit_watch=self.limit_watch, flush=lambda: None
        )
        assert await withdraw(cast("Any", subscription), cast("Any", sender))
        return self.loop.time() - begun

    def _stop(self) -> None:
        self.missing = self.pulls.left(self.loop.time())

    # As the connection.

    @property
    def client(self) -> Reader:
        return self

    async def flush(self, timeout: float) -> None:
        del timeout
        await asyncio.sleep(self.trip_s)

    # As the API.

    def subject(self, subject: str) -> str:
        return subject

    async def read(self, subject: str, body: Any, *, what: str, timeout: float) -> Fields:
        del subject, body
        self.looks += 1
        waits_s = max(self.still_until - self.loop.time(), self.trip_s)
        await asyncio.sleep(min(waits_s, timeout))
        if waits_s > timeout:
            raise RequestTimeoutError(f"{what}: no answer", retryable=True)
        if isinstance(self.answer, NatsStreamError):
            raise self.answer
        self.delivered += self.others
        return Fields(
            {
                "stream_name": "S",
                "name": "c",
                "config": {"max_ack_pending": 100},
                "delivered": {"consumer_seq": self.delivered, "stream_seq": 0},
                "ack_floor": {"stream_seq": 0},
                "created": "1970-01-01T00:00:00.000000001Z",
                **self.answer,
            },
            what,
        )


def in_virtual_time(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        virtual_time.run(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@in_virtual_time
async def test_without_open_pulls_nobody_is_asked() -> None:
    reader = Reader(num_pending=50)
    reader.pulls.deliver(ASKED, 0.0)
    await reader.withdraw()
    assert (reader.looks, reader.missing) == (0, 0)


@in_virtual_time
async def test_pulls_of_a_consumer_that_has_nothing_end_after_one_look() -> None:
    reader = Reader(num_pending=0)
    await reader.withdraw()
    assert (reader.looks, reader.missing) == (1, ASKED)


@pytest.mark.parametrize(
    ("policy", "answer"),
    [
        ("none", {"num_pending": 50, "num_ack_pending": 100}),
        ("none", {"num_pending": 50, "paused": True, "pause_remaining": 10**9}),
        ("none", {"num_ack_pending": 10}),
        ("overflow", {"num_pending": 50}),
    ],
)
def test_pulls_for_which_the_consumer_sends_nothing_end_after_two(
    policy: str, answer: dict[str, Any]
) -> None:
    """It is at `max_ack_pending`, or paused, or others have all, or are preferred."""

    async def main() -> None:
        reader = Reader(policy=policy, **answer)
        assert await reader.withdraw() < 2 * BUSY_S
        assert reader.looks == 2

    virtual_time.run(main())


@in_virtual_time
async def test_pulls_that_the_server_does_not_know_are_waited_for_a_moment() -> None:
    reader = Reader(num_pending=50)
    assert BUSY_MAX_S <= await reader.withdraw() <= BUSY_MAX_S + 2 * BUSY_S
    assert reader.looks <= 5


@pytest.mark.parametrize(
    "reader",
    [
        lambda: Reader(num_pending=50),
        lambda: Reader(num_ack_pending=10),  # They come again.
        lambda: Reader(acks="none"),
    ],
)
def test_a_server_that_stood_still_fills_the_pulls_first(reader: Callable[[], Reader]) -> None:
    async def main() -> None:
        one = reader()
        one.still_until = 0.8
        one.deliver_at(0.805, 4)
        one.deliver_at(0.81, 6)
        await one.withdraw()
        assert one.missing == 0

    virtual_time.run(main())


@in_virtual_time
async def test_what_comes_before_the_answer_was_on_its_way() -> None:
    """This process stood still; the rest may be in the socket."""
    reader = Reader(num_pending=0)
    reader.deliver_at(reader.trip_s / 2, 4)
    reader.deliver_at(BUSY_S, 6)
    await reader.withdraw()
    assert reader.missing == 0


@in_virtual_time
async def test_what_comes_after_an_answer_was_in_flight_when_it_was_given() -> None:
    reader = Reader(num_ack_pending=10)
    reader.delivered = ASKED
    for time, count in ((0.3 * BUSY_S, 4), (1.55 * BUSY_S, 6)):
        reader.loop.call_at(time, reader.pulls.deliver, count, time)
    await reader.withdraw()
    assert reader.missing == 0


@in_virtual_time
async def test_a_connection_that_is_lost_takes_the_look_with_it() -> None:
    reader = Reader(num_pending=50)
    reader.still_until = 100.0
    reader.loop.call_at(0.1, reader.pulls.forget)
    tasks = asyncio.all_tasks()
    assert await reader.withdraw() <= 0.1 + BUSY_S
    await asyncio.sleep(0)
    assert asyncio.all_tasks() <= tasks


@in_virtual_time
async def test_what_comes_while_an_answer_is_late_was_on_its_way() -> None:
    reader = Reader(num_pending=50)
    reader.still_until = 1.1
    reader.deliver_at(0.99, 4)
    reader.deliver_at(1.1, 6)
    await reader.withdraw()
    assert reader.missing == 0


@pytest.mark.parametrize("trip_s", [0.001, 0.3, 0.9])
def test_a_consumer_that_goes_on_to_deliver_is_waited_for_a_moment(trip_s: float) -> None:
    async def main() -> None:
        reader = Reader(num_pending=50)
        reader.trip_s, reader.others = trip_s, 1
        took_s = await reader.withdraw()
        assert BUSY_MAX_S <= took_s <= BUSY_MAX_S + DEFAULT_TUNING.flush_s + trip_s + BUSY_S
        assert reader.looks <= 5

    virtual_time.run(main())


@in_virtual_time
async def test_messages_that_keep_coming_are_waited_for_a_moment() -> None:
    reader = Reader(num_pending=50)
    for number in range(ASKED):
        reader.deliver_at(0.05 * number, 1)
    assert await reader.withdraw() < 2 * BUSY_MAX_S


@in_virtual_time
async def test_a_server_that_does_not_answer_is_waited_for_once() -> None:
    reader = Reader(num_pending=50)
    reader.still_until = 100.0
    assert await reader.withdraw() < 2 * DEFAULT_TUNING.flush_s
    assert reader.looks == 1


@in_virtual_time
async def test_who_may_not_look_asks_once() -> None:
    reader = Reader()
    reader.answer = PermissionDeniedError(
        "consumer info: not allowed", operation="publish", subject="$JS.API.CONSUMER.INFO.S.c"
    )
    await reader.withdraw()
    await reader.withdraw()
    assert reader.looks == 1
    assert not reader.limit_watch.may_look
