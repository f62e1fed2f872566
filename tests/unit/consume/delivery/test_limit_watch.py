"""Unit tests of when a reader looks whether its consumer waits for acks, and of what it tells."""

from __future__ import annotations

from math import inf

from natsstream.api.consumer_info import ConsumerInfo
from natsstream.consume.delivery.limit_watch import EVERY_S, LimitWatch, is_held_up

QUIET_S = 5.0


def seen(out: int, pending: int, *, seq: int = 10, limit: int = 5) -> ConsumerInfo:
    """Return the info of a consumer that has so many messages out, and so many to deliver."""
    return ConsumerInfo.from_json(
        {
            "stream_name": "S",
            "name": "work",
            "created": "2026-01-01T00:00:00Z",
            "config": {"max_ack_pending": limit},
            "delivered": {"consumer_seq": seq, "stream_seq": seq},
            "ack_floor": {"consumer_seq": 0, "stream_seq": 0},
            "num_ack_pending": out,
            "num_pending": pending,
        }
    )


def test_limit_is_reached_when_as_many_are_out() -> None:
    assert [is_held_up(seen(out, 1)) for out in (4, 5, 6)] == [False, True, True]
    assert not is_held_up(seen(5, 1, limit=-1))
    assert not is_held_up(seen(0, 1, limit=0))


def test_first_look_is_after_a_silence() -> None:
    assert LimitWatch(QUIET_S).look_at(100.0) == 100.0 + QUIET_S


def test_looks_are_a_minute_apart() -> None:
    watch = LimitWatch(QUIET_S)
    watch.begin(100.0)
    assert watch.look_at(101.0) == 100.0 + EVERY_S
    assert watch.look_at(200.0) == 200.0 + QUIET_S


def test_nobody_looks_where_it_is_not_allowed() -> None:
    watch = LimitWatch(QUIET_S)
    watch.may_look = False
    assert watch.look_at(0.0) == inf


def test_nothing_is_told_below_the_limit_or_when_nothing_waits() -> None:
    watch = LimitWatch(QUIET_S)
    assert watch.find(seen(4, 3), 0.0) is None
    assert watch.find(seen(5, 0), 0.0) is None


def test_limit_is_told_again_when_the_consumer_has_moved() -> None:
    watch = LimitWatch(QUIET_S)
    infos = [seen(5, 3), seen(5, 4), seen(6, 4, seq=12), seen(5, 4, seq=12), seen(5, 4, seq=3)]
    found = [watch.find(info, EVERY_S * at) is not None for at, info in enumerate(infos)]
    assert found == [True, False, True, False, True]


def test_limit_is_told_once_a_minute_however_often_a_call_looks() -> None:
    watch = LimitWatch(QUIET_S)
    found = [watch.find(seen(5, 3, seq=10 + at), float(at)) for at in range(121)]
    assert [at for at, event in enumerate(found) if event is not None] == [0, 60, 120]
    assert watch.look_at(0.0) == 120 + EVERY_S


def test_event_has_the_counts() -> None:
    event = LimitWatch(QUIET_S).find(seen(1, 3, limit=1), 0.0)
    assert event is not None
    assert event.limit == "max_ack_pending"
    assert event.describe() == (
        "1 message without an ack, as many as max_ack_pending allows, "
        "and 3 more that wait until some are settled"
    )
