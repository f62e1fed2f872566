"""What a stream's answer means: the fast way of reading gives what the slow one gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from natsstream.errors import (
    NatsStreamError,
    NoRespondersError,
    ProtocolError,
    StreamFullError,
    UnavailableError,
)
from natsstream.publish.pub_ack import PubAck, read_ack, read_json_ack

if TYPE_CHECKING:
    from natsstream._wire.parser import Frame

NAMES = st.sampled_from(["S", "ORDERS", 'a"b', "é", "a:1}", ""])
NUMBERS = st.one_of(
    st.integers(0, 3), st.integers(0, 2**64), st.sampled_from([10**19, 10**20, 10**21, -1])
)
TEXTS = st.sampled_from(
    [
        b"",
        b"{}",
        b"null",
        b"[1]",
        b'{"stream":"S","seq":01}',
        b'{"stream":"S","seq":1.0}',
        b'{"stream":"S","seq":1 }',
        b'{"stream":"S","seq":}',
        b'{"stream":"S","seq":1}}',
        b'{"stream":"S","seq":true}',
        b'{"stream":"S","seq":"1"}',
        b'{"stream":"S","seq":1e3}',
        b'{"stream":"S","seq":\xb2}',
        b'{"stream":1,"seq":1}',
        b'{"stream":"S","seq":1,"val":"x"}',
        b'{"stream":"S","seq":1,"domain":7}',
        b'{"stream":"S","seq":1,"seq":2}',
        b'{"stream":"S","x":{"seq":1}}',
        b'{"stream":"S","domain":"S","seq":5}',
        b'{"error":{"code":503,"err_code":10077,"description":"full"},"stream":"S","seq":0}',
        b'{"stream":"S","seq":' + b"9" * 5_000 + b"}",
        b"[" * 100_000,
    ]
)


def server_answer(
    stream: str, sequence: int, domain: str | None, value: int | None, *, duplicate: bool
) -> bytes:
    answer: dict[str, object] = {"stream": stream}
    if domain is not None:
        answer["domain"] = domain
    answer["seq"] = sequence
    if duplicate:
        answer["duplicate"] = True
    if value is not None:
        answer["val"] = str(value)
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()


ANSWERS = st.one_of(
    st.builds(
        server_answer,
        NAMES,
        NUMBERS,
        st.sampled_from([None, "hub"]),
        st.sampled_from([None, None, 7, -(10**30)]),
        duplicate=st.booleans(),
    ),
    TEXTS,
    st.binary(max_size=40),
)


def frame(payload: bytes, header: bytes = b"") -> Frame:
    return (b"_INBOX.x.1", b"", header, payload)


def outcome(read: object, payload: bytes) -> object:
    try:
        return read(frame(payload), "a")  # pyright: ignore[reportCallIssue, reportUnknownVariableType, reportGeneralTypeIssues] - one of two functions.
    except NatsStreamError as error:
        return type(error), str(error)


@given(st.lists(ANSWERS, max_size=12))
@example([b'{"stream":"S","seq":18446744073709551616}'])
@example([b'{"stream":"S","seq":1}', b'{"stream":"S","seq":02}'])
@example([b'{"stream":"S","seq":1}', b'{"stream":"S","seq":\xb2}'])
def test_fast_reading_gives_what_json_gives(payloads: list[bytes]) -> None:
    assert [outcome(read_ack, payload) for payload in payloads] == [
        outcome(read_json_ack, payload) for payload in payloads
    ]


def test_ack_has_all_that_the_server_says() -> None:
    payload = b'{"stream":"C","domain":"hub","seq":7,"val":"123456789012345678901234567890"}'

    assert read_ack(frame(payload), "a") == PubAck(
        "C", 7, domain="hub", value=123456789012345678901234567890
    )


def test_duplicate_is_told() -> None:
    assert read_ack(frame(b'{"stream":"S","seq":3,"duplicate": true}'), "a") == PubAck(
        "S", 3, duplicate=True
    )


@pytest.mark.parametrize(
    ("payload", "header", "error"),
    [
        (b"", b"NATS/1.0 503\r\n\r\n", NoRespondersError),
        (b"pong", b"", ProtocolError),
        (b"[" * 100_000, b"", ProtocolError),
        (b'{"ok":true}', b"", ProtocolError),
        (b'{"stream":"S","seq":1,"val":Infinity}', b"", ProtocolError),
        (b'{"error":{"code":503,"err_code":10077,"description":"x"}}', b"", StreamFullError),
        (b'{"error":{"code":503,"err_code":10008,"description":"x"}}', b"", UnavailableError),
    ],
)
def test_what_is_no_ack_is_raised_by_type(
    payload: bytes, header: bytes, error: type[NatsStreamError]
) -> None:
    with pytest.raises(error):
        read_ack(frame(payload, header), "a")
