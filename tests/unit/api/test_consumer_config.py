"""A consumer's configuration: its way to JSON and back, and what it refuses by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream import ConsumerConfig
from natsstream.api.settings.setting import field_kinds, json_names
from natsstream.errors import ConfigError, ConsumerNameError, SubjectError

# One value of each field, together a configuration that a server could have sent.
WHOLE: dict[str, Any] = {
    "name": "billing",
    "durable": True,
    "description": "bills",
    "filters": ("orders.new", "orders.paid"),
    "deliver_policy": "by_start_sequence",
    "start_seq": 7,
    "ack_policy": "explicit",
    "ack_wait": 1.5,
    "max_deliver": 3,
    "backoff": (1.5, 5.0),
    "replay_policy": "original",
    "sample_freq": "30%",
    "headers_only": True,
    "max_ack_pending": 10,
    "inactive_threshold": 60.0,
    "replicas": 1,
    "memory_storage": True,
    "pause_until": datetime(2100, 1, 1, tzinfo=UTC),
    "metadata": {"team": "x"},
    "max_waiting": 5,
    "max_batch": 6,
    "max_expires": 2.0,
    "max_bytes": 7,
    "priority_groups": ("jobs",),
    "priority_policy": "pinned_client",
    "priority_timeout": 9.0,
}
PUSH: dict[str, Any] = {
    "deliver_subject": "d.x",
    "deliver_group": "g",
    "flow_control": True,
    "idle_heartbeat": 1.0,
    "rate_limit": 8,
    "start_time": datetime(2026, 1, 1, tzinfo=UTC),
}


def test_every_field_goes_to_json_and_comes_back() -> None:
    config = ConsumerConfig(**WHOLE)

    assert WHOLE.keys() | PUSH.keys() == set(field_kinds(ConsumerConfig))
    assert ConsumerConfig.from_json(config.to_json()) == config
    push = ConsumerConfig(name="p", durable=True, deliver_policy="by_start_time", **PUSH)
    assert ConsumerConfig.from_json(push.to_json()) == push


def test_fields_that_we_do_not_know_are_kept() -> None:
    body = {"name": "x", "direct": True, "younger": {"deep": [1]}}

    config = ConsumerConfig.from_json(body)

    assert config.extra == {"direct": True, "younger": {"deep": [1]}}
    assert config.to_json() == body
    assert not config.extra.keys() & json_names(ConsumerConfig).keys()


def test_a_configuration_that_a_server_sent_can_be_changed() -> None:
    held = ConsumerConfig.from_json(
        {"name": "x", "durable_name": "x", "ack_wait": 1_000_000_000, "backoff": [1_000_000_000]}
    )

    assert replace(held, max_deliver=5).to_json() == {**held.to_json(), "max_deliver": 5}


def test_single_filter_and_many_have_a_field_each() -> None:
    assert ConsumerConfig(filters=["a"]).to_json() == {"filter_subject": "a"}
    assert ConsumerConfig(filters=["a", "b"]).to_json() == {"filter_subjects": ["a", "b"]}
    assert ConsumerConfig(filters=[]).to_json() == {}
    assert ConsumerConfig.from_json({"filter_subject": "a"}).filters == ("a",)
    assert ConsumerConfig.from_json({"filter_subjects": ["a"]}).filters == ("a",)
    assert ConsumerConfig.from_json({}).filters is None


def test_what_has_a_name_is_durable_unless_it_says_otherwise() -> None:
    assert ConsumerConfig(name="x").to_json() == {"name": "x", "durable_name": "x"}
    assert ConsumerConfig(name="x", durable=False).to_json() == {"name": "x"}
    assert ConsumerConfig().to_json() == {}
    assert ConsumerConfig.from_json({"name": "x"}).is_durable is False
    assert ConsumerConfig.from_json({"name": "x", "durable_name": "x"}).is_durable


def test_policy_follows_from_a_start() -> None:
    assert ConsumerConfig(start_seq=3).to_json()["deliver_policy"] == "by_start_sequence"
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert ConsumerConfig(start_time=moment).to_json() == {
        "opt_start_time": "2026-01-01T00:00:00Z",
        "deliver_policy": "by_start_time",
    }


@given(st.integers(min_value=10**17, max_value=4 * 10**18))
def test_times_are_written_as_go_writes_them(time_ns: int) -> None:
    text = cast("str", ConsumerConfig(start_time=time_ns).to_json()["opt_start_time"])

    assert text.endswith("Z")
    assert "." not in text or not text.endswith("0Z")


def test_durations_are_seconds_or_timedeltas() -> None:
    config = ConsumerConfig(ack_wait=timedelta(minutes=1), max_expires=0.25, backoff=None)

    assert config.to_json() == {"ack_wait": 60_000_000_000, "max_expires": 250_000_000}


@pytest.mark.parametrize("name", ["", "a.b", "a b", "a*", "a>", "a/b", "a\\b", "x" * 256, "a\n"])
def test_name_that_no_server_takes_is_refused(name: str) -> None:
    with pytest.raises(ConsumerNameError):
        ConsumerConfig(name=name)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"durable": True}, "needs a name"),
        ({"name": "x", "durable": "x"}, "durable"),
        ({"name": 5}, "name"),
        ({"ack_policy": "explict"}, "ack_policy"),
        ({"deliver_policy": "newest"}, "deliver_policy"),
        ({"deliver_policy": ["new"]}, "deliver_policy"),
        ({"replay_policy": "slow"}, "replay_policy"),
        ({"priority_policy": "pinned"}, "priority_policy"),
        ({"ack_wait": "30"}, "ack_wait"),
        ({"ack_wait": True}, "ack_wait"),
        ({"ack_wait": -1}, "ack_wait"),
        ({"ack_wait": 0}, "default"),
        ({"ack_wait": float("nan")}, "ack_wait"),
        ({"idle_heartbeat": []}, "idle_heartbeat"),
        ({"backoff": 5}, "backoff"),
        ({"backoff": ["5"]}, r"backoff\[0\]"),
        ({"backoff": [1, -5]}, r"backoff\[1\]"),
        ({"backoff": [1], "ack_wait": 2}, "exclude"),
        ({"max_deliver": 1.5}, "max_deliver"),
        ({"max_deliver": -2}, "max_deliver"),
        ({"max_ack_pending": 0}, "default"),
        ({"max_waiting": 0}, "max_waiting"),
        ({"replicas": 6}, "replicas"),
        ({"replicas": "3"}, "replicas"),
        ({"headers_only": 1}, "headers_only"),
        ({"filters": "a"}, "one string"),
        ({"filters": ["a.*", "a.b"]}, "overlap"),
        ({"filters": ["a", "a"]}, "overlap"),
        ({"sample_freq": "x"}, "sample_freq"),
        ({"sample_freq": 130}, "sample_freq"),
        ({"sample_freq": True}, "sample_freq"),
        ({"metadata": {"a": 1}}, "metadata"),
        ({"metadata": [1]}, "metadata"),
        ({"start_seq": 0}, "start_seq"),
        ({"start_time": datetime(2026, 1, 1)}, "start_time"),  # noqa: DTZ001 - without a zone.
        ({"start_time": "2026"}, "start_time"),
        ({"start_seq": 1, "start_time": 10**18}, "exclude"),
        ({"start_seq": 1, "deliver_policy": "new"}, "deliver_policy"),
        ({"deliver_policy": "by_start_sequence"}, "start_seq"),
        ({"priority_groups": ["a b"]}, "priority group"),
        ({"priority_groups": ["x" * 17]}, "priority group"),
        ({"priority_groups": "jobs"}, "priority_groups"),
        # What Go's types cannot hold: the server would say that it cannot read the JSON.
        ({"start_seq": 2**64}, "start_seq"),
        ({"max_deliver": 2**63}, "max_deliver"),
        ({"ack_wait": 1e10}, "ack_wait"),
        ({"max_expires": timedelta.max}, "max_expires"),
        ({"pause_until": 2**70}, "pause_until"),
        # Rounded to 0, which is the server's default.
        ({"ack_wait": 1e-12}, "ack_wait"),
        ({"backoff": [1e-12]}, r"backoff\[0\]"),
        ({"description": "\ud800"}, "description"),
        ({"metadata": {"\ud800": "x"}}, "metadata"),
        ({"extra": 5}, "extra"),
        ({"extra": {1: 2}}, "extra"),
        ({"extra": {"ack_wait": 5}}, "ack_wait"),
        ({"extra": {"younger": object()}}, "younger"),
        ({"extra": {"younger": float("nan")}}, "younger"),
    ],
)
def test_field_without_a_legal_value_is_refused_by_name(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ConsumerConfig(**fields)


def test_several_values_are_kept_as_they_were_given() -> None:
    """An iterator is read once, and a list may be changed later."""
    groups, waits = ["g"], [1.0, 2.0]
    config = ConsumerConfig(filters=cast("Any", iter(["a"])), priority_groups=groups, backoff=waits)

    groups.append("h")
    waits.clear()

    assert (config.filters, config.priority_groups, config.backoff) == (("a",), ("g",), (1.0, 2.0))
    assert config.to_json()["filter_subject"] == "a"


@pytest.mark.parametrize("subject", ["", "a..b", "a b", ">.a", 5])
def test_filter_that_is_no_subject_is_refused(subject: Any) -> None:
    with pytest.raises(SubjectError):
        ConsumerConfig(filters=[subject])


def test_misspelt_choice_names_the_right_one() -> None:
    with pytest.raises(ConfigError) as caught:
        ConsumerConfig(ack_policy=cast("Any", "explict"))

    assert "did you mean explicit?" in caught.value.hint
