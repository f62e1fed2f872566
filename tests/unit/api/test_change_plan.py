"""What a configuration changes of a consumer that exists, and what is sent for it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream import ConsumerConfig
from natsstream.api.change_plan import changed, created, overlay
from natsstream.api.consumer_rules import CONSUMER_RULES

HELD: dict[str, Any] = {
    "name": "x",
    "durable_name": "x",
    "deliver_policy": "all",
    "ack_policy": "explicit",
    "ack_wait": 30_000_000_000,
    "max_deliver": -1,
    "filter_subject": "a.b",
    "replay_policy": "instant",
    "sample_freq": "30",
    "max_ack_pending": 1000,
    "num_replicas": 0,
    "metadata": {"_nats.level": "5", "team": "x"},
    "younger": {"deep": 1},
}


def send(**fields: Any) -> dict[str, object]:
    """Return what would be sent for these fields, beside what the server has."""
    wanted = ConsumerConfig(name="x", **fields)
    body, _ = overlay(wanted, HELD, changed(CONSUMER_RULES, wanted, HELD))
    return {
        name: body.get(name)
        for name in body.keys() | HELD.keys()
        if body.get(name) != HELD.get(name)
    }


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"ack_wait": 30},
        {"filters": ["a.b"]},
        {"sample_freq": 30},
        {"durable": True},
        {"metadata": {"team": "x"}},
        {"metadata": {"team": "x", "_nats.level": "1"}},
        {"headers_only": False},
        {"priority_policy": "none"},
        {"backoff": []},
        {"inactive_threshold": 0},
        {"deliver_policy": "all"},
        {"extra": {"younger": {"deep": 1}}},
    ],
)
def test_what_the_server_has_is_no_change(fields: dict[str, Any]) -> None:
    change = changed(CONSUMER_RULES, ConsumerConfig(name="x", **fields), HELD)

    assert (change.action, change.fields) == ("unchanged", ())


def test_only_what_differs_is_changed_and_all_else_is_sent_back() -> None:
    assert send(ack_wait=5, max_ack_pending=1000) == {"ack_wait": 5_000_000_000}
    assert send(extra={"younger": 2}) == {"younger": 2}


def test_filters_move_between_their_two_fields() -> None:
    assert send(filters=["a", "b"]) == {"filter_subject": None, "filter_subjects": ["a", "b"]}
    assert send(filters=["c"]) == {"filter_subject": "c"}
    assert send(filters=[]) == {"filter_subject": None}


def test_metadata_of_the_server_stays() -> None:
    assert send(metadata={"team": "y"}) == {"metadata": {"_nats.level": "5", "team": "y"}}


def test_order_of_filters_is_no_change() -> None:
    held = {**HELD, "filter_subject": "", "filter_subjects": ["a", "b"]}

    assert not changed(CONSUMER_RULES, ConsumerConfig(name="x", filters=["b", "a"]), held)


def test_changes_that_servers_refuse_are_marked() -> None:
    wanted = ConsumerConfig(name="x", ack_wait=1, replay_policy="original", start_seq=4)

    change = changed(CONSUMER_RULES, wanted, HELD)

    assert [each.name for each in change.refused] == [
        "deliver_policy",
        "start_seq",
        "replay_policy",
    ]
    assert "ack_wait: 30.0 -> 1" in str(change.fields[2])


def test_pull_consumer_does_not_become_a_push_consumer() -> None:
    (field,) = changed(CONSUMER_RULES, ConsumerConfig(name="x", deliver_subject="d"), HELD).fields

    assert "push consumer" in field.refusal


def test_time_that_was_cut_to_microseconds_is_no_change() -> None:
    held = {**HELD, "pause_until": "2100-01-01T00:00:00.123456789Z"}
    moment = datetime(2100, 1, 1, microsecond=123456, tzinfo=UTC)

    assert not changed(CONSUMER_RULES, ConsumerConfig(name="x", pause_until=moment), held)


@given(st.integers(min_value=1, max_value=1 << 53))
def test_duration_that_came_from_the_server_is_no_change(nanoseconds: int) -> None:
    held = {**HELD, "ack_wait": nanoseconds, "backoff": [nanoseconds]}
    config = ConsumerConfig.from_json(held)

    assert not changed(CONSUMER_RULES, config, held)


def test_what_is_created_lists_what_was_given() -> None:
    change = created(ConsumerConfig(name="x", ack_wait=5, extra={"younger": 1}))

    assert (change.action, [each.name for each in change.fields]) == (
        "created",
        ["ack_wait", "younger"],
    )
