"""Unit tests of verdicts, backoff and what a delivery says of itself."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.consume.delivery.ack_kinds import (
    REASON_BYTES_MAX,
    AckKind,
    Outcome,
    Reject,
    Retry,
    nak_body,
    outcome_of,
    printable_reason,
    term_body,
)
from natsstream.consume.delivery.backoff import (
    DEFAULT_BACKOFF,
    Backoff,
    backoff_from_ns,
    make_backoff,
)
from natsstream.consume.delivery.meta import read_meta
from natsstream.errors import ConfigError, ProtocolError
from tests.support.frames import ack


@pytest.mark.parametrize(
    ("delay", "body"),
    [
        (None, b"-NAK"),
        (0, b"-NAK"),
        (1.5, b'-NAK {"delay": 1500000000}'),
        (timedelta(milliseconds=5), b'-NAK {"delay": 5000000}'),
    ],
)
def test_nak_says_its_delay_in_nanoseconds(delay: float | timedelta | None, body: bytes) -> None:
    assert nak_body(delay) == body


@pytest.mark.parametrize("delay", [-1, float("inf"), float("nan")])
def test_delay_that_is_none_is_refused(delay: float) -> None:
    with pytest.raises(ConfigError):
        nak_body(delay)


def test_term_says_its_reason() -> None:
    assert (term_body(), term_body("no é")) == (b"+TERM", "+TERM no é".encode())


@given(st.text(max_size=3_000))
def test_any_text_becomes_a_legal_reason(text: str) -> None:
    body = term_body(printable_reason(text))
    assert b"\r" not in body
    assert b"\n" not in body
    assert len(body) <= REASON_BYTES_MAX + len(b"+TERM ")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, Outcome(AckKind.ACK)),
        (Reject("bad"), Outcome(AckKind.TERM, reason="bad", is_told=True)),
        (Retry(delay=3), Outcome(AckKind.NAK, delay_s=3, is_told=True)),
        (Retry(), Outcome(AckKind.NAK, delay_s=5, is_told=True)),
        (LookupError(), Outcome(AckKind.NAK, delay_s=5)),
        (asyncio.CancelledError(), Outcome(AckKind.NAK)),
        (KeyboardInterrupt(), Outcome(AckKind.NAK)),
    ],
)
def test_outcome_follows_from_how_a_handler_ended(
    error: BaseException | None, outcome: Outcome
) -> None:
    assert outcome_of(error, delivered=2, backoff=Backoff((1, 5, 30))) == outcome


@pytest.mark.parametrize(("delivered", "delay"), [(0, 1), (1, 1), (2, 5), (3, 30), (99, 30)])
def test_last_delay_goes_on(delivered: int, delay: float) -> None:
    assert Backoff((1, 5, 30)).delay_s(delivered) == delay


def test_backoff_comes_from_the_caller_the_consumer_or_nobody() -> None:
    assert make_backoff([1, timedelta(seconds=2)]) == Backoff((1.0, 2.0))
    assert make_backoff(None) is None
    with pytest.raises(ConfigError, match="backoff is empty"):
        make_backoff([])
    assert make_backoff(DEFAULT_BACKOFF) is DEFAULT_BACKOFF
    assert backoff_from_ns([10**9]) == Backoff((1.0,))
    assert backoff_from_ns(()) is DEFAULT_BACKOFF


@pytest.mark.parametrize("delays", [5, "5", [-1], ["x"], []])
def test_backoff_that_is_none_is_refused(delays: Any) -> None:
    for make in (make_backoff, Backoff):
        with pytest.raises(ConfigError):
            make(delays)


def test_backoff_of_a_consumer_may_be_as_long_as_a_server_takes() -> None:
    with pytest.raises(ConfigError, match="1001 delays"):
        make_backoff([1.0] * 1_001)
    held = backoff_from_ns([10**9] * 1_500 + [2**63 - 1])
    assert held.delay_s(1_500) == 1
    assert nak_body(held.delay_s(1_501)) == b'-NAK {"delay": %d}' % (2**63 - 1)


def test_backoff_is_made_of_a_list_too() -> None:
    delays: Any = [1, timedelta(seconds=2)]
    assert Backoff(delays) == Backoff((1.0, 2.0))
    assert hash(Backoff(delays)) == hash(Backoff((1.0, 2.0)))


@pytest.mark.parametrize(
    ("prefix", "domain"),
    [
        (b"$JS.ACK.ORDERS.c1.3", ""),
        (b"$JS.ACK._.hash.ORDERS.c1.3", ""),
        (b"$JS.ACK.hub.hash.ORDERS.c1.3", "hub"),
    ],
)
@pytest.mark.parametrize("suffix", [b"", b".token"])
def test_both_forms_of_the_ack_subject_are_read(prefix: bytes, domain: str, suffix: bytes) -> None:
    if suffix and prefix.count(b".") < 6:
        return  # The first form has no more tokens.
    meta = read_meta(ack(7, 9, prefix=prefix, pending=4, suffix=suffix))
    assert (meta.stream, meta.consumer, meta.domain) == ("ORDERS", "c1", domain)
    assert (meta.delivered, meta.stream_seq, meta.consumer_seq, meta.pending) == (3, 7, 9, 4)


def test_reply_that_is_no_ack_subject_is_refused() -> None:
    with pytest.raises(ProtocolError):
        read_meta(b"_INBOX.x")


@pytest.mark.parametrize("delay", [5, 2.5, timedelta(seconds=1)])
def test_delay_of_a_retry_by_place_is_answered_with_its_name(delay: Any) -> None:
    with pytest.raises(ConfigError, match="the reason of Retry is") as caught:
        Retry(delay)

    assert caught.value.hint == f"Retry(delay={delay!r})"


def test_retry_shows_its_delay() -> None:
    assert repr(Retry(delay=1)) == "Retry('', delay=1)"
    assert repr(Retry("later")) == "Retry('later')"
