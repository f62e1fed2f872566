"""Which server has what: versions and levels, honest and hostile, and what a server took."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.features import (
    ATOMIC_BATCH,
    CONSUMER_FIELDS,
    FAST_BATCH,
    GET_BY_TIME,
    MANY_FILTERS,
    STREAM_FIELDS,
    Feature,
    api_level,
    changed_fields,
    check_taken,
    dropped_fields,
    has_feature,
    is_too_old,
    parse_version,
    require,
    used_features,
    without_unsaid,
)
from natsstream.errors import InvalidConfigError, UnsupportedServerError


class Connected:
    """A connection to a server that says this version."""

    url = "nats://127.0.0.1:4222"

    def __init__(self, version: object) -> None:
        self.server_info = {"version": version}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2.15.1", (2, 15, 1)),
        ("v2.10.26", (2, 10, 26)),
        ("3.0.0", (3, 0, 0)),
        ("2.9", (2, 9, 0)),
        ("2.15.0-beta.1", (2, 15, 0)),
        ("2.14.0-RC.2+build.7", (2, 14, 0)),
        ("2.100.3", (2, 100, 3)),
        ("", None),
        ("synadia", None),
        ("2", None),
        ("2.x", None),
        ("2.12.3.4", None),
        ("-2.12.3", None),
        ("٢.١٢.٣", None),
        ("9" * 5_000 + ".1.1", None),
        (None, None),
        (2.15, None),
        (["2.15.1"], None),
    ],
)
def test_version_is_read_or_is_none(text: object, numbers: tuple[int, int, int] | None) -> None:
    assert parse_version(text) == numbers


@given(st.one_of(st.text(), st.integers(), st.none(), st.binary()))
def test_no_version_breaks_the_comparison(version: object) -> None:
    assert has_feature(FAST_BATCH, version=version, level=None) in (True, False)
    assert is_too_old(version) in (True, False)


@pytest.mark.finding(28)
@given(st.tuples(*[st.integers(0, 99_999)] * 3))
def test_versions_compare_as_numbers(numbers: tuple[int, int, int]) -> None:
    version = ".".join(map(str, numbers))

    assert has_feature(ATOMIC_BATCH, version=version, level=None) == (numbers >= (2, 12, 0))
    assert is_too_old(version) == (numbers < (2, 10, 0))


@pytest.mark.parametrize(
    ("level", "found"), [(0, False), (1, False), (2, True), (3, True), (5, True), (99, True)]
)
@pytest.mark.parametrize("version", ["2.10.1", "2.15.1", "3.0.0", "odd", None])
def test_level_counts_more_than_the_version(
    version: str | None,
    level: int,
    found: bool,  # noqa: FBT001 - a parameter of the table.
) -> None:
    assert has_feature(ATOMIC_BATCH, version=version, level=level) is found


def test_feature_from_before_levels_goes_by_version() -> None:
    assert has_feature(MANY_FILTERS, version="2.10.0", level=0)
    assert not has_feature(MANY_FILTERS, version="2.9.25", level=0)
    assert has_feature(MANY_FILTERS, version="odd", level=1)


@pytest.mark.parametrize(
    ("api", "level"),
    [
        ({"level": 5}, 5),
        ({"level": 99}, 99),
        ({}, 0),
        ({"level": -1}, None),
        ({"level": "5"}, None),
        ({"level": True}, None),
        ({"level": 2.5}, None),
        ({"level": None}, None),
        (None, None),
        ([], None),
    ],
)
def test_level_is_a_number_or_unknown(api: object, level: int | None) -> None:
    assert api_level({"api": api}) == level


def test_error_names_what_is_lacking_and_who_lacks_it() -> None:
    with pytest.raises(UnsupportedServerError) as caught:
        require(Connected("2.10.26"), GET_BY_TIME, FAST_BATCH, MANY_FILTERS)  # pyright: ignore[reportArgumentType]

    error = caught.value
    assert (error.feature, error.needs, error.version) == (FAST_BATCH.name, "2.14", "2.10.26")
    assert GET_BY_TIME.name in error.message
    assert MANY_FILTERS.name not in error.message
    assert "2.10.26" in error.message
    assert not error.retryable


def test_new_server_before_an_old_jetstream_is_not_blamed() -> None:
    with pytest.raises(UnsupportedServerError, match=r"behind nats\S+ has API level 1") as caught:
        require(Connected("2.15.1"), ATOMIC_BATCH, level=1)  # pyright: ignore[reportArgumentType]

    assert caught.value.version == ""


@pytest.mark.parametrize("version", ["", None, "odd", "x" * 10_000])
def test_unknown_version_has_no_young_feature(version: object) -> None:
    with pytest.raises(UnsupportedServerError, match="lacks atomic batches") as caught:
        require(Connected(version), ATOMIC_BATCH)  # pyright: ignore[reportArgumentType]

    assert len(str(caught.value)) < 1_000
    require(Connected(version), ATOMIC_BATCH, level=2)  # pyright: ignore[reportArgumentType]


def test_config_asks_for_what_it_sets() -> None:
    config = {
        "allow_atomic": True,
        "allow_batched": False,
        "persist_mode": "default",
        "compression": "none",
        "sources": [{"name": "a"}, {"name": "b", "consumer": {"name": "c"}}],
        "mirror": None,
        "placement": {"cluster": "x", "preferred": ""},
    }

    assert used_features(STREAM_FIELDS, config) == [
        STREAM_FIELDS["allow_atomic"],
        STREAM_FIELDS["sources.consumer"],
    ]


def test_value_can_be_younger_than_its_field() -> None:
    old = used_features(CONSUMER_FIELDS, {"priority_policy": "overflow", "ack_policy": "none"})
    new = used_features(CONSUMER_FIELDS, {"priority_policy": "prioritized"})

    assert [feature.needs for feature in old] == [(2, 11)]
    assert [feature.needs for feature in new] == [(2, 11), (2, 12)]


@pytest.mark.parametrize("odd", ["text", 7, [1, 2], ["x"], [[]], {"consumer": 7}, True])
def test_odd_shapes_of_a_config_do_not_break_the_rules(odd: object) -> None:
    config = {"sources": odd, "mirror": odd}

    assert isinstance(used_features(STREAM_FIELDS, config), list)
    assert dropped_fields(config, {"sources": 1, "mirror": None}) == []
    assert changed_fields(config, {}) == []


def test_young_field_that_says_nothing_is_left_out() -> None:
    config = {"allow_batched": False, "persist_mode": "default", "max_age": 0, "allow_atomic": True}

    assert without_unsaid(STREAM_FIELDS, config) == {"max_age": 0, "allow_atomic": True}


def test_dropped_fields_are_found_at_every_depth() -> None:
    sent = {
        "name": "S",
        "max_age": 0,
        "allow_atomic": True,
        "allow_batched": False,
        "metadata": {"_nats.level": "5", "a": "1"},
        "sources": [{"name": "a"}, {"name": "b", "consumer": {"name": "c"}}],
    }
    taken = {"name": "S", "metadata": {"a": "1"}, "sources": [{"name": "a"}, {"name": "b"}]}

    assert dropped_fields(sent, taken) == ["allow_atomic", "sources.consumer"]


def test_unlimited_is_written_in_two_ways() -> None:
    assert changed_fields({"max_msgs": -1, "max_bytes": -5}, {"max_msgs": 0, "max_bytes": -1}) == []
    assert changed_fields({"max_msgs": 5, "no": 1}, {"max_msgs": 6}) == ["max_msgs"]


def test_dropped_field_is_told_with_its_version() -> None:
    sent = {"name": "S", "allow_batched": True, "new": 1}

    with pytest.raises(UnsupportedServerError, match="stream S is there now") as caught:
        check_taken("stream S", STREAM_FIELDS, given=sent, sent=sent, taken={"name": "S"})

    assert caught.value.needs == "2.14"
    assert "new" in caught.value.message


def test_field_that_became_something_else_is_told() -> None:
    sent = {"name": "S", "max_age": 60}

    with pytest.raises(InvalidConfigError, match="max_age 0 for 60"):
        check_taken("stream S", STREAM_FIELDS, given=sent, sent=sent, taken={**sent, "max_age": 0})


def test_every_young_feature_has_a_level() -> None:
    features = [*STREAM_FIELDS.values(), *CONSUMER_FIELDS.values(), Feature("x", (2, 15))]

    assert all((feature.level > 0) == (feature.needs > (2, 10)) for feature in features)


def test_what_several_parts_of_a_call_need_is_named_once() -> None:
    with pytest.raises(UnsupportedServerError) as told:
        require(Connected("2.10.1"), ATOMIC_BATCH, FAST_BATCH, ATOMIC_BATCH)  # pyright: ignore[reportArgumentType]

    assert told.value.message.count(ATOMIC_BATCH.name) == 1
