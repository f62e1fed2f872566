"""Values of a core stream: the bytes that Conat writes and reads."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.values import Encoding, decode_value, encode_value, json_text
from natsstream.errors import CodecError, ConfigError

_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
_NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_PLAIN = st.none() | st.booleans() | _NUMBERS | _TEXT
_JSON = st.recursive(
    _PLAIN, lambda each: st.lists(each, max_size=3) | st.dictionaries(_TEXT, each, max_size=3)
)
_MSGPACK = st.recursive(
    _PLAIN | st.binary(max_size=6) | st.datetimes(timezones=st.just(UTC)),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(_TEXT, each, max_size=3),
    max_leaves=8,
)
_WITH_UNDEFINED = st.recursive(
    _PLAIN | st.just(UNDEFINED),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(_TEXT, each, max_size=3),
    max_leaves=8,
)
_NAIVE = datetime(2026, 1, 2)  # noqa: DTZ001 - That is the point.


def _nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@given(_MSGPACK)
def test_a_value_comes_back_from_msgpack(value: object) -> None:
    assert decode_value(encode_value(value), Encoding.MSGPACK) == value


@given(_JSON)
def test_a_value_comes_back_from_json(value: object) -> None:
    assert decode_value(encode_value(value, Encoding.JSON), Encoding.JSON) == value


@given(_WITH_UNDEFINED, st.sampled_from(Encoding))
def test_undefined_fields_are_dropped_and_others_are_null(
    value: object, encoding: Encoding
) -> None:
    assert decode_value(encode_value(value, encoding), encoding) == _as_javascript(value)


def _as_javascript(value: object) -> object:
    match value:
        case dict():
            items = cast("dict[object, object]", value).items()
            return {key: _as_javascript(each) for key, each in items if each is not UNDEFINED}
        case list():
            return [_as_javascript(each) for each in cast("list[object]", value)]
        case _:
            return None if value is UNDEFINED else value


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, b"\xc0"),
        (UNDEFINED, b"\xc0"),
        ((1, 2), b"\x92\x01\x02"),
        (b"x", b"\xc4\x01x"),
        ("x", b"\xa1x"),
        (2**64 - 1, b"\xcf" + b"\xff" * 8),
        (datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), b"\xd6\xff\x00\x00\x00\x05"),
        ({"a": UNDEFINED, "b": 1}, b"\x81\xa1b\x01"),
    ],
)
def test_msgpack_is_written_as_conat_writes_it(value: object, data: bytes) -> None:
    assert encode_value(value) == data


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (UNDEFINED, b"null"),
        ("é\U0001f600", '"é\U0001f600"'.encode()),
        ({"a": [1, UNDEFINED], "b": UNDEFINED}, b'{"a":[1,null]}'),
        (
            datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=timezone(timedelta(hours=1))),
            b'"2026-01-02T02:04:05.678Z"',
        ),
    ],
)
def test_json_is_written_as_javascript_writes_it(value: object, data: bytes) -> None:
    assert encode_value(value, Encoding.JSON) == data


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, [10**5000]])
def test_a_number_of_more_than_64_bits_is_refused_with_the_way_out(value: object) -> None:
    with pytest.raises(ConfigError, match="64 bits") as caught:
        encode_value(value)
    assert "str(value)" in caught.value.hint


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("value", [_NAIVE, {"at": [_NAIVE]}])
def test_a_time_without_a_zone_is_refused(value: object, encoding: Encoding) -> None:
    with pytest.raises(ConfigError, match="no time zone"):
        encode_value(value, encoding)


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize(
    "value",
    [object(), {1}, Decimal(1), date(2026, 1, 1), "\ud800", {UNDEFINED: 1, "a": UNDEFINED}],
)
def test_other_values_are_refused(value: object, encoding: Encoding) -> None:
    with pytest.raises(ConfigError, match="cannot be encoded"):
        encode_value(value, encoding)


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("inside", [1, UNDEFINED])
def test_a_value_that_nests_too_deep_is_refused(inside: object, encoding: Encoding) -> None:
    endless: list[object] = [inside]
    endless.append(endless)
    for value in (_nested(100_000), endless):
        with pytest.raises(ConfigError, match="cannot be encoded"):
            encode_value(value, encoding)


@pytest.mark.parametrize("value", [b"x", [bytearray(b"x")], memoryview(b"x")])
def test_json_refuses_bytes(value: object) -> None:
    with pytest.raises(ConfigError, match="JSON has no bytes"):
        encode_value(value, Encoding.JSON)


def test_json_refuses_nan() -> None:
    with pytest.raises(ConfigError, match="cannot be encoded"):
        json_text({"a": float("nan")})


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"", Encoding.MSGPACK),
        (b"\xc1", Encoding.MSGPACK),
        (b"\x01\x02", Encoding.MSGPACK),
        (b"\xa1\xff", Encoding.MSGPACK),
        (b"\x81\x80\x01", Encoding.MSGPACK),
        (b"\x91" * 100_000, Encoding.MSGPACK),
        (b"", Encoding.JSON),
        (b"NaN", Encoding.JSON),
        (b"\xff", Encoding.JSON),
        (b"[" * 100_000, Encoding.JSON),
    ],
)
def test_bytes_that_are_no_value_name_the_message(data: bytes, encoding: Encoding) -> None:
    with pytest.raises(CodecError, match="message 7 of stream CN_x") as caught:
        decode_value(data, encoding, stream="CN_x", sequence=7)
    assert (caught.value.bucket, caught.value.revision) == ("CN_x", 7)


@given(st.binary(max_size=60), st.sampled_from(Encoding))
def test_any_bytes_are_a_value_or_a_codec_error(data: bytes, encoding: Encoding) -> None:
    try:
        decode_value(data, encoding)
    except CodecError:
        return


def test_bytes_of_another_program_are_the_value() -> None:
    assert decode_value(b"\xff{", None) == b"\xff{"
