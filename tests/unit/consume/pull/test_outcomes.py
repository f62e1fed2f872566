"""Unit tests of what a pull's status means."""

from __future__ import annotations

import pytest

from natsstream._wire.status import parse_status
from natsstream.consume.pull.outcomes import PullOutcome, read_status


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("100 Idle Heartbeat", PullOutcome.HEARTBEAT),
        ("404 No Messages", PullOutcome.EMPTY),
        ("408 Request Timeout", PullOutcome.COMPLETED),
        ("408 Interest Expired", PullOutcome.COMPLETED),
        ("409 Batch Completed", PullOutcome.COMPLETED),
        ("409 Message Size Exceeds MaxBytes", PullOutcome.TOO_LARGE),
        ("409 Leadership Change", PullOutcome.LEADER_CHANGED),
        ("409 Server Shutdown", PullOutcome.LEADER_CHANGED),
        ("409 Consumer Deleted", PullOutcome.CONSUMER_DELETED),
        ("409 Consumer is push based", PullOutcome.REFUSED),
        ("409 Exceeded MaxRequestBatch of 3", PullOutcome.LIMIT),
        ("409 Exceeded MaxRequestExpires of 1s", PullOutcome.LIMIT),
        ("409 Exceeded MaxRequestMaxBytes of 10", PullOutcome.LIMIT),
        ("409 Exceeded MaxWaiting", PullOutcome.TOO_MANY_PULLS),
        ("409 Something Else", PullOutcome.REFUSED),
        ("423 Nats-Wrong-Pin-Id", PullOutcome.WRONG_PIN),
        ("400 Bad Request - Priority Group missing", PullOutcome.REFUSED),
        ("412 Required Api Level", PullOutcome.REFUSED),
        ("503", PullOutcome.NO_RESPONDERS),
        ("599 New", PullOutcome.REFUSED),
    ],
)
def test_status_has_a_meaning(line: str, end: PullOutcome) -> None:
    status = parse_status(f"NATS/1.0 {line}\r\n\r\n".encode())
    assert status is not None
    assert read_status(status).end is end


@pytest.mark.parametrize(("left", "is_oversized"), [(100, True), (99, False)])
def test_message_that_fits_into_no_pull_is_known(left: int, *, is_oversized: bool) -> None:
    block = f"NATS/1.0 409 Message Size Exceeds MaxBytes\r\nNats-Pending-Bytes: {left}\r\n\r\n"
    status = parse_status(block.encode())
    assert status is not None
    assert read_status(status, asked_bytes=100).is_oversized is is_oversized
