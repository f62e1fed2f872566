"""The record that ends a stream: written and read."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.errors import ControlRecordError
from natsstream.streams.closing.end import EndOfStream

numbers = st.integers(min_value=0, max_value=(1 << 64) - 1)


@given(st.text(st.characters(exclude_categories=["Cs"])), numbers)
def test_record_is_read_as_it_was_written(producer_id: str, number: int) -> None:
    end = EndOfStream(producer_id=producer_id, epoch=number, seq=number)

    assert EndOfStream.from_json(end.to_json()) == end


def test_record_is_that_of_the_convention() -> None:
    end = EndOfStream(producer_id="é 1", epoch=3, seq=17)

    assert end.to_json() == b'{"v":1,"producer":"\\u00e9 1","epoch":3,"seq":17}'


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff", b"1", b"[]", b"{}", b'{"v":2,"producer":"a","epoch":0,"seq":0}',
        b'{"v":1,"producer":7,"epoch":0,"seq":0}', b'{"v":1,"producer":"a","epoch":-1,"seq":0}',
        b'{"v":1,"producer":"a","epoch":0}',
        b'{"v":true,"producer":"a","epoch":0,"seq":0}', b'{"v":1,"producer":"\\ud800","epoch":0}',
    ],
)  # fmt: skip
def test_other_payloads_are_refused(data: bytes) -> None:
    with pytest.raises(ControlRecordError):
        EndOfStream.from_json(data)


@given(st.binary(max_size=60))
def test_reading_any_bytes_raises_nothing_else(data: bytes) -> None:
    with suppress(ControlRecordError):
        EndOfStream.from_json(data)
