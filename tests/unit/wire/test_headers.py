"""Header blocks: reading leniently, writing strictly, losing nothing."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire.headers import HeaderName, Headers, encode_headers
from natsstream.errors import HeaderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MULTI = b"NATS/1.0\r\nA: 1\r\nB: x\r\nA: 2\r\nB: y\r\n\r\n"

names = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1
)
# Readers drop spaces and tabs around a value, so a value that has some does not come back.
values = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n") | st.characters(codec="ascii"),
).map(lambda value: value.replace("\r", "").replace("\n", "").strip(" \t"))
value_bytes = st.binary().map(lambda raw: raw.replace(b"\r", b"").replace(b"\n", b"").strip(b" \t"))


def untyped(headers: object) -> Mapping[str, str | Sequence[str]]:
    """Pass on what the types forbid, as a caller without a type checker would."""
    return cast("Mapping[str, str | Sequence[str]]", headers)


def test_multi_value_headers_keep_order() -> None:
    headers = Headers(MULTI)

    assert headers.all("A") == ("1", "2")
    assert headers["A"] == "1"
    assert headers.items_all() == [("A", "1"), ("B", "x"), ("A", "2"), ("B", "y")]
    assert list(headers) == ["A", "B"]
    assert len(headers) == 2


def test_names_are_case_sensitive_and_keep_their_case() -> None:
    headers = Headers(b"NATS/1.0\r\nX-a: 1\r\nx-A: 2\r\n\r\n")

    assert dict(headers) == {"X-a": "1", "x-A": "2"}
    assert headers.get("x-a") is None
    assert headers.all("x-a") == ()


def test_missing_header_raises_key_error() -> None:
    with pytest.raises(KeyError):
        _ = Headers(MULTI)["C"]


@pytest.mark.parametrize("line", [b"A:1", b"A: 1", b"A:\t 1 \t", b"A:   1   "])
def test_spaces_and_tabs_around_a_value_do_not_belong_to_it(line: bytes) -> None:
    assert Headers(b"NATS/1.0\r\n" + line + b"\r\n\r\n") == {"A": "1"}


def test_value_keeps_colons_and_inner_spaces() -> None:
    assert Headers(b"NATS/1.0\r\nA: b: c  d\r\n\r\n") == {"A": "b: c  d"}


def test_lines_without_name_or_colon_are_passed_over_and_stay_in_the_source() -> None:
    block = b"NATS/1.0\r\nno colon\r\n: no name\r\nA: 1\r\n\r\n"

    headers = Headers(block)

    assert headers == {"A": "1"}
    assert headers.source == block


def test_lines_after_the_empty_line_are_no_headers() -> None:
    assert Headers(b"NATS/1.0\r\nA: 1\r\n\r\nB: 2\r\n\r\n") == {"A": "1"}


@pytest.mark.parametrize("block", [b"", b"NATS/1.0\r\n\r\n", b"NATS/1.0", b"NATS/1.0 503\r\n\r\n"])
def test_block_without_headers_is_empty(block: bytes) -> None:
    assert Headers(block) == {}


def test_status_line_does_not_hide_the_headers() -> None:
    assert Headers(b"NATS/1.0 408 Request Timeout\r\nA: 1\r\n\r\n") == {"A": "1"}


@pytest.mark.parametrize("block", [b"HTTP/1.1 200 OK\r\n\r\n", b"\r\n", b"NATS/2.0\r\n\r\n"])
def test_a_block_of_another_protocol_stands_whole_under_the_empty_name(block: bytes) -> None:
    headers = Headers(block)
    assert headers.items_all() == [("", block.decode())]
    assert headers.get("Nats-Msg-Id") is None
    assert headers.source == block
    with pytest.raises(HeaderError):
        encode_headers(headers)


def test_equality_counts_values_and_their_order_but_not_the_order_of_names() -> None:
    headers = Headers(MULTI)
    regrouped = Headers(b"NATS/1.0\r\nB: x\r\nB: y\r\nA: 1\r\nA: 2\r\n\r\n")
    swapped = Headers(b"NATS/1.0\r\nA: 2\r\nB: x\r\nA: 1\r\nB: y\r\n\r\n")

    assert headers == regrouped
    assert hash(headers) == hash(regrouped)
    assert headers != swapped
    assert headers != {"A": "1", "B": "x"}
    assert headers != "A"


def test_headers_survive_pickle_and_copy() -> None:
    headers = Headers(MULTI)

    assert pickle.loads(pickle.dumps(headers)) == headers  # noqa: S301  Our own bytes.
    assert copy.deepcopy(headers).items_all() == headers.items_all()


def test_repr_is_short() -> None:
    many = Headers(encode_headers({f"Name-{i}": "v" * 500 for i in range(50)}))

    assert repr(Headers(MULTI)) == "Headers(A: '1 | 2', B: 'x | y')"
    assert repr(many).endswith(", 46 more)")
    assert len(repr(many)) < 300


def test_encoding_writes_one_line_for_each_value() -> None:
    block = encode_headers({HeaderName.MSG_ID: "o-1", "A": ["1", "2"]})

    assert block == b"NATS/1.0\r\nNats-Msg-Id: o-1\r\nA: 1\r\nA: 2\r\n\r\n"


def test_encoding_headers_keeps_every_value_in_wire_order() -> None:
    assert encode_headers(Headers(MULTI)) == MULTI


@pytest.mark.parametrize("headers", [{}, {"A": []}, Headers()])
def test_no_headers_give_no_block(headers: Mapping[str, str | Sequence[str]]) -> None:
    assert encode_headers(headers) == b""


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\r\n", "a\n", "\x7f", "naïve", "\x00", "a\t"])
def test_illegal_names_are_refused(name: str) -> None:
    with pytest.raises(HeaderError, match="not a header name"):
        encode_headers({name: "1"})


@pytest.mark.parametrize("value", ["a\r\nB: 2", "a\n", "\r", "a\r"])
def test_line_breaks_in_values_are_refused(value: str) -> None:
    with pytest.raises(HeaderError, match="line break"):
        encode_headers({"A": ["fine", value]})


@pytest.mark.parametrize("value", [1, None, b"1", [1], [b"1"], ["1", None]])
def test_values_that_are_no_text_are_refused(value: object) -> None:
    with pytest.raises(HeaderError, match="a value of type"):
        encode_headers(untyped({"A": value}))


def test_text_that_has_no_bytes_is_refused() -> None:
    with pytest.raises(HeaderError, match="not valid text"):
        encode_headers({"A": "\ud800"})


@given(st.dictionaries(names, st.lists(values, min_size=1, max_size=4)))
def test_what_is_encoded_is_read_back(headers: dict[str, list[str]]) -> None:
    read = Headers(encode_headers(headers))

    assert {name: list(read.all(name)) for name in read} == headers
    assert read.items_all() == [(name, value) for name in headers for value in headers[name]]


@given(st.lists(st.tuples(names, value_bytes)))
def test_any_bytes_of_a_value_survive_reading_and_writing(pairs: list[tuple[str, bytes]]) -> None:
    lines = b"".join(name.encode() + b": " + value + b"\r\n" for name, value in pairs)
    block = b"NATS/1.0\r\n" + lines + b"\r\n" if pairs else b""

    assert encode_headers(Headers(block)) == block


@given(st.binary())
def test_no_bytes_after_the_version_break_reading(rest: bytes) -> None:
    headers = Headers(b"NATS/1.0" + rest)

    assert len(headers) <= len(headers.items_all())
    assert all(headers[name] == headers.all(name)[0] for name in headers)


@given(st.dictionaries(st.text(), st.text() | st.lists(st.text())))
def test_encoding_refuses_or_adds_no_line_of_its_own(headers: dict[str, str | list[str]]) -> None:
    expected = sum(1 if isinstance(value, str) else len(value) for value in headers.values())
    try:
        block = encode_headers(headers)
    except HeaderError:
        return
    assert len(Headers(block).items_all()) == expected
