"""Reply subjects of JetStream messages, v1 and v2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire.acks import AckSubject, ack_numbers, parse_ack_subject
from natsstream.errors import ProtocolError

V1 = "$JS.ACK.ORDERS.billing.2.41.7.1700000000123456789.3"
V2 = "$JS.ACK.hub.jWkaCHBa.ORDERS.billing.2.41.7.1700000000123456789.3"
EXPECTED = AckSubject(
    stream="ORDERS",
    consumer="billing",
    domain="",
    delivered=2,
    sequence=41,
    consumer_sequence=7,
    time_ns=1_700_000_000_123_456_789,
    pending=3,
)

names = st.text(st.characters(codec="utf-8", exclude_characters=". \t\r\n\f*>"), min_size=1)
uint64 = st.integers(0, 2**64 - 1)


def test_v1_has_no_domain() -> None:
    assert parse_ack_subject(V1) == EXPECTED


def test_v2_names_its_domain() -> None:
    parsed = parse_ack_subject(V2)

    assert parsed is not None
    assert parsed.domain == "hub"
    assert (parsed.stream, parsed.sequence, parsed.pending) == ("ORDERS", 41, 3)


def test_v2_domain_underscore_is_no_domain() -> None:
    assert parse_ack_subject(V2.replace(".hub.", "._.")) == EXPECTED


@pytest.mark.parametrize("tail", [".x8Hd", ".x8Hd.more", ".1.2.3"])
def test_tokens_after_the_eleventh_are_ignored(tail: str) -> None:
    assert parse_ack_subject(V2 + tail) == parse_ack_subject(V2)
    assert ack_numbers((V2 + tail).encode()) == ack_numbers(V2.encode())


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "_INBOX.abc",
        "$JS.ACK",
        "$JS.ACK.",
        "$JS.ACK.ORDERS.billing.2.41.7.1700000000123456789",
        "$JS.ACK.hub.ORDERS.billing.2.41.7.1700000000123456789.3",
        "$JS.NAK.ORDERS.billing.2.41.7.1700000000123456789.3",
        "$JS.ACK.ORDERS.billing.2.x.7.1700000000123456789.3",
        "$JS.ACK.ORDERS.billing.2..7.1700000000123456789.3",
        "$JS.ACK.hub.jWkaCHBa.ORDERS.billing.2.41.seven.1700000000123456789.3",
    ],
)
def test_malformed_subjects_give_none_and_raise_on_the_fast_way(reply: str) -> None:
    assert parse_ack_subject(reply) is None
    with pytest.raises(ProtocolError, match="ack subject"):
        ack_numbers(reply.encode())


@pytest.mark.parametrize(
    "reply",
    [
        "$JS.ACK..billing.2.41.7.1.3",
        "$JS.ACK.ORDERS..2.41.7.1.3",
        "$JS.ACK.ORDERS.billing.-2.41.7.1.3",
        "$JS.ACK.ORDERS.billing.2.4_1.7.1.3",
        "$JS.ACK.ORDERS.billing.2.\u0664\u0661.7.1.3",
        f"$JS.ACK.ORDERS.billing.2.{'9' * 5000}.7.1.3",
    ],
)
def test_what_no_server_writes_gives_none(reply: str) -> None:
    assert parse_ack_subject(reply) is None


@given(
    stream=names,
    consumer=names,
    domain=names,
    numbers=st.tuples(uint64, uint64, uint64, uint64, uint64),
    form=st.sampled_from(["v1", "v2", "v2 with token"]),
)
def test_both_ways_read_what_a_server_writes(
    stream: str, consumer: str, domain: str, numbers: tuple[int, int, int, int, int], form: str
) -> None:
    start = "" if form == "v1" else f"{domain}.hash."
    end = ".token" if form == "v2 with token" else ""
    reply = f"$JS.ACK.{start}{stream}.{consumer}.{'.'.join(map(str, numbers))}{end}"

    parsed = parse_ack_subject(reply)

    assert parsed is not None
    assert (parsed.stream, parsed.consumer) == (stream, consumer)
    assert parsed.domain == ("" if form == "v1" or domain == "_" else domain)
    assert parsed.delivered == numbers[0]
    read = (parsed.sequence, parsed.consumer_sequence, parsed.time_ns, parsed.pending)
    assert read == numbers[1:] == ack_numbers(reply.encode())


@given(st.text() | st.text("$JSACK.0123456789x", max_size=80).map("$JS.ACK.".__add__))
def test_no_text_raises(reply: str) -> None:
    parse_ack_subject(reply)
