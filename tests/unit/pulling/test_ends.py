"""Unit tests of what a pull's status means."""

from __future__ import annotations

import pytest

from natsstream._wire.status import parse_status
from natsstream.streams.pulling.ends import End, read_status


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("100 Idle Heartbeat", End.HEARTBEAT),
        ("404 No Messages", End.EMPTY),
        ("408 Request Timeout", End.OVER),
        ("408 Interest Expired", End.OVER),
        ("409 Batch Completed", End.OVER),
        ("409 Message Size Exceeds MaxBytes", End.TOO_LARGE),
        ("409 Leadership Change", End.MOVED),
        ("409 Server Shutdown", End.MOVED),
        ("409 Consumer Deleted", End.DELETED),
        ("409 Consumer is push based", End.REFUSED),
        ("409 Exceeded MaxRequestBatch of 3", End.LIMIT),
        ("409 Exceeded MaxRequestExpires of 1s", End.LIMIT),
        ("409 Exceeded MaxRequestMaxBytes of 10", End.LIMIT),
        ("409 Exceeded MaxWaiting", End.CROWDED),
        ("409 Something Else", End.REFUSED),
        ("423 Nats-Wrong-Pin-Id", End.WRONG_PIN),
        ("400 Bad Request - Priority Group missing", End.REFUSED),
        ("412 Required Api Level", End.REFUSED),
        ("503", End.NOBODY),
        ("599 New", End.REFUSED),
    ],
)
def test_status_has_a_meaning(line: str, end: End) -> None:
    status = parse_status(f"NATS/1.0 {line}\r\n\r\n".encode())
    assert status is not None
    assert read_status(status).end is end


@pytest.mark.parametrize(("left", "is_oversized"), [(100, True), (99, False)])
def test_message_that_fits_into_no_pull_is_known(left: int, *, is_oversized: bool) -> None:
    block = f"NATS/1.0 409 Message Size Exceeds MaxBytes\r\nNats-Pending-Bytes: {left}\r\n\r\n"
    status = parse_status(block.encode())
    assert status is not None
    assert read_status(status, asked_bytes=100).is_oversized is is_oversized
