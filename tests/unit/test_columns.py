"""Arrow columns over a block: they hold the stored bytes, and text is always valid UTF-8."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from natsstream._wire.headers import Headers
from natsstream.columns import (
    COLUMNS,
    Ints,
    binary_column,
    constant_column,
    headers_column,
    integer_column,
    join_batches,
    message_schema,
    record_batch,
    table,
    text_column,
    time_column,
)
from natsstream.errors import ConfigError

NONE: Ints = np.empty(0, np.int64)

odd_lines = st.one_of(
    st.sampled_from(
        [
            b"A: b",
            b"A:b",
            b"A:",
            b"A: ",
            b"A:      six blanks      ",
            b"A:\t \t",
            b"A: b ",
            b"A: b\t",
            b"A : b",
            b" A: b",
            b"A\t: b",
            b": no name",
            b"no colon",
            b"",
            b":",
            b"A: b:c:d",
            b"\xc3\xa4: \xc3\xb6",
            b"A: \xff\xfe",
            b"\xff: b",
            b"A: \xc3",
            b"A: one\nB: two",
            b"a\nb: c",
            b"\nb: c",
            b"A: b\r",
            b"\rA: b",
            b"NATS/1.0",
            b"A: \x00",
        ]
    ),
    st.binary(max_size=6),
    st.lists(st.sampled_from([b"A", b":", b" ", b"\t", b"\r", b"\n", b"\xff"]), max_size=8).map(
        b"".join
    ),
)
status_lines = st.sampled_from(
    [b"NATS/1.0", b"NATS/1.0 404 No Messages", b"NATS/1.0\n", b"NATS/1.0x"]
)


def block_of(first: bytes, lines: list[bytes], end: bytes) -> bytes:
    """Return a header block of these lines."""
    return b"\r\n".join([first, *lines]) + end


ends = st.sampled_from([b"\r\n\r\n", b"\r\n\r\n", b"\r\n\r\n", b"", b"\r\n", b"\n", b"\n\n"])
blocks = st.one_of(
    st.just(b""),
    st.builds(block_of, status_lines, st.lists(odd_lines, max_size=4), ends),
    st.lists(st.sampled_from([b"A: b", b"A: c", b"Nats-Msg-Id: 7"]), min_size=1, max_size=4).map(
        lambda lines: b"\r\n".join([b"NATS/1.0", *lines]) + b"\r\n\r\n"
    ),
)
payloads = st.sampled_from(
    [b"", b"x", b"A: b\r\n\r\n", b"\r\n", b"NATS/1.0\r\nC: d\r\n\r\n", b"\n:"]
)


def positions(lengths: list[int]) -> tuple[Ints, Ints]:
    """Return starts and stops of pieces that follow each other."""
    stops = np.cumsum(np.array(lengths, np.int64)) if lengths else NONE
    return stops - np.array(lengths, np.int64), stops


def pieces(parts: list[bytes]) -> tuple[bytes, Ints, Ints]:
    """Return parts as one block with the positions of each."""
    return b"".join(parts), *positions([len(part) for part in parts])


def plain(block: bytes) -> list[dict[str, str]]:
    """Return the headers of a block the plain way, as the table shows them."""
    pairs = Headers(block).items_all() if block else []
    return [{"key": shown(key), "value": shown(value)} for key, value in pairs]


def shown(text: str) -> str:
    """Return text with what is not UTF-8 replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def columns_of_headers(described: list[tuple[bytes, bytes]], junk: bytes = b"") -> pa.Array:
    """Return the column for header blocks, each followed by a payload and a line end."""
    data, starts, stops = junk, list[int](), list[int]()
    for block, payload in described:
        starts.append(len(data))
        stops.append(len(data) + len(block))
        data += block + payload + b"\r\n"
    column = headers_column(
        data,
        np.array(starts, np.int64),
        np.array(stops, np.int64),
        lambda block: Headers(block).items_all(),
    )
    column.validate(full=True)
    return column


@given(st.lists(st.tuples(blocks, payloads), max_size=8), st.sampled_from([b"", b"MSG a: b\r\n"]))
@example([(b"NATS/1.0\r\na\nb: c\r\n\r\n", b"")], b"")
@example([(b"NATS/1.0\r\nA: b\r\n\r\nC: d\r\n\r\n", b"")], b"")
@example([(b"NATS/1.0\r\nA: b", b"")], b"")
@example([(b"NATS/1.0\r\n A: b\r\n\r\n", b"")], b"")
@example([(b"NATS/1.0\nA: b\r\n\r\n", b"")], b"")
def test_headers_equal_the_plain_way(described: list[tuple[bytes, bytes]], junk: bytes) -> None:
    column = columns_of_headers(described, junk)

    assert column.to_pylist() == [plain(block) for block, _ in described]


def test_repeated_header_names_stay_in_wire_order() -> None:
    block = b"NATS/1.0\r\nB: 2\r\nA: 1\r\nB: 1\r\n\r\n"

    assert columns_of_headers([(block, b"x")]).to_pylist() == [
        [{"key": "B", "value": "2"}, {"key": "A", "value": "1"}, {"key": "B", "value": "1"}]
    ]


def test_messages_without_headers_have_an_empty_list() -> None:
    block = b"NATS/1.0\r\nA: 1\r\n\r\n"

    rows = columns_of_headers([(b"", b"x"), (block, b""), (b"", b""), (b"", b"y")]).to_pylist()

    assert list(map(len, rows)) == [0, 1, 0, 0]


def test_block_of_another_protocol_is_one_header_as_for_messages() -> None:
    good, other = b"NATS/1.0\r\nA: 1\r\n\r\n", b"HTTP/1.1 200 OK\r\nA: 1\r\n\r\n"

    rows = columns_of_headers([(good, b""), (other, b"")]).to_pylist()

    assert rows == [[{"key": "A", "value": "1"}], [{"key": "", "value": other.decode()}]]


@given(st.lists(st.binary(max_size=12), max_size=8), st.binary(max_size=5))
def test_binary_is_what_was_stored(parts: list[bytes], junk: bytes) -> None:
    data, starts, stops = pieces(parts)

    column = binary_column(junk + data, starts + len(junk), stops + len(junk))

    column.validate(full=True)
    assert column.to_pylist() == parts


@given(st.lists(st.one_of(st.text(max_size=5).map(str.encode), st.binary(max_size=6)), max_size=8))
def test_text_that_is_not_utf8_is_replaced_visibly(parts: list[bytes]) -> None:
    column = text_column(*pieces(parts))

    column.validate(full=True)
    assert column.to_pylist() == [part.decode("utf-8", "replace") for part in parts]


def test_one_bad_byte_is_one_replacement_character() -> None:
    assert text_column(*pieces([b"orders.\xff", b"a"])).to_pylist() == ["orders.\ufffd", "a"]


@pytest.mark.parametrize(
    "column",
    [
        binary_column(b"", NONE, NONE),
        text_column(b"", NONE, NONE),
        headers_column(b"", NONE, NONE, lambda _block: ()),
        integer_column(NONE),
        time_column(NONE, "ns"),
        time_column(NONE, "us"),
        constant_column("S", 0),
    ],
    ids=lambda column: str(column.type),
)
def test_no_messages_make_an_empty_column(column: pa.Array) -> None:
    column.validate(full=True)

    assert column.to_pylist() == []


def test_schema_has_every_column_in_the_order_of_the_table() -> None:
    schema = message_schema()

    assert tuple(schema.names) == COLUMNS
    assert [str(field.type) for field in schema] == [
        "string",
        "string",
        "int64",
        "timestamp[ns, tz=UTC]",
        "list<item: struct<key: string, value: string>>",
        "binary",
    ]


@pytest.mark.parametrize("unit", ["ms", "s", "x", None, 5])
def test_other_units_of_time_are_refused(unit: Any) -> None:
    with pytest.raises(ConfigError, match="time_unit is"):
        message_schema(time_unit=unit)


def test_schema_keeps_the_order_asked_for() -> None:
    assert message_schema(["data", "sequence"]).names == ["data", "sequence"]


@pytest.mark.parametrize("columns", [["nope"], ["data", "Data"], []])
def test_columns_that_can_not_be_are_a_config_error(columns: list[str]) -> None:
    with pytest.raises(ConfigError):
        message_schema(columns)


def test_one_text_in_the_place_of_columns_is_answered_with_a_list() -> None:
    with pytest.raises(ConfigError, match="columns is one string") as caught:
        message_schema("data")

    assert caught.value.hint == "give a list: columns=['data']"


def test_misspelt_column_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no column 'subjcet'") as caught:
        message_schema(["subjcet"])

    assert caught.value.hint.startswith("did you mean subject? ")


def test_microseconds_are_cut_and_not_rounded() -> None:
    time_ns: Ints = np.array([1_700_000_000_123_456_999, 0, -1], np.int64)

    assert time_column(time_ns, "us").to_pylist() == [
        datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ]


def test_nanoseconds_are_kept() -> None:
    time_ns: Ints = np.array([1_700_000_000_123_456_789], np.int64)

    assert time_column(time_ns, "ns").view(pa.int64()).to_pylist() == time_ns.tolist()


def test_constant_text_may_be_anything() -> None:
    column = constant_column("Straße", 3)
    column.validate(full=True)

    assert column.to_pylist() == ["Straße"] * 3


def test_batches_of_one_schema_join_into_one_and_into_a_table() -> None:
    schema = message_schema(["sequence", "headers"])
    empty = headers_column(b"ab", *positions([0]), lambda _block: ())
    batches = [
        record_batch([integer_column(np.array([at], np.int64)), empty], schema) for at in (1, 2)
    ]

    assert join_batches(batches).to_pylist() == [
        {"sequence": 1, "headers": []},
        {"sequence": 2, "headers": []},
    ]
    assert join_batches(batches[:1]) is batches[0]
    assert table(batches, schema).num_rows == 2
    assert table([], schema).schema == schema
