"""A message in its envelope: nothing of it acts, and all of it comes out again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire.headers import HeaderName, Headers, encode_headers
from natsstream.consume.dead_letters.envelope import (
    ERROR_CHARACTERS_MAX,
    FailureRecord,
    decode,
    described_error,
    encode,
    for_replay,
    one_line,
    read_failure,
)

DEATH = FailureRecord(
    subject="orders.new",
    time_ns=1_795_325_434_813_693_395,
    stream="ORDERS",
    consumer="billing",
    sequence=41,
    deliveries=3,
    reason="attempts",
    error="ValueError: no such customer",
)

_NAMES = st.one_of(
    st.from_regex(r"[!-9;-~]{1,20}", fullmatch=True),
    st.sampled_from(
        [
            *(name.value for name in HeaderName),
            "nats-rollup",
            "NATS-TTL",
            "Dead-Letter-Original-Nats-TTL",
            "dead-letter-reason",
        ]
    ),
)
_VALUES = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"])).map(
    str.strip
)


@given(pairs=st.lists(st.tuples(_NAMES, _VALUES), max_size=8))
def test_headers_come_out_as_they_went_in(pairs: list[tuple[str, str]]) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    block = f"NATS/1.0\r\n{lines}\r\n".encode() if pairs else b""

    told, original = decode(encode(block, DEATH))

    assert original == block
    assert read_failure(told, "ORDERS", "billing", 41) == DEATH


@given(pairs=st.lists(st.tuples(_NAMES, _VALUES), max_size=8))
def test_no_header_of_the_original_acts_on_the_dead_letter_stream(
    pairs: list[tuple[str, str]],
) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)

    names = Headers(encode(f"NATS/1.0\r\n{lines}\r\n".encode(), DEATH))

    assert not [name for name in names if name.lower().startswith("nats-")]


def test_what_a_server_added_to_the_letter_is_not_the_originals() -> None:
    block = encode(encode_headers({"A": "1"}), DEATH)
    added = block[:-2] + b"Nats-Stream-Source: X\r\nNats-Expected-Stream: DLQ\r\n\r\n"

    _, original = decode(added)

    assert original == encode_headers({"A": "1"})


@pytest.mark.parametrize("block", [b"no headers at all", b"NATS/9", b"\x00\xff\r\n\r\n"])
def test_headers_that_are_none_are_kept_whole(block: bytes) -> None:
    told, original = decode(encode(block, DEATH))

    assert original == block
    assert read_failure(told, "ORDERS", "billing", 41) == DEATH


def test_letter_of_a_letter_gives_back_the_letter() -> None:
    inner = encode(encode_headers({"Nats-TTL": "5", "A": "1"}), DEATH)

    _, once = decode(encode(inner, DEATH))
    _, twice = decode(once)

    assert once == inner
    assert twice == encode_headers({"Nats-TTL": "5", "A": "1"})


def test_error_is_one_bounded_line() -> None:
    line = one_line("first\r\nsecond\x00\x1b[31m" + "x" * 5_000)

    assert line.startswith("first second [31m")
    assert len(line) == ERROR_CHARACTERS_MAX
    assert one_line("\ud800") == "?"


def test_error_that_can_not_describe_itself_has_its_type() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert described_error(MuteError()) == "MuteError"
    assert described_error(ValueError("a\nb")) == "ValueError: a b"


@pytest.mark.parametrize(
    ("told", "reason", "deliveries"),
    [
        ({}, "unknown", 0),
        ({"Dead-Letter-Reason": "boredom", "Dead-Letter-Deliveries": "many"}, "unknown", 0),
        ({"Dead-Letter-Reason": "rejected", "Dead-Letter-Deliveries": "9" * 5_000}, "rejected", 0),
        ({"Dead-Letter-Time": "yesterday", "Dead-Letter-Deliveries": "2"}, "unknown", 2),
    ],
)
def test_letters_that_somebody_else_wrote_are_read(
    told: dict[str, str], reason: str, deliveries: int
) -> None:
    failure = read_failure(told, "S", "c", 1)

    assert (failure.reason, failure.deliveries, failure.time_ns) == (reason, deliveries, 0)


def test_replay_asks_for_nothing_that_held_only_once() -> None:
    block = encode_headers(
        {
            "A": "1",
            "Nats-Msg-Id": "o-1",
            "Nats-Expected-Last-Sequence": "7",
            "nats-expected-stream": "S",
            "Nats-Batch-Id": "b",
            "Nats-TTL": "60",
            "Nats-Rollup": "all",
            "Nats-Schedule": "@every 1s",
            "Nats-Incr": "+1",
        }
    )

    plain = Headers(for_replay(block, keep_effects=False))
    whole = Headers(for_replay(block, keep_effects=True))

    assert dict(plain) == {"A": "1", "Nats-TTL": "60"}
    assert set(whole) == {"A", "Nats-TTL", "Nats-Rollup", "Nats-Schedule", "Nats-Incr"}
    assert for_replay(b"", keep_effects=False) == b""
    assert for_replay(b"garbage", keep_effects=True) == b""
