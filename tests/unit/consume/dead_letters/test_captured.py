"""What a dead-letter stream has captured, and which entries that makes."""

from __future__ import annotations

import json

import pytest

from natsstream.consume.dead_letters.captured import (
    CLOCK_SLACK_NS,
    FOUND_GONE,
    OWN_TERM,
    AdvisoryLog,
    Captured,
    read_captured,
)
from natsstream.consume.dead_letters.subjects import advisory_subjects

MAX_DELIVERIES, TERMINATED = advisory_subjects("S", "c")
NOW_NS = 1_795_325_435_000_000_000


def advisory(**fields: object) -> bytes:
    """Return an advisory as servers send it, with other fields."""
    return json.dumps(
        {
            "type": "io.nats.jetstream.advisory.v1.max_deliver",
            "timestamp": "2026-11-22T05:30:35.016226819Z",
            "stream": "S",
            "consumer": "c",
            "stream_seq": 7,
            "deliveries": 3,
            **fields,
        }
    ).encode()


def captured(sequence: int = 7, **fields: object) -> Captured:
    """Return what is told of a message."""
    found = read_captured(TERMINATED, advisory(stream_seq=sequence, **fields), NOW_NS)
    assert found is not None
    return found


def test_advisory_says_which_message_is_dead() -> None:
    found = read_captured(MAX_DELIVERIES, advisory(), 0)

    assert found is not None
    assert found.triple == ("S", "c", 7)
    assert (found.reason, found.deliveries, found.is_own) == ("max_deliveries", 3, False)
    assert found.time_ns == 1_795_325_435_016_226_819


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b"{",
        advisory(stream="OTHER"),
        advisory(consumer="d"),
        advisory(stream=1),
        advisory(stream_seq=0),
        advisory(stream_seq=-7),
        advisory(stream_seq=2**64),
        advisory(stream_seq=True),
        advisory(stream_seq="7"),
    ],
)
def test_what_is_no_advisory_is_passed_over(payload: bytes) -> None:
    assert read_captured(MAX_DELIVERIES, payload, NOW_NS) is None
    assert read_captured("orders.new", advisory(), NOW_NS) is None


def test_odd_fields_of_an_advisory_are_empty() -> None:
    found = read_captured(TERMINATED, advisory(deliveries="3", reason=5, timestamp="today"), NOW_NS)

    assert found is not None
    assert (found.deliveries, found.error, found.time_ns) == (0, "", NOW_NS)


def test_one_message_is_one_entry_however_often_it_is_told_of() -> None:
    log = AdvisoryLog()
    for number in (1, 2, 5):
        log.add(number, captured())
    log.add(3, captured(8))

    assert [(each.sequence, numbers) for each, numbers in log.entries()] == [
        (7, [1, 2, 5]),
        (8, [3]),
    ]


def test_advisory_of_a_message_with_a_letter_belongs_to_the_letter() -> None:
    log = AdvisoryLog()
    log.add(1, captured(reason=f"{OWN_TERM}Q: x"))
    log.add(2, captured())

    assert [number for number, _ in log.claim(("S", "c", 7), NOW_NS)] == [1, 2]
    assert list(log.entries()) == []


def test_own_term_whose_letter_was_dropped_is_no_entry() -> None:
    log = AdvisoryLog()
    log.add(1, captured(reason=f"{OWN_TERM}Q: x"))

    assert list(log.entries()) == []


def test_message_that_the_server_found_gone_is_no_letter_where_only_acks_delete() -> None:
    log = AdvisoryLog()
    log.add(1, captured(reason=FOUND_GONE))
    log.add(2, captured(8, reason="Message deleted by stream limits"))
    log.add(3, captured(9, reason="no such customer"))
    assert [each.reason for each, _ in log.entries()] == ["deleted", "deleted", "terminated"]
    assert log.streams_of_gone == {"S"}

    log.leave_out_gone("S")
    assert [each.sequence for each, _ in log.entries()] == [8, 9]
    assert [number for _, number in log.of_no_letter()] == [1]


def test_message_that_was_given_up_and_then_found_gone_has_its_letter() -> None:
    log = AdvisoryLog()
    given_up = read_captured(MAX_DELIVERIES, advisory(), NOW_NS)
    assert given_up is not None
    log.add(1, given_up)
    log.add(2, captured(reason=FOUND_GONE))
    log.leave_out_gone("S")

    assert [(each.reason, numbers) for each, numbers in log.entries()] == [
        ("max_deliveries", [1, 2])
    ]
    assert list(log.of_no_letter()) == []


def test_advisory_from_before_the_message_is_about_another_one() -> None:
    log = AdvisoryLog()
    log.add(1, captured())
    later_ns = captured().time_ns + CLOCK_SLACK_NS + 1

    assert log.claim(("S", "c", 7), later_ns) == []
    assert [numbers for _, numbers in log.entries()] == [[1]]
