"""Reading and writing counters: exact, of any size, and nothing else taken for one."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream import ConfigError
from natsstream._wire.headers import encode_headers
from natsstream.api.message import Message, stored_message
from natsstream.errors import ProtocolError
from natsstream.fields import Fields
from natsstream.publish.digits import read_number, write_number
from natsstream.streams.counters.counter import delta_text, read_counter

HUGE = st.integers(-(10**3_000), 10**3_000)


def stored(body: bytes, **headers: str) -> Message:
    """Return the message in a server's answer."""
    block = encode_headers({name.replace("_", "-"): value for name, value in headers.items()})
    message = {
        "subject": "hits",
        "seq": 7,
        "time": "2026-11-21T05:00:00.000000001Z",
        "hdrs": base64.b64encode(block).decode(),
        "data": base64.b64encode(body).decode(),
    }
    return stored_message(Fields({"message": message}, "the answer"))


@given(st.one_of(st.integers(), HUGE))
def test_number_is_read_as_it_was_written(value: int) -> None:
    assert read_number(write_number(value)) == value
    assert read_number(delta_text(value)) == value


@pytest.mark.parametrize("digits", [599, 600, 601, 1_199, 1_200, 1_201, 4_300, 4_301, 20_000])
@pytest.mark.parametrize("sign", [1, -1])
def test_number_at_the_edge_of_a_piece_is_exact(digits: int, sign: int) -> None:
    for value in (10**digits, 10**digits - 1, 10 ** (digits - 1)):
        assert read_number(write_number(sign * value)) == sign * value


def test_small_numbers_are_what_python_writes() -> None:
    assert [write_number(value) for value in (0, 7, -7)] == ["0", "7", "-7"]
    assert [delta_text(value) for value in (0, 7, -7)] == ["+0", "+7", "-7"]
    assert [read_number(text) for text in ("+5", "-0", "007")] == [5, 0, 7]


@pytest.mark.parametrize(
    "text", ["", "+", "1.5", "1e3", "1_000", " 1", "٣", "0x1", "1" * 700 + "x"]
)
def test_text_that_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no whole number"):
        read_number(text)


def test_counter_tells_total_delta_and_sources() -> None:
    sources = json.dumps({"A": {"a.hits": "-3", "a.other": "0"}, "B": {"b": str(10**30)}})
    body = b'{"val":"%d"}' % 10**30

    held = read_counter(stored(body, Nats_Incr="+12", Nats_Counter_Sources=sources))

    assert (held.subject, held.sequence, held.value, held.last_delta) == ("hits", 7, 10**30, 12)
    assert held.time_ns % 1_000_000_000 == 1
    assert held.sources == {"A": {"a.hits": -3, "a.other": 0}, "B": {"b": 10**30}}


def test_counter_that_came_from_a_source_tells_no_delta() -> None:
    assert read_counter(stored(b'{"val":"1"}')).last_delta is None


@pytest.mark.parametrize(
    "body",
    [b"", b"7", b"[]", b"null", b"{}", b'{"val":7}', b'{"val":"x"}', b'{"val":null}', b"\xff"],
)
def test_message_that_is_no_counter_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="no counter"):
        read_counter(stored(body))


@pytest.mark.parametrize("text", ["x", "[]", '{"A": 1}', '{"A": {"b": "x"}}', '{"A": {"b": 1}}'])
def test_sources_that_can_not_be_read_are_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match="no counter"):
        read_counter(stored(b'{"val":"1"}', Nats_Counter_Sources=text))


@pytest.mark.parametrize("given_", [{}, {"message": None}, {"message": {"subject": "s"}}])
def test_answer_without_a_message_is_refused(given_: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        stored_message(Fields(given_, "the answer"))


@pytest.mark.parametrize("delta", [True, 1.0, "1", None, 1j])
def test_delta_that_is_no_whole_number_is_refused(delta: object) -> None:
    with pytest.raises(ConfigError, match="delta"):
        delta_text(delta)
