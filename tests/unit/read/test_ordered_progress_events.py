"""Unit tests of the events that nobody takes in time, and of the counts beside them."""

from __future__ import annotations

import pytest

from natsstream.read.event_stream import EVENTS_KEPT_MAX, EventStream
from natsstream.read.read_events import HeartbeatsMissed, OrderedReport


@pytest.mark.asyncio
async def test_full_queue_drops_its_oldest_event_and_counts_it() -> None:
    stream = EventStream("a reader")
    events = [HeartbeatsMissed(seconds=number) for number in range(EVENTS_KEPT_MAX + 3)]

    for event in events:
        stream.put(event)
    stream.close()

    assert [event async for event in stream.events()] == events[3:]
    assert stream.dropped == 3


def test_resumes_are_counted_by_reason() -> None:
    report = OrderedReport()

    for reason in ("heartbeats", "connection", "heartbeats"):
        report.add_reason(reason)

    assert report.resumes == 3
    assert report.reasons == {"heartbeats": 2, "connection": 1}
