"""Unit tests of the events that nobody takes in time, and of the counts beside them."""

from __future__ import annotations

from natsstream.read.read_events import (
    EVENTS_KEPT_MAX,
    EventQueue,
    HeartbeatsMissed,
    OrderedReport,
)


def test_full_queue_drops_its_oldest_event_and_counts_it() -> None:
    report = OrderedReport()
    queue = EventQueue(report)
    events = [HeartbeatsMissed(seconds=number) for number in range(EVENTS_KEPT_MAX + 3)]

    for event in events:
        queue.put(event)

    taken = [queue.take() for _ in range(EVENTS_KEPT_MAX)]
    assert taken == events[3:]
    assert queue.take() is None
    assert report.events_dropped == 3


def test_resumes_are_counted_by_reason() -> None:
    report = OrderedReport()

    for reason in ("heartbeats", "connection", "heartbeats"):
        report.add_reason(reason)

    assert report.resumes == 3
    assert report.reasons == {"heartbeats": 2, "connection": 1}
