"""Status lines and the kinds of 409."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire.headers import HeaderName
from natsstream._wire.status import PullEnd, Status, StatusCode, parse_status

PENDING = b"Nats-Pending-Messages: 7\r\nNats-Pending-Bytes: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("line", "code", "description"),
    [
        (b"NATS/1.0 100 Idle Heartbeat", StatusCode.CONTROL, "Idle Heartbeat"),
        (b"NATS/1.0 204", StatusCode.END_OF_BATCH, ""),
        (b"NATS/1.0 204 EOB", StatusCode.END_OF_BATCH, "EOB"),
        (b"NATS/1.0 400 Bad Request - x", StatusCode.BAD_REQUEST, "Bad Request - x"),
        (b"NATS/1.0 404 No Messages", StatusCode.NOT_FOUND, "No Messages"),
        (b"NATS/1.0 408 Request Timeout", StatusCode.TIMEOUT, "Request Timeout"),
        (b"NATS/1.0 412 Required Api Level", StatusCode.API_LEVEL, "Required Api Level"),
        (b"NATS/1.0 413 Too Many Results", StatusCode.TOO_MANY_RESULTS, "Too Many Results"),
        (b"NATS/1.0 423 Nats-Wrong-Pin-Id", StatusCode.WRONG_PIN, "Nats-Wrong-Pin-Id"),
        (b"NATS/1.0 429 Too Many Requests", StatusCode.TOO_MANY_REQUESTS, "Too Many Requests"),
        (b"NATS/1.0 500 disk", StatusCode.SERVER_ERROR, "disk"),
        (b"NATS/1.0 503", StatusCode.NO_RESPONDERS, ""),
        (b"NATS/1.0   503 ", StatusCode.NO_RESPONDERS, ""),
        (b"NATS/1.0 299 From later", 299, "From later"),
    ],
)
def test_status_has_code_and_description(line: bytes, code: int, description: str) -> None:
    assert parse_status(line + b"\r\n\r\n") == Status(code, description)


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"NATS/1.0",
        b"NATS/1.0\r\n\r\n",
        b"NATS/1.0\r\nA: 404\r\n\r\n",
        b"NATS/1.0 \r\n\r\n",
        b"NATS/1.0404\r\n\r\n",
        b"NATS/1.0 40\r\n\r\n",
        b"NATS/1.0 4040 No\r\n\r\n",
        b"NATS/1.0 40x No\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\n\r\n",
    ],
)
def test_block_without_a_status_gives_none(block: bytes) -> None:
    assert parse_status(block) is None


def test_headers_of_a_status_stay_reachable() -> None:
    status = parse_status(b"NATS/1.0 408 Request Timeout\r\n" + PENDING)

    assert status is not None
    assert status.headers == {"Nats-Pending-Messages": "7", "Nats-Pending-Bytes": "0"}
    assert status.number(HeaderName.PENDING_MESSAGES) == 7
    assert status.number(HeaderName.PENDING_BYTES) == 0
    assert status.number(HeaderName.LAST_STREAM) is None


@pytest.mark.parametrize("text", ["", "-1", "1_0", "x", "9" * 21, "\u0664"])
def test_header_that_is_no_number_gives_none(text: str) -> None:
    status = parse_status(f"NATS/1.0 408\r\nNats-Pending-Bytes: {text}\r\n\r\n".encode())

    assert status is not None
    assert status.number(HeaderName.PENDING_BYTES) is None


def test_heartbeat_is_told_by_its_sequences_and_not_by_its_text() -> None:
    beat = parse_status(b"NATS/1.0 100 x\r\nNats-Last-Consumer: 3\r\nNats-Last-Stream: 9\r\n\r\n")
    flow = parse_status(b"NATS/1.0 100 Idle Heartbeat\r\n\r\n")

    assert beat is not None
    assert beat.is_heartbeat
    assert beat.number(HeaderName.LAST_STREAM) == 9
    assert flow is not None
    assert not flow.is_heartbeat


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("Batch Completed", PullEnd.BATCH_COMPLETED),
        ("Message Size Exceeds MaxBytes", PullEnd.MESSAGE_TOO_LARGE),
        ("Leadership Change", PullEnd.LEADERSHIP_CHANGE),
        ("Server Shutdown", PullEnd.SERVER_SHUTDOWN),
        ("Consumer Deleted", PullEnd.CONSUMER_DELETED),
        ("Consumer is push based", PullEnd.PUSH_CONSUMER),
        ("Exceeded MaxWaiting", PullEnd.TOO_MANY_PULLS),
        ("Exceeded MaxRequestBatch of 10", PullEnd.BATCH_LIMIT),
        ("Exceeded MaxRequestExpires of 1.5s", PullEnd.EXPIRES_LIMIT),
        ("Exceeded MaxRequestMaxBytes of 1024", PullEnd.BYTES_LIMIT),
        ("Something New", PullEnd.OTHER),
        ("", PullEnd.OTHER),
    ],
)
def test_409_is_told_apart_by_the_servers_text_in_any_case(text: str, end: PullEnd) -> None:
    assert Status(409, text).pull_end is end
    assert Status(409, text.upper()).pull_end is end


def test_the_text_is_never_read_where_the_code_suffices() -> None:
    assert Status(404, "Consumer Deleted").pull_end is None
    assert Status(423, "Leadership Change").pull_end is None


@given(
    code=st.integers(100, 999),
    description=st.text(st.characters(codec="utf-8", exclude_characters="\r\n")),
)
def test_any_status_line_is_read_back(code: int, description: str) -> None:
    block = f"NATS/1.0 {code} {description}\r\n".encode() + PENDING

    status = parse_status(block)

    assert status is not None
    assert (status.code, status.description) == (code, description.strip(" \t"))
    assert status.number(HeaderName.PENDING_MESSAGES) == 7


@given(st.binary(), st.binary())
def test_no_bytes_raise(raw: bytes, rest: bytes) -> None:
    parse_status(raw)
    parse_status(b"NATS/1.0" + rest)
