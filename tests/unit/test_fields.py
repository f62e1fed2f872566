"""The boundary where JSON is decoded: values of the wanted types, or one error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from natsstream.errors import BackupError, ProtocolError
from natsstream.fields import Fields, parse_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)

# Each reader, and what it gives.
READERS: dict[str, tuple[Callable[[Fields], object], type | tuple[type, ...]]] = {
    "text": (lambda fields: fields.text("a"), str),
    "integer": (lambda fields: fields.integer("a"), int),
    "count": (lambda fields: fields.count("a"), int),
    "flag": (lambda fields: fields.flag("a"), bool),
    "seconds": (lambda fields: fields.seconds("a"), float),
    "moment": (lambda fields: fields.moment("a", 0), int),
    "payload": (lambda fields: fields.payload("a"), bytes),
    "part": (lambda fields: fields.part("a"), Fields),
    "part or none": (lambda fields: fields.part_or_none("a"), (Fields, type(None))),
    "parts": (lambda fields: fields.parts("a"), list),
    "texts": (lambda fields: fields.texts("a"), list),
    "integers": (lambda fields: fields.integers("a"), list),
    "counts": (lambda fields: fields.counts("a"), dict),
    "words": (lambda fields: fields.words("a"), dict),
    "parts by name": (lambda fields: fields.parts_by_name("a"), dict),
}


@pytest.mark.parametrize("name", READERS)
@given(value=json_values)
@example(value=10**400)
@example(value="\ud800")
@example(value={"\ud800": 1})
@example(value="9999-12-31T23:59:59-23:59")
@example(value="0001-01-01T00:00:00+23:59")
def test_a_field_is_of_the_wanted_type_or_a_protocol_error(name: str, value: object) -> None:
    read, wanted = READERS[name]
    try:
        found = read(Fields({"a": value}, "it"))
    except ProtocolError:
        return
    assert isinstance(found, wanted)
    json.dumps(found, ensure_ascii=False, default=str).encode()


@given(st.binary() | st.text().map(str.encode) | json_values.map(lambda v: json.dumps(v).encode()))
@example(b"[" * 100_000)
@example(b"[" * 100_000 + b"]" * 100_000)
@example(b'{"a":' * 900 + b"1" + b"}" * 900)
@example(b"1" * 5_000)
@example(b"1e400")
@example(b"NaN")
@example(b"\xff")
def test_bytes_are_json_or_a_protocol_error(data: bytes) -> None:
    try:
        value = parse_json(data, "it")
    except ProtocolError:
        return
    # It can be written again, as a configuration goes back.
    assert json.loads(json.dumps(value, allow_nan=False)) == value


@pytest.mark.parametrize("levels", [1, 64])
def test_what_servers_nest_is_taken(levels: int) -> None:
    text = "[" * levels + "1" + "]" * levels

    assert json.dumps(parse_json(text, "it")) == text


def test_a_name_that_stands_twice_is_the_last_one_as_in_go() -> None:
    assert Fields.parse(b'{"a":1,"a":2}', "it").integer("a") == 2


def test_what_is_missing_or_null_is_the_default() -> None:
    for fields in (Fields({}, "it"), Fields({"a": None}, "it")):
        assert fields.text("a", "") == ""
        assert fields.moment("a", 0) == 0
        assert (fields.count("a"), fields.flag("a"), fields.texts("a")) == (0, False, [])
        assert fields.part("a", {}).raw == {}
        assert not fields.has("a")
        with pytest.raises(ProtocolError, match="the field a is missing"):
            fields.text("a")


def test_an_error_names_the_way_to_the_field() -> None:
    fields = Fields({"config": {"sources": [{"name": "A"}, {"name": 5}]}}, "stream S")

    with pytest.raises(
        ProtocolError, match=r"stream S, config, sources\[1\]: the field name"
    ) as told:
        [each.text("name") for each in fields.part("config").parts("sources")]

    assert told.value.detail == "it is 5 (of type int)"


@pytest.mark.parametrize("value", [-1, 1 << 64, True, 1.0, "1", None])
def test_a_count_is_a_number_of_64_bits(value: object) -> None:
    fields = Fields({"a": [value]}, "it")

    with pytest.raises(ProtocolError):
        fields.integers("a")


def test_stored_data_has_an_error_of_its_own() -> None:
    def damaged(message: str, /, *, detail: str = "", hint: str = "") -> BackupError:
        return BackupError(message, detail=detail, hint=hint)

    calls: Iterable[Callable[[], Any]] = (
        lambda: Fields.parse(b"{", "it", error=damaged),
        lambda: Fields({"a": {"b": 5}}, "it", error=damaged).part("a").text("b"),
    )
    for call in calls:
        with pytest.raises(BackupError):
            call()
