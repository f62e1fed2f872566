"""Unit tests of what is believed of the pulls that a server holds."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from natsstream.consume.pull.open_pulls import SILENT_HEARTBEATS, OpenPulls, PullTimes

SHORT = PullTimes(expires_s=1.0, grace_s=1.0)
WATCHED = PullTimes(expires_s=30.0, heartbeat_s=2.0, grace_s=1.0)


def test_a_pull_counts_until_its_end_is_heard() -> None:
    pulls = OpenPulls()
    pulls.add(b"1", 10, 0.0, times=WATCHED, max_bytes=100)
    pulls.add(b"2", 10, 0.0, times=WATCHED, max_bytes=100)
    pulls.deliver(4, 0.1)
    assert (pulls.left(0.1), pulls.bytes_believed) == (16, 200)
    pulls.end(b"1", 6)
    assert (pulls.left(0.2), pulls.bytes_believed) == (10, 100)
    pulls.end(b"1", 6)  # Said twice.
    assert pulls.left(0.2) == 10
    pulls.end(b"2", None)
    assert (pulls.left(0.3), pulls.next_look(0.3, inf)) == (0, -inf)


def test_a_pull_whose_end_is_lost_counts_until_it_is_over_on_the_server() -> None:
    pulls = OpenPulls()
    pulls.add(b"1", 10, 0.0, times=SHORT)
    pulls.deliver(9, 0.5)
    assert pulls.next_look(0.5, 0.0) == 2.0
    assert not pulls.falls_silent(1.9)
    assert pulls.left(1.9) == 1
    assert pulls.falls_silent(2.0)
    assert pulls.left(2.0) == 0
    assert not pulls.falls_silent(2.0)  # It is told once.
    assert pulls.has_doubts
    assert pulls.asked_bytes(b"1") == 0  # Its last word is listened to.
    pulls.end(b"1", 1)
    assert not pulls.has_doubts


def test_a_pull_whose_end_is_overdue_is_followed_by_another() -> None:
    pulls = OpenPulls()
    assert pulls.is_due(0.0)
    pulls.add(b"1", 10, 0.0, times=SHORT)
    assert not pulls.is_due(1.0)
    assert 1.0 < pulls.next_look(0.0, inf) < 1.2
    assert pulls.next_look(0.0, 1.0) == 2.0  # No other one would follow.
    assert pulls.is_due(1.2)
    assert pulls.left(1.2) == 0
    assert pulls.next_look(1.2, inf) == -inf


def test_messages_and_its_own_heartbeats_keep_a_pull_alive() -> None:
    pulls, silence_s = OpenPulls(), SILENT_HEARTBEATS * 2.0
    pulls.add(b"1", 10, 0.0, times=WATCHED)
    pulls.add(b"2", 10, 0.0, times=WATCHED)
    pulls.deliver(1, 1.0)
    pulls.hear(b"2", 4.0)
    assert pulls.left(1.0 + silence_s - 0.1) == 19
    assert pulls.left(1.0 + silence_s) == 10  # The first one is lost with what it had left.
    assert pulls.falls_silent(4.0 + silence_s)


def test_messages_of_pulls_that_were_given_up_make_no_debt() -> None:
    pulls = OpenPulls()
    pulls.deliver(5, 0.0)
    pulls.add(b"1", 3, 0.0, times=SHORT)
    pulls.deliver(5, 0.0)
    assert pulls.left(0.0) == 0
    pulls.add(b"2", 3, 0.0, times=SHORT)
    assert pulls.left(0.0) == 3


moments = st.floats(min_value=0.0, max_value=3.0)
replies = st.integers(0, 9).map(lambda number: b"%d" % number)
events = st.one_of(
    st.tuples(st.just("add"), moments, st.integers(1, 9), st.sampled_from([SHORT, WATCHED])),
    st.tuples(st.just("deliver"), moments, st.integers(1, 9), st.none()),
    st.tuples(st.just("hear"), moments, replies, st.none()),
    st.tuples(st.just("end"), moments, replies, st.none() | st.integers(0, 20)),
    st.tuples(st.just("look"), moments, st.none(), st.none()),
)


@given(st.lists(events, max_size=40))
def test_no_belief_outlives_what_was_heard(
    history: list[tuple[str, float, object, object]],
) -> None:
    """Whatever comes in whatever order, the count stays within what living pulls asked for."""
    pulls, now, added = OpenPulls(), 0.0, 0
    alive: dict[bytes, tuple[int, PullTimes, float, float]] = {}  # Asked, times, sent, heard.
    delivered = -inf
    for what, passed, first, second in history:
        now += passed
        match what, first, second:
            case "add", int(count), PullTimes() as times:
                reply = b"%d" % added
                added += 1
                pulls.add(reply, count, now, times=times)
                alive[reply] = (count, times, now, now)
            case "deliver", int(count), _:
                pulls.deliver(count, now)
                delivered = now
            case "hear", bytes(reply), _:
                pulls.hear(reply, now)
                if reply in alive:
                    alive[reply] = (*alive[reply][:3], now)
            case "end", bytes(reply), None | int() as unused:
                pulls.end(reply, unused)
                alive.pop(reply, None)
            case _:
                pass
        asked = sum(
            count
            for count, times, sent, heard in alive.values()
            if now < sent + times.expires_s + times.grace_s
            and (
                not times.heartbeat_s
                or now < max(heard, delivered) + SILENT_HEARTBEATS * times.heartbeat_s
                or max(heard, delivered) + SILENT_HEARTBEATS * times.heartbeat_s
                >= sent + times.expires_s
            )
        )
        assert 0 <= pulls.left(now) <= asked
        assert pulls.left(now) == 0 or now < pulls.next_look(now, inf) < inf
    assert pulls.left(now + 40) == 0
