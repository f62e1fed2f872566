"""The logical size of a message."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from natsstream.conat.headers import TOMBSTONE_HEADERS
from natsstream.conat.sizes import logical_size, utf16_units
from natsstream.conat.values import encode_value


@pytest.mark.parametrize(
    ("headers", "value", "key", "size"),
    [
        (None, 5, "a", 2),
        (TOMBSTONE_HEADERS, None, "a", 23),
        (None, "x" * 50, "a", 53),
        (None, 5, None, 1),
        (None, 5, "", 1),
        ({}, 5, None, 3),
        ({"a": "é"}, 5, None, 10),
        ({"a": "\U0001f600"}, 5, None, 11),
        (None, 5, "\U0001f600", 3),
    ],
)
def test_the_logical_size_is_conats(
    headers: Mapping[str, object] | None, value: object, key: str | None, size: int
) -> None:
    assert logical_size(headers, len(encode_value(value)), key) == size


@pytest.mark.parametrize(("text", "units"), [("", 0), ("ab", 2), ("é", 1), ("\U0001f600\ud800", 3)])
def test_text_is_counted_as_javascript_counts_it(text: str, units: int) -> None:
    assert utf16_units(text) == units
