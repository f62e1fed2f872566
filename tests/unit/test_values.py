"""Values as JSON and as MessagePack, below all views."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream import MSGPACK, values
from natsstream.conat.values import Encoding, decode_value, encode_value
from natsstream.errors import MissingExtraError
from natsstream.values import from_json, from_msgpack, to_json, to_msgpack

if TYPE_CHECKING:
    from collections.abc import Callable

_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
_PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT
)
_MOMENTS = st.datetimes(timezones=st.just(UTC))
_JSON = st.recursive(
    _PLAIN, lambda each: st.lists(each, max_size=3) | st.dictionaries(_TEXT, each, max_size=3)
)
_KEYS = st.recursive(_PLAIN, lambda each: st.lists(each, max_size=3).map(tuple), max_leaves=4)
_MSGPACK = st.recursive(
    _PLAIN | st.binary(max_size=8) | _MOMENTS,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(_KEYS, each, max_size=3),
    max_leaves=8,
)


@given(_JSON)
def test_ascii_json_is_the_same_value(value: object) -> None:
    text = to_json(value, ascii_only=True)

    assert text.isascii()
    assert from_json(text) == value
    assert from_json(to_json(value).encode()) == value


@given(_MSGPACK)
def test_a_value_comes_back_from_msgpack(value: object) -> None:
    assert from_msgpack(to_msgpack(value)) == value


@given(st.binary(max_size=40))
def test_any_bytes_are_msgpack_or_an_error_of_python(data: bytes) -> None:
    try:
        from_msgpack(data)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return


def test_a_key_that_is_an_array_is_read_as_a_tuple() -> None:
    assert from_msgpack(to_msgpack({(1, (2, 3)): "x", "y": [4]})) == {(1, (2, 3)): "x", "y": [4]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_does_not_have_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_json(value)
    with pytest.raises(ValueError, match="JSON"):
        from_json(str(value).replace("nan", "NaN").replace("inf", "Infinity"))


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, datetime(2026, 1, 1), object(), {1}])  # noqa: DTZ001 - That is the point.
def test_values_that_msgpack_does_not_have_are_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        to_msgpack(value)


@pytest.mark.parametrize(
    "use",
    [
        lambda: MSGPACK.to_bytes(1, bucket="b", key="k"),
        lambda: MSGPACK.from_bytes(b"\x01", bucket="b", key="k", revision=7),
        lambda: encode_value(1),
        lambda: decode_value(b"\x01", Encoding.MSGPACK),
    ],
    ids=["bucket writes", "bucket reads", "core stream writes", "core stream reads"],
)
def test_missing_msgpack_says_what_to_install(
    use: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    cast("Any", values)._msgpack.cache_clear()
    monkeypatch.setitem(sys.modules, "msgpack", None)

    with pytest.raises(MissingExtraError) as caught:
        use()

    assert caught.value.hint == "pip install msgpack"
