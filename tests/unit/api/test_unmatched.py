"""Filters that can match no message: those outside of all subjects, where that is certain."""

from __future__ import annotations

from typing import Any

import pytest

from natsstream import StreamConfig, StreamSource, SubjectTransform
from natsstream.api.unmatched import unmatched


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((), ()),
        (("orders.new",), ()),
        ((">",), ()),
        (("*.new",), ()),
        (("order.new",), ("order.new",)),
        (("orders",), ("orders",)),
        (("orders.*", "bills.>"), ("bills.>",)),
    ],
)
def test_filter_outside_of_all_subjects_matches_nothing(
    filters: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert unmatched(StreamConfig(name="S", subjects=["orders.>", "x"]), filters) == expected


def test_stream_without_subjects_has_its_name() -> None:
    assert unmatched(StreamConfig(name="S"), ("S", "s")) == ("s",)


@pytest.mark.parametrize(
    "fields",
    [
        {"mirror": StreamSource(name="O")},
        {"subjects": ["a"], "sources": [StreamSource(name="O")]},
        {"subjects": ["a"], "subject_transform": SubjectTransform(source="a", destination="b")},
    ],
)
def test_stream_that_copies_or_renames_may_have_any_subject(fields: dict[str, Any]) -> None:
    assert unmatched(StreamConfig(name="S", **fields), ("b",)) == ()
