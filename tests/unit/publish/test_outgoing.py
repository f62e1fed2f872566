"""What a message carries: expectations, ids and life times that the server would misunderstand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream import ConfigError, Expect, Schedule, StreamInfo
from natsstream._wire.headers import HeaderName, Headers, HeaderValues
from natsstream.api.features import (
    COUNTERS,
    EXPECT_SUBJECT,
    MESSAGE_TTL,
    SCHEDULES_REPEATED,
)
from natsstream.errors import StreamNameError, SubjectError
from natsstream.publish.admission import is_unclustered
from natsstream.publish.outgoing import (
    PublishMessage,
    add_header,
    message_headers,
    payload_bytes,
    prepare,
)
from natsstream.publish.publisher_options import PublisherOptions
from natsstream.publish.schedule import Ttl, ttl_text

# More digits than Python writes.
HUGE = pytest.param(10**5_000, id="huge")


def headers_of(
    headers: HeaderValues | None = None,
    msg_id: str | None = None,
    expect: Expect | None = None,
    ttl: Ttl | None = None,
) -> bytes:
    """Return the block of a message to any subject."""
    return message_headers(PublishMessage("orders.new", b"", headers, msg_id, expect, ttl))[0]


@pytest.mark.parametrize(
    ("ttl", "text"),
    [(1, "1"), (60.0, "60"), (timedelta(minutes=2), "120"), ("never", "never")],
)
def test_ttl_is_whole_seconds_or_never(ttl: Ttl, text: str) -> None:
    assert ttl_text(ttl) == text


@pytest.mark.parametrize(
    "ttl",
    [0, 0.5, 1.9, -1, timedelta(milliseconds=999), float("inf"), float("nan"), 1e10, "1h", ""],
)
def test_ttl_that_the_server_would_cut_or_refuse_is_refused(ttl: Ttl) -> None:
    with pytest.raises(ConfigError):
        ttl_text(ttl)


@pytest.mark.parametrize("msg_id", ["", " ", " a", "a ", "\ta"])
def test_message_id_that_the_server_would_change_is_refused(msg_id: str) -> None:
    with pytest.raises(ConfigError):
        headers_of(msg_id=msg_id)
    with pytest.raises(ConfigError):
        Expect(last_msg_id=msg_id)


def test_expectation_about_another_subject_needs_its_sequence() -> None:
    with pytest.raises(ConfigError, match="last_subject_seq"):
        Expect(subject="orders.a")


@pytest.mark.parametrize("subject", ["", "a..b", "orders.*", "orders.>", "a b"])
def test_expectation_about_no_single_subject_is_refused(subject: str) -> None:
    with pytest.raises(SubjectError):
        Expect(subject=subject, last_subject_seq=0)


def test_expectation_about_no_legal_stream_is_refused() -> None:
    with pytest.raises(StreamNameError):
        Expect(stream="a.b")


def test_headers_of_a_message_say_all_that_was_asked() -> None:
    expect = Expect(stream="S", last_seq=1, last_subject_seq=0, subject="s.x", last_msg_id="i")

    found = Headers(headers_of({"A": ["1", "2"]}, "id", expect, 5))

    assert found.items_all() == [
        ("A", "1"),
        ("A", "2"),
        ("Nats-Msg-Id", "id"),
        ("Nats-TTL", "5"),
        ("Nats-Expected-Stream", "S"),
        ("Nats-Expected-Last-Sequence", "1"),
        ("Nats-Expected-Last-Subject-Sequence", "0"),
        ("Nats-Expected-Last-Subject-Sequence-Subject", "s.x"),
        ("Nats-Expected-Last-Msg-Id", "i"),
    ]


def test_callers_headers_stay_as_they_are() -> None:
    headers: dict[str, str | list[str]] = {"A": ["1", "2"], "Nats-Msg-Id": "old"}

    block = headers_of(headers, "new", Expect(last_seq=0), "never")

    assert headers == {"A": ["1", "2"], "Nats-Msg-Id": "old"}
    assert Headers(block).all("Nats-Msg-Id") == ("new",)


def test_headers_of_a_message_that_was_read_keep_all_values() -> None:
    read = Headers(b"NATS/1.0\r\nA: 1\r\nB: 2\r\nA: 3\r\n\r\n")

    assert Headers(headers_of(read, "id")).all("A") == ("1", "3")


@given(st.dictionaries(st.sampled_from(["A", "B"]), st.sampled_from(["", "x y"])))
def test_added_header_stands_behind_the_others(headers: dict[str, str]) -> None:
    block = add_header(headers_of(headers), HeaderName.EXPECTED_LAST_SEQUENCE, 7)

    assert Headers(block).items_all() == [
        *headers.items(),
        ("Nats-Expected-Last-Sequence", "7"),
    ]


@pytest.mark.parametrize("data", [bytearray(b"ab"), memoryview(b"ab"), b"ab"])
def test_payload_is_taken_as_it_is_now(data: bytes | bytearray | memoryview) -> None:
    assert payload_bytes(data) == b"ab"


@pytest.mark.parametrize("data", ["text", 5, None, ["a"]])
def test_payload_that_is_no_bytes_is_refused(data: object) -> None:
    with pytest.raises(ConfigError, match="encode"):
        payload_bytes(data)


@pytest.mark.parametrize(
    "options",
    [
        {"max_pending": 0},
        {"max_pending_bytes": 0},
        {"ack_timeout": 0},
        {"ack_timeout": float("nan")},
        {"retry_for": 0},
        {"retry_for": -1},
        {"stream": "a.b"},
        {"max_pending": "5"},
        {"max_pending": True},
        {"max_pending_bytes": 1.5},
        {"ack_timeout": None},
        {"ack_timeout": "5"},
        {"retry_for": "5"},
        {"retry_for": float("inf")},
        {"stream": 5},
    ],
)
def test_options_that_can_not_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((ConfigError, StreamNameError)):
        PublisherOptions(**options)  # pyright: ignore[reportArgumentType] - a table of all types.


@pytest.mark.parametrize("sequence", [-1, 2**64])
def test_sequence_that_the_server_would_not_read_is_refused(sequence: int) -> None:
    with pytest.raises(ConfigError, match="64 bits"):
        Expect(last_subject_seq=sequence)


@pytest.mark.parametrize("value", [True, 1.0, "1", HUGE, pytest.param(-(10**5_000), id="-huge")])
@pytest.mark.parametrize("name", ["last_seq", "last_subject_seq"])
def test_sequence_that_is_no_number_of_the_server_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        Expect(**{name: value})


@pytest.mark.parametrize("ttl", [True, HUGE, None, [], "forever"])
def test_life_time_of_another_kind_is_refused(ttl: Any) -> None:
    with pytest.raises(ConfigError):
        ttl_text(ttl)


def test_message_without_labels_has_no_block_and_needs_nothing() -> None:
    assert prepare("orders.new", bytearray(b"x")) == ("orders.new", b"x", b"", (), False)


def test_message_tells_what_its_servers_must_have() -> None:
    schedule = Schedule.every(60, target="orders.x")
    expect = Expect(subject="orders.x", last_subject_seq=0)

    assert prepare("a", b"", msg_id="i", headers={"A": "b"}).needs == ()
    assert prepare("a", b"", ttl=5).needs == (MESSAGE_TTL,)
    assert prepare("a", b"", headers={"Nats-TTL": "5"}).needs == (MESSAGE_TTL,)
    assert prepare("a", b"", headers={"Nats-Incr": "5"}).needs == (COUNTERS,)
    assert prepare("a", b"", expect=expect).needs == (EXPECT_SUBJECT,)
    assert SCHEDULES_REPEATED in prepare("a", b"", schedule=schedule).needs


def test_message_tells_that_it_expects_a_last_message_id() -> None:
    assert prepare("a", b"", expect=Expect(last_msg_id="i")).expects_last_id
    assert prepare("a", b"", headers={"Nats-Expected-Last-Msg-Id": "i"}).expects_last_id
    assert not prepare("a", b"", msg_id="i", expect=Expect(last_seq=0)).expects_last_id


@pytest.mark.parametrize(
    ("replicas", "cluster", "expected"),
    [(1, {"leader": "n"}, True), (1, None, True), (1, {"name": "c"}, False), (3, None, False)],
)
def test_stream_is_alone_when_its_server_is_in_no_cluster(
    replicas: int, cluster: dict[str, str] | None, *, expected: bool
) -> None:
    raw = {
        "config": {"name": "S", "num_replicas": replicas},
        "state": {},
        "created": "2026-11-21T05:00:00Z",
        "cluster": cluster,
    }

    assert is_unclustered(StreamInfo.from_json(raw)) is expected


def test_message_to_be_sent_shows_no_payload() -> None:
    assert repr(PublishMessage("a.b", b"secret")) == "<PublishMessage 'a.b' 6 bytes>"
