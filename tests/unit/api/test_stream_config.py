"""A stream's configuration: nothing that the server sent is lost on its way back."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.change_plan import changed, overlay
from natsstream.api.metadata import user_metadata
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_rules import STREAM_RULES
from natsstream.errors import ConfigError, StreamNameError, SubjectError
from natsstream.units import NS_PER_SECOND

# What nats-server 2.15.1 answers for a stream that was made with a name and subjects.
HELD: dict[str, object] = {
    "name": "ORDERS",
    "subjects": ["orders.>"],
    "retention": "limits",
    "max_consumers": -1,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 0,
    "max_msgs_per_subject": -1,
    "max_msg_size": -1,
    "discard": "old",
    "storage": "file",
    "num_replicas": 1,
    "duplicate_window": 120_000_000_000,
    "compression": "none",
    "allow_direct": True,
    "mirror_direct": False,
    "sealed": False,
    "deny_delete": False,
    "deny_purge": False,
    "allow_rollup_hdrs": False,
    "consumer_limits": {},
    "allow_msg_ttl": False,
    "metadata": {"_nats.level": "2", "_nats.req.level": "0", "_nats.ver": "2.15.1", "team": "a"},
    "a_field_of_2030": {"deep": [1, None]},
}

KNOWN = {field.name for field in fields(StreamConfig)} | {"num_replicas"}

OWN = {"_nats.level": "2", "_nats.req.level": "0", "_nats.ver": "2.15.1"}


def changes(config: StreamConfig, held: dict[str, Any]) -> dict[str, object]:
    """Return the server's fields that an update to a configuration would change."""
    return overlay(config, held, changed(STREAM_RULES, config, held))[1]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def test_config_of_the_server_goes_back_whole() -> None:
    assert StreamConfig.from_json(HELD).to_json() == HELD


new_names = st.text(max_size=12).filter(lambda name: name not in KNOWN)


@given(st.dictionaries(new_names, json_values, max_size=4))
def test_unknown_fields_go_back_as_they_came(unknown: dict[str, object]) -> None:
    body = {**unknown, "name": "ORDERS", "max_msgs": 5}

    config = StreamConfig.from_json({**body, "extra": "a field of this name"})

    assert config.to_json() == {**body, "extra": "a field of this name"}


@pytest.mark.parametrize(
    ("name", "subjects"), [("a\x01b", ["a"]), ("A", ["a\x01b"]), ("A", ["a\x7f"])]
)
def test_what_a_server_has_is_taken_even_if_we_would_not_make_it(
    name: str, subjects: list[str]
) -> None:
    config = StreamConfig.from_json({"name": name, "subjects": subjects, "num_replicas": 7})

    assert (config.name, config.subjects, config.replicas) == (name, tuple(subjects), 7)


def test_null_of_a_server_is_the_same_as_no_field() -> None:
    assert StreamConfig.from_json({"name": "A", "max_age": None, "sources": None}) == StreamConfig(
        name="A"
    )


def test_python_names_become_the_names_of_the_server() -> None:
    config = StreamConfig(name="A", replicas=3, max_age=timedelta(minutes=1), duplicate_window=0.5)

    assert config.to_json() == {
        "name": "A",
        "num_replicas": 3,
        "max_age": 60 * NS_PER_SECOND,
        "duplicate_window": 500_000_000,
    }


def test_none_is_left_out_and_zero_and_false_are_sent() -> None:
    config = StreamConfig(name="A", max_msgs=-1, max_age=0, allow_direct=False, subjects=[])

    assert config.to_json() == {
        "name": "A",
        "max_msgs": -1,
        "max_age": 0,
        "allow_direct": False,
        "subjects": [],
    }


def test_durations_of_the_server_become_seconds() -> None:
    config = StreamConfig.from_json({"name": "A", "max_age": 90 * NS_PER_SECOND})

    assert config.max_age == 90.0


@given(st.integers(0, 2**63 - 1))
def test_duration_that_was_not_changed_is_no_change(max_age_ns: int) -> None:
    held = {"name": "A", "max_age": max_age_ns}

    assert changes(StreamConfig.from_json(held), held) == {}


def test_duration_that_was_changed_by_a_nanosecond_is_a_change() -> None:
    held = {"name": "A", "max_age": NS_PER_SECOND}
    config = StreamConfig(name="A", max_age=1.000000001)

    assert changes(config, held) == {"max_age": NS_PER_SECOND + 1}


def test_own_config_has_no_changes_and_only_set_fields_count() -> None:
    assert changes(StreamConfig.from_json(HELD), HELD) == {}
    assert changes(StreamConfig(name="ORDERS"), HELD) == {}
    assert changes(StreamConfig(name="ORDERS", max_msgs=9, storage="file"), HELD) == {"max_msgs": 9}


def test_extra_fields_count_as_changes() -> None:
    config = StreamConfig(name="ORDERS", extra={"a_field_of_2030": {"deep": [2]}})

    assert changes(config, HELD) == {"a_field_of_2030": {"deep": [2]}}


def test_known_field_in_extra_is_sent_as_given_unless_its_keyword_is_there() -> None:
    extra: dict[str, object] = {"max_msgs": 5, "mirror": {}}

    assert changes(StreamConfig(name="ORDERS", extra=extra), HELD) == {"max_msgs": 5}
    assert changes(StreamConfig(name="ORDERS", extra=extra), {**HELD, "mirror": {"name": "A"}}) == {
        "max_msgs": 5,
        "mirror": None,
    }
    assert changes(StreamConfig(name="ORDERS", max_msgs=7, extra=extra), HELD) == {"max_msgs": 7}


@pytest.mark.parametrize("metadata", [None, 5, "x", {"a": 1}])
def test_metadata_in_extra_are_texts(metadata: object) -> None:
    with pytest.raises(ConfigError, match="metadata in extra"):
        StreamConfig(name="A", extra={"metadata": metadata})


@pytest.mark.parametrize("metadata", [{"team": "a"}, {"team": "a", "_nats.level": "9"}])
def test_metadata_of_the_server_is_no_change(metadata: dict[str, str]) -> None:
    assert changes(StreamConfig(name="ORDERS", metadata=metadata), HELD) == {}


@pytest.mark.parametrize("metadata", [{"team": "b"}, {}, {"team": "a", "x": "y"}])
def test_metadata_of_the_user_is_compared(metadata: dict[str, str]) -> None:
    config = StreamConfig(name="ORDERS", metadata=metadata)

    assert changes(config, HELD) == {"metadata": {**OWN, **metadata}}


def test_metadata_that_the_server_does_not_have_yet_is_a_change() -> None:
    assert changes(StreamConfig(name="A", metadata={"a": "b"}), {"name": "A"}) == {
        "metadata": {"a": "b"}
    }


def test_a_tuple_equals_the_list_of_the_server() -> None:
    config = StreamConfig(name="ORDERS", subjects=("orders.>",))

    assert changes(config, HELD) == {}


def test_a_field_that_is_off_on_both_sides_is_no_change() -> None:
    config = StreamConfig(name="A", sealed=False, metadata={}, sources=[], max_age=0)

    assert changes(config, {"name": "A"}) == {}


def test_user_metadata_has_no_keys_of_the_server() -> None:
    assert user_metadata({"_nats.ver": "2", "a": "b", "nats": "c"}) == {"a": "b", "nats": "c"}


@pytest.mark.parametrize("replicas", [0, 6, -1])
def test_replicas_are_one_to_five(replicas: int) -> None:
    with pytest.raises(ConfigError, match="replicas"):
        StreamConfig(name="A", replicas=replicas)


def test_subjects_as_one_text_are_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match="one string") as caught:
        StreamConfig(name="A", subjects=cast("Any", "orders.>"))

    assert "subjects=['orders.>']" in caught.value.hint


def test_illegal_name_and_subject_are_refused() -> None:
    with pytest.raises(StreamNameError):
        StreamConfig(name="a.b")
    with pytest.raises(SubjectError):
        StreamConfig(name="A", subjects=["a b"])


@pytest.mark.parametrize("field", ["max_age", "duplicate_window", "subject_delete_marker_ttl"])
def test_negative_durations_are_refused_when_the_config_is_made(field: str) -> None:
    with pytest.raises(ConfigError, match="negative"):
        StreamConfig(name="A", **cast("Any", {field: -1}))


@pytest.mark.parametrize("field", ["max_age", "duplicate_window", "subject_delete_marker_ttl"])
@pytest.mark.parametrize("duration", [1e30, (2**63 + 2**11) / NS_PER_SECOND, timedelta.max])
def test_durations_longer_than_a_server_can_count_are_refused(field: str, duration: object) -> None:
    with pytest.raises(ConfigError, match=f"{field}.*292 years") as caught:
        StreamConfig(name="A", **cast("Any", {field: duration}))
    assert "give seconds" in caught.value.hint


@pytest.mark.parametrize("fields", [{"description": "\ud800"}, {"metadata": {"a": "\ud800"}}])
def test_text_that_utf8_can_not_write_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(fields))):
        StreamConfig(name="A", **fields)


def test_fields_by_the_servers_names_replace_those_that_there_are() -> None:
    config = StreamConfig(name="A", replicas=3)

    assert config.with_json({}) is config
    assert config.with_json({"num_replicas": 1, "novel": 5}).to_json() == {
        "name": "A", "num_replicas": 1, "novel": 5,
    }  # fmt: skip
