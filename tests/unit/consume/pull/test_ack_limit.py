"""When a reader asks whether its consumer waits for acks, and what of the answer is news."""

from __future__ import annotations

from math import inf

from natsstream.api.consumer_info import ConsumerInfo
from natsstream.consume.pull.ack_limit import AGAIN_S, STILL_S, AckLimitWatch, is_held_up


def seen(out: int, pending: int, *, last: int = 10, limit: int = 5) -> ConsumerInfo:
    """Return the info of a consumer with so many messages unacked, and so many to deliver."""
    return ConsumerInfo.from_json(
        {
            "stream_name": "S",
            "name": "c",
            "created": "2026-01-01T00:00:00Z",
            "config": {"max_ack_pending": limit},
            "delivered": {"consumer_seq": last, "stream_seq": last},
            "ack_floor": {"consumer_seq": 0, "stream_seq": 0},
            "num_ack_pending": out,
            "num_pending": pending,
        }
    )


def test_limit_is_reached_when_as_many_are_unacked() -> None:
    assert [is_held_up(seen(out, 1)) for out in (4, 5, 6)] == [False, True, True]
    assert not is_held_up(seen(5, 1, limit=-1))
    assert not is_held_up(seen(0, 1, limit=0))


def test_only_waiting_counts_and_a_message_begins_it_anew() -> None:
    watch = AckLimitWatch()
    watch.wait(STILL_S - 1)
    assert watch.due_in(1_000.0) == 1
    watch.restart()
    assert watch.due_in(1_000.0) == STILL_S
    watch.wait(2 * STILL_S)
    assert watch.due_in(1_000.0) == 0


def test_silence_without_the_limit_costs_one_request() -> None:
    watch = AckLimitWatch()
    watch.begin(0.0)
    assert watch.learn(seen(4, 1)) == ""
    watch.wait(1_000)
    assert watch.due_in(1_000.0) == inf


def test_requests_are_a_minute_apart_however_often_messages_come() -> None:
    watch = AckLimitWatch()
    watch.begin(0.0)
    watch.learn(seen(0, 0))
    watch.restart()
    watch.wait(STILL_S)
    assert watch.due_in(STILL_S) == AGAIN_S - STILL_S


def test_request_without_an_answer_is_not_sent_again_at_once() -> None:
    watch = AckLimitWatch()
    watch.begin(0.0)
    assert watch.due_in(1.0) == inf


def test_limit_that_stays_is_told_once() -> None:
    watch = AckLimitWatch()
    told: list[bool] = []
    for at, info in [
        (0.0, seen(5, 0)),  # Nothing waits for it yet.
        (AGAIN_S, seen(5, 3)),
        (2 * AGAIN_S, seen(5, 4)),  # Redeliveries in between change nothing.
        (3 * AGAIN_S, seen(5, 4, last=12)),
    ]:
        watch.begin(at)
        told.append(bool(watch.learn(info)))
        assert watch.due_in(at + AGAIN_S) == 0
    assert told == [False, True, False, True]


def test_reader_without_the_right_never_asks() -> None:
    watch = AckLimitWatch()
    watch.may_ask = False
    watch.wait(2 * STILL_S)
    assert watch.due_in(0.0) == inf
