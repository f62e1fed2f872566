"""Unit tests of what a read of the newest messages asks for."""

from __future__ import annotations

from typing import Any

import pytest

from natsstream.api.names import drop_covered
from natsstream.errors import ConfigError, SubjectError
from natsstream.read.latest.wanted import FILTERS_MAX, LatestRequest


@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ({}, "last_per_subject"),
        ({"include_history": True}, "all"),
        ({"updates_only": True}, "new"),
        ({"first_seq": 7}, "all"),
    ],
)
def test_start_becomes_a_deliver_policy(options: dict[str, Any], policy: str) -> None:
    wanted = LatestRequest(
        stream="S", filters=["a.*", "b"], headers_only=True, created_ns=5, **options
    )
    spec = wanted.ordered()

    assert spec.deliver_policy == policy
    assert spec.first_seq == options.get("first_seq")
    assert (spec.stream, spec.filters, spec.headers_only, spec.created_ns) == (
        "S", ("a.*", "b"), True, 5,
    )  # fmt: skip
    assert spec.settles is (policy != "new")
    assert not spec.consistent


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ([], ()),
        (["a", "a"], ("a",)),
        (["a.b", "a.*", "a.>"], ("a.>",)),
        (["a.>", "a.*", "a.b"], ("a.>",)),
        (["a.*", "*.b"], ("a.*", "*.b")),
        (["a", "a.>"], ("a", "a.>")),
        (["x", ">"], (">",)),
        (["*", "a", "a.b"], ("*", "a.b")),
    ],
)
def test_filters_that_another_covers_are_left_out(given: list[str], left: tuple[str, ...]) -> None:
    assert drop_covered(given) == left
    assert LatestRequest(stream="S", filters=given).filters == left


def test_no_filter_is_all() -> None:
    assert LatestRequest(stream="S").ordered().filters == (">",)


def test_newest_may_be_those_that_are_known_for_certain() -> None:
    assert LatestRequest(stream="S", consistent=True).ordered().consistent


def test_as_many_filters_as_the_server_bears_are_taken() -> None:
    many = [f"a.{number}" for number in range(FILTERS_MAX)]

    assert len(LatestRequest(stream="S", filters=many).ordered().filters) == FILTERS_MAX
    with pytest.raises(ConfigError, match="1001 filters"):
        LatestRequest(stream="S", filters=[*many, "b"])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"filters": "a"}, ConfigError),
        ({"filters": ["a b"]}, SubjectError),
        ({"filters": [7]}, SubjectError),
        ({"first_seq": 0}, ConfigError),
        ({"first_seq": True}, ConfigError),
        ({"include_history": 1}, ConfigError),
        ({"updates_only": "no"}, ConfigError),
        ({"headers_only": None}, ConfigError),
        ({"consistent": "no"}, ConfigError),
        ({"created_ns": "5"}, ConfigError),
        ({"created_ns": 0}, ConfigError),
        ({"created_ns": 2**63}, ConfigError),
        ({"include_history": True, "updates_only": True}, ConfigError),
        ({"first_seq": 3, "updates_only": True}, ConfigError),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        LatestRequest(stream="S", **options).ordered()
