from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark_natsstream.offsets import Offset, OffsetError, parse_offset, parse_offset_text

CREATED_NS = 1_795_237_200_123_456_789
TEXT = '{"v":1,"streams":{"ORDERS":{"next":124,"created":"2026-11-21T05:00:00.123456789Z"}}}'

offsets = st.builds(
    Offset,
    stream=st.text(min_size=1, max_size=20),
    next_seq=st.integers(1, 2**63),
    created_ns=st.integers(0, 4 * 10**18),
)


def changed(old: str, new: str) -> object:
    """Return the offset of TEXT, as JSON gives it, with one piece of text replaced."""
    assert old in TEXT
    return json.loads(TEXT.replace(old, new))


def test_offset_has_the_documented_text() -> None:
    assert Offset(stream="ORDERS", next_seq=124, created_ns=CREATED_NS).to_text() == TEXT


@given(offsets)
def test_offset_comes_back_from_its_text_as_it_was(offset: Offset) -> None:
    assert parse_offset_text(offset.to_text(), stream=offset.stream) == offset


@given(offsets)
def test_offset_read_from_json_has_the_same_text_again(offset: Offset) -> None:
    """Spark compares texts: a restart must not make another text of the same place."""
    spark_keeps = json.dumps(offset.to_json())

    again = parse_offset_text(spark_keeps, stream=offset.stream)

    assert json.dumps(again.to_json()) == spark_keeps


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (changed('"v":1', '"v":2'), "newer version, 2"),
        (changed('"v":1', '"v":0'), "unknown version, 0"),
        (changed('"v":1,', ""), "no version"),
        (changed('"v":1', '"v":true'), "no version"),
        (changed('"v":1', '"v":"1"'), "no version"),
        (changed("streams", "kv"), "of no stream"),
        (changed('"streams":{', '"streams":[],"was":{'), "of no stream"),
        (changed('"streams":{', '"streams":{"OTHER":{},'), "of ORDERS, OTHER"),
        (changed("124", "0"), '"next"'),
        (changed("124", '"124"'), '"next"'),
        (changed("124", "1.5"), '"next"'),
        (changed("created", "made"), '"created"'),
        (changed('"2026-11-21T05:00:00.123456789Z"', "5"), '"created"'),
        (changed("2026-11-21T05:00:00.123456789Z", "today"), "RFC 3339"),
        ({"offset": 17}, "no version"),
        (17, "no version"),
        (None, "no version"),
    ],
)
def test_offset_that_is_foreign_or_newer_is_refused_with_the_reason(
    found: object, why: str
) -> None:
    with pytest.raises(OffsetError) as refused:
        parse_offset(found, stream="ORDERS")

    assert why in refused.value.message
    assert refused.value.hint


def test_offset_of_another_stream_is_refused() -> None:
    with pytest.raises(OffsetError, match="of ORDERS, but the option is stream=BILLS"):
        parse_offset_text(TEXT, stream="BILLS")


def test_offset_text_that_is_not_json_is_refused() -> None:
    with pytest.raises(OffsetError, match="not JSON"):
        parse_offset_text("0", stream="ORDERS") if False else parse_offset_text(
            "{", stream="ORDERS"
        )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_offset_parser_refuses_any_other_json_with_its_own_error(found: object) -> None:
    with pytest.raises(OffsetError):
        parse_offset(found, stream="ORDERS")
