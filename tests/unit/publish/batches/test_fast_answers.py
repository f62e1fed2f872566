"""Answers to fast batches, as servers send them, and as nobody should."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.errors import NatsStreamError, NoRespondersError, ProtocolError, ServerError
from natsstream.publish.batches.fast_answers import (
    FinalAck,
    FlowAck,
    FlowGap,
    Refused,
    read_answer,
    reply_prefix,
)


def answer(payload: bytes, *, number: int = 7, operation: int = 1, headers: bytes = b"") -> object:
    prefix = reply_prefix("_INBOX.x", "id", 500, gaps_are_ok=False)
    subject = f"{prefix}{number}.{operation}.$FI".encode()
    return read_answer((subject, b"", headers, payload), "id", "S")


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b'{"type":"ack","seq":500,"msgs":250}', FlowAck(500, 250)),
        (b'{"type":"ack","seq":0,"msgs":0}', FlowAck(0, 1)),
        (b'{"type":"gap","last_seq":4,"seq":6}', FlowGap(4, 5)),
        (b'{"stream":"S","seq":94,"batch":"id","count":90}', FinalAck(90, 94)),
        (b'{"stream":"S","seq":3,"duplicate":true,"batch":"id","count":1}', FinalAck(1, 0)),
    ],
)
def test_answers_are_read(payload: bytes, expected: object) -> None:
    assert answer(payload) == expected


def test_a_refusal_within_the_batch_names_its_message() -> None:
    found = answer(b'{"type":"err","seq":9,"error":{"code":400,"err_code":10071}}')

    assert isinstance(found, Refused)
    assert (found.number, found.is_early, found.is_message) == (9, False, True)
    assert isinstance(found.error, ServerError)
    assert found.error.err_code == 10071


def test_a_refusal_before_the_batch_is_about_the_message_of_the_answer() -> None:
    found = answer(b'{"error":{"code":400,"err_code":10208},"stream":"OTHER","seq":0}', number=12)

    assert isinstance(found, Refused)
    assert (found.number, found.stream, found.is_early) == (12, "OTHER", True)
    assert found.is_unknown_batch


def test_nobody_listening_is_a_refusal_and_a_ping_is_no_message() -> None:
    found = answer(b"", headers=b"NATS/1.0 503\r\n\r\n", operation=4)

    assert isinstance(found, Refused)
    assert isinstance(found.error, NoRespondersError)
    assert not found.is_message


def test_answers_to_other_batches_are_none() -> None:
    frame = (b"_INBOX.x.other.500.ok.1.1.$FI", b"", b"", b"{}")

    assert read_answer(frame, "id", "S") is None
    assert read_answer((b"short", b"", b"", b"{}"), "id", "S") is None


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"no json",
        b"[]",
        b"7",
        b"{}",
        b'{"type":"ack","seq":-1,"msgs":5}',
        b'{"type":"ack","seq":"1","msgs":5}',
        b'{"type":"ack","seq":true,"msgs":5}',
        b'{"type":"gap","seq":5}',
        b'{"type":"err","error":{}}',
        b'{"stream":"S","seq":1.5,"count":2}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer_is_refused(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        answer(payload)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_no_bytes_make_anything_but_an_answer_or_an_error_of_ours(
    subject: bytes, payload: bytes
) -> None:
    for each in (subject, b"a.id.1.ok." + subject + b".1.$FI"):
        with contextlib.suppress(NatsStreamError):
            read_answer((each, b"", b"", payload), "id", "S")
