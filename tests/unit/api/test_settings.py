"""The parts of a configuration: what they take, refuse, and give back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from natsstream import (
    ConfigChange,
    ConsumerLimits,
    DeletedRange,
    ExternalStream,
    FieldChange,
    Placement,
    Republish,
    SourceConsumer,
    StreamConfig,
    StreamInfo,
    StreamSource,
    SubjectTransform,
)
from natsstream.api.stream_info import as_ranges
from natsstream.errors import ConfigError, StreamNameError, UsageError

FULL: dict[str, object] = {
    "name": "A",
    "placement": {"cluster": "c", "tags": ["t"], "of_2030": 1},
    "mirror": {
        "name": "M",
        "opt_start_seq": 5,
        "filter_subject": "a.>",
        "external": {"api": "$JS.hub.API", "deliver": "", "of_2030": []},
        "consumer": {"name": "c", "deliver_subject": "d"},
        "of_2030": {"deep": None},
    },
    "sources": [
        {
            "name": "S",
            "opt_start_time": "2026-01-02T03:04:05.123456789Z",
            "subject_transforms": [{"src": "a", "dest": "b", "of_2030": True}],
        }
    ],
    "subject_transform": {"src": "a.>", "dest": "b.>"},
    "republish": {"src": "a.>", "dest": "b.>", "headers_only": True},
    "consumer_limits": {"inactive_threshold": 5_000_000_000, "max_ack_pending": 7},
}


def test_parts_go_back_whole_with_what_is_not_known() -> None:
    assert StreamConfig.from_json(FULL).to_json() == FULL


def test_parts_have_types_and_python_names() -> None:
    config = StreamConfig.from_json(FULL)

    assert config.placement == Placement(cluster="c", tags=["t"], extra={"of_2030": 1})
    assert config.consumer_limits == ConsumerLimits(inactive_threshold=5, max_ack_pending=7)
    assert config.republish == Republish(source="a.>", destination="b.>", headers_only=True)
    assert config.subject_transform == SubjectTransform(source="a.>", destination="b.>")
    assert config.mirror is not None
    assert (config.mirror.start_seq, config.mirror.filter) == (5, "a.>")
    assert config.mirror.consumer == SourceConsumer(name="c", deliver_subject="d")
    assert config.sources is not None
    # A datetime has no room for the last three digits.
    assert config.sources[0].start_time == 1_767_323_045_123_456_789


def test_mappings_are_taken_as_parts() -> None:
    config = StreamConfig(name="A", **{k: v for k, v in FULL.items() if k != "name"})  # pyright: ignore[reportArgumentType] - As from JSON.

    assert config == StreamConfig.from_json(FULL)


def test_domain_is_short_for_its_api() -> None:
    assert StreamSource(name="A", domain="hub").to_json() == {
        "name": "A",
        "external": {"api": "$JS.hub.API"},
    }


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"retention": "work"}, "retention of stream A"),
        ({"storage": 5}, "storage of stream A"),
        ({"subjects": [1]}, r"subjects\[0\] is 1 \(of type int\)"),
        ({"subjects": 1}, "subjects is 1"),
        ({"replicas": "3"}, "replicas of stream A is '3'"),
        ({"replicas": True}, "replicas of stream A"),
        ({"max_msgs": 1.5}, "max_msgs of stream A"),
        ({"max_bytes": -2}, "max_bytes of stream A"),
        ({"sealed": 1}, "sealed of stream A"),
        ({"max_age": "1h"}, "max_age of stream A"),
        ({"max_age": -1}, "max_age of stream A"),
        ({"metadata": {"a": 1}}, "metadata of stream A, key 'a'"),
        ({"metadata": ["a"]}, "metadata of stream A"),
        ({"extra": 5}, "extra of stream A"),
        ({"description": b"x"}, "description of stream A"),
        ({"placement": 5}, "placement of stream A"),
        ({"placement": {"tags": "x"}}, "placement of stream A: the field tags"),
        ({"mirror": {"filter_subject": "x"}}, "name of a stream source"),
        ({"sources": StreamSource(name="S")}, "sources of stream A"),
        ({"sources": "S"}, r"give a list: \[StreamSource\(name='S'\)\]"),
        ({"mirror": 5}, r"give StreamSource\(\.\.\.\), or a mapping"),
        ({"mirror": "S.a"}, "S.a"),
        ({"sources": [5]}, "sources of stream A, number 0"),
        ({"republish": {"src": ">"}}, "republish.destination"),
        ({"republish": {"source": ">"}}, "'source' is 'src' there"),
        ({"republish": {"src": "a", "destination": "b"}}, r"give Republish\(destination=\.\.\.\)"),
        ({"subject_transform": {"source": "a"}}, "'source' is 'src' there"),
        ({"sources": [{"name": "S", "start_seq": 5}]}, "'start_seq' is 'opt_start_seq' there"),
        ({"mirror": {"name": "S", "filter": "a"}}, "'filter' is 'filter_subject' there"),
        ({"subject_transform": {"src": 5}}, "subject_transform of stream A: the field src"),
        ({"consumer_limits": {"max_ack_pending": "5"}}, "max_ack_pending"),
        ({"consumer_limits": {"inactive_threshold": "5"}}, "consumer_limits of stream A"),
    ],
)
def test_wrong_values_are_refused_by_name(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        StreamConfig(name="A", **fields)


def test_name_stands_for_a_source() -> None:
    mirror: dict[str, Any] = {"mirror": "ORDERS"}
    sources: dict[str, Any] = {"sources": ["A", StreamSource(name="B", start_seq=5)]}

    assert StreamConfig(name="M", **mirror).mirror == StreamSource(name="ORDERS")
    assert StreamConfig(name="S", **sources).sources == (
        StreamSource(name="A"),
        StreamSource(name="B", start_seq=5),
    )


def test_misspelt_choice_gets_the_right_one() -> None:
    with pytest.raises(ConfigError) as caught:
        StreamConfig(name="A", retention="work")  # pyright: ignore[reportArgumentType] - What is tested.

    assert "did you mean workqueue?" in caught.value.hint


@pytest.mark.parametrize(
    "fields",
    [
        {"start_seq": 1, "start_time": datetime(2026, 1, 1, tzinfo=UTC)},
        {"start_time": datetime(2026, 1, 1)},  # noqa: DTZ001 - What is tested.
        {"start_time": "2026-01-01"},
        {"filter": "a", "transforms": [SubjectTransform(source="a")]},
        {"domain": "hub", "external": ExternalStream(api="x")},
        {"transforms": SubjectTransform(source="a")},
        {"external": 5},
        {"start_seq": -1},
        {"domain": ""},
    ],
)
def test_source_that_can_not_work_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        StreamSource(name="A", **fields)


def test_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(StreamNameError):
        StreamConfig(name=5)  # pyright: ignore[reportArgumentType] - What is tested.


def test_change_prints_without_fields_too() -> None:
    assert str(ConfigChange("A", "unchanged")) == "A: unchanged"
    assert str(FieldChange("max_msgs", None, 5)) == "max_msgs: - -> 5"
    assert str(FieldChange("placement", None, Placement(cluster="c"))).endswith("{'cluster': 'c'}")


def test_sequences_become_ranges() -> None:
    assert list(as_ranges([3, 4, 5, 9, 11, 12])) == [
        DeletedRange(3, 5),
        DeletedRange(9, 9),
        DeletedRange(11, 12),
    ]
    assert list(as_ranges([])) == []


def test_bare_info_says_nothing_of_servers() -> None:
    info = StreamInfo.from_json(
        {"config": {"name": "A"}, "state": {}, "created": "2026-01-01T00:00:00Z"}
    )

    assert (info.cluster, info.mirror, info.sources, info.alternates) == (None, None, (), ())
    assert (info.domain, info.time_ns, info.state.deleted, info.state.subjects) == (
        "",
        0,
        None,
        None,
    )
