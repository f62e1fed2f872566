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
TRIP_S = 0.001


class Reader:
    """A reader with one pull, and the server that answers its looks.

    Attributes:
        answer: Fields of the consumer's info, or an error, from now on.
        still_until: The server says nothing before.
        looks: How often it was asked.
        stopped: When the pulls were withdrawn, and how many messages were missing then.
    """

    def __init__(self, **answer: object) -> None:
        self.answer: dict[str, object] | NatsStreamError = answer
        self.still_until = 0.0
        self.looks = 0
        self.stopped: tuple[float, int] | None = None
        self.pulls = OpenPulls()
        self.loop = asyncio.get_running_loop()
        self.limit_watch = LimitWatch(5.0)
        self.source = ConsumerSource(api=cast("Any", self), stream="S", consumer="c")
        self.pulls.add(b"1", ASKED, self.loop.time(), times=PullTimes(expires_s=30.0))

    def deliver(self, count: int) -> None:
        self.pulls.deliver(count, self.loop.time())

    async def withdraw(self) -> float:
        """Withdraw the pulls; return how long that took."""
        begun = self.loop.time()
        subscription = SimpleNamespace(pulls=self.pulls, stop=self._stop)
        sender = SimpleNamespace(
            source=self.source, limit_watch=self.limit_watch, flush=lambda: None
        )
        assert await withdraw(cast("Any", subscription), cast("Any", sender))
        return self.loop.time() - begun

    # As the connection.

    @property
    def client(self) -> Reader:
        return self

    async def flush(self, timeout: float) -> None:
        del timeout
        await asyncio.sleep(TRIP_S)

    def _stop(self) -> None:
        now = self.loop.time()
        self.stopped = now, self.pulls.left(now)

    # As the API.

    def subject(self, subject: str) -> str:
        return subject

    async def read(self, subject: str, body: Any, *, what: str, timeout: float) -> Fields:
        del subject, body
        self.looks += 1
        waits_s = max(self.still_until - self.loop.time(), TRIP_S)
        await asyncio.sleep(min(waits_s, timeout))
        if waits_s > timeout:
            raise RequestTimeoutError(f"{what}: no answer", retryable=True)
        if isinstance(self.answer, NatsStreamError):
            raise self.answer
        return Fields(
            {
                "stream_name": "S",
                "name": "c",
                "config": {"max_ack_pending": 100},
                "delivered": {"stream_seq": 0},
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
    reader = Reader()
    reader.deliver(ASKED)
    await reader.withdraw()
    assert reader.looks == 0
    assert reader.stopped == (0.0, 0)


@in_virtual_time
async def test_pulls_for_which_there_is_nothing_end_after_one_look() -> None:
    reader = Reader(num_pending=0)
    await reader.withdraw()
    assert reader.looks == 1
    assert reader.stopped is not None


@in_virtual_time
async def test_a_server_that_stood_still_fills_the_pulls_first() -> None:
    reader = Reader(num_pending=50)
    reader.still_until = 0.8
    reader.loop.call_at(0.9, reader.deliver, 4)
    reader.loop.call_at(0.91, reader.deliver, 6)
    await reader.withdraw()
    assert reader.stopped is not None
    assert reader.stopped[1] == 0


@in_virtual_time
async def test_what_comes_before_the_answer_was_on_its_way() -> None:
    """This process stood still; the rest may be in the socket."""
    reader = Reader(num_pending=0)
    reader.loop.call_at(TRIP_S / 2, reader.deliver, 4)
    reader.loop.call_at(DEFAULT_TUNING.busy_s, reader.deliver, 6)
    await reader.withdraw()
    assert reader.stopped is not None
    assert reader.stopped[1] == 0


@pytest.mark.parametrize(
    "answer", [{"num_ack_pending": 100}, {"paused": True, "pause_remaining": 10**9}]
)
def test_a_consumer_that_delivers_nothing_is_not_waited_for(answer: dict[str, object]) -> None:
    async def main() -> None:
        reader = Reader(num_pending=50, **answer)
        await reader.withdraw()
        assert reader.looks == 1

    virtual_time.run(main())


@in_virtual_time
async def test_others_that_get_all_messages_are_waited_for_a_moment() -> None:
    reader = Reader(num_pending=50)
    took_s = await reader.withdraw()
    assert DEFAULT_TUNING.busy_max_s <= took_s < 2 * DEFAULT_TUNING.busy_max_s
    assert reader.looks <= DEFAULT_TUNING.busy_max_s / DEFAULT_TUNING.busy_s + 1


@in_virtual_time
async def test_messages_that_keep_coming_are_waited_for_a_moment() -> None:
    reader = Reader(num_pending=50)
    for number in range(ASKED):
        reader.loop.call_at(0.05 * number, reader.deliver, 1)
    took_s = await reader.withdraw()
    assert took_s < 2 * DEFAULT_TUNING.busy_max_s


@in_virtual_time
async def test_a_server_that_does_not_answer_is_waited_for_once() -> None:
    reader = Reader(num_pending=50)
    reader.still_until = 100.0
    took_s = await reader.withdraw()
    assert reader.looks == 1
    assert took_s < 2 * DEFAULT_TUNING.flush_s


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
