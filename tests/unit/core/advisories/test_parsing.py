"""Advisories as typed objects: every kind of the server, and whatever else comes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream import advisories
from natsstream.advisories import KINDS, kind_of, parse_advisory
from natsstream.core.advisories.wanted import AdvisoryFilter

PREFIX = "$JS.EVENT"
V1 = "io.nats.jetstream.advisory.v1."
KEEP: dict[str, Any] = {"kinds": (), "stream": None, "consumer": None, "domain": None}


def wanted_of(**fields: Any) -> AdvisoryFilter:
    """Return what a reader wants; all of it where nothing is given."""
    every: dict[str, Any] = {**KEEP, "prefix": PREFIX, "max_pending": 1, **fields}
    return AdvisoryFilter(**every)


@pytest.mark.parametrize(
    ("kind", "type_name", "made", "fields"),
    [
        ("max_deliveries", "max_deliver", advisories.MaxDeliveries,
         {"stream_seq": 7, "deliveries": 3}),
        ("msg_terminated", "terminated", advisories.MessageTerminated,
         {"stream_seq": 7, "consumer_seq": 2, "reason": "old"}),
        ("msg_naked", "nak", advisories.MessageNaked, {"consumer_seq": 2}),
        ("consumer_created", "consumer_action", advisories.ConsumerAction, {"action": "create"}),
        ("consumer_paused", "consumer_pause", advisories.ConsumerPaused, {"paused": True}),
        ("consumer_pinned", "consumer_group_pinned", advisories.ConsumerPinned,
         {"group": "g", "pinned_id": "p"}),
        ("consumer_unpinned", "consumer_group_unpinned", advisories.ConsumerUnpinned,
         {"group": "g", "reason": "admin"}),
        ("consumer_leader_elected", "consumer_leader_elected", advisories.LeaderElected,
         {"leader": "n1"}),
        ("consumer_quorum_lost", "consumer_quorum_lost", advisories.QuorumLost, {}),
        ("stream_updated", "stream_action", advisories.StreamAction, {"action": "modify"}),
        ("stream_batch_abandoned", "stream_batch_abandoned", advisories.BatchAbandoned,
         {"batch": "b", "reason": "timeout"}),
        ("stream_leader_elected", "stream_leader_elected", advisories.LeaderElected,
         {"leader": "n1"}),
        ("stream_quorum_lost", "stream_quorum_lost", advisories.QuorumLost, {}),
        ("snapshot_created", "snapshot_create", advisories.SnapshotCreated, {}),
        ("snapshot_completed", "snapshot_complete", advisories.SnapshotCompleted,
         {"error": "no flow"}),
        ("restore_created", "restore_create", advisories.RestoreCreated, {}),
        ("restore_completed", "restore_complete", advisories.RestoreCompleted, {"bytes": 9}),
        ("domain_leader_elected", "domain_leader_elected", advisories.LeaderElected,
         {"leader": "n1", "cluster": "c"}),
        ("server_out_of_storage", "server_out_of_space", advisories.ServerEvent,
         {"server": "n1", "server_id": "N", "cluster": "c"}),
        ("server_removed", "server_removed", advisories.ServerEvent, {"server": "n1"}),
        ("meta_rescue", "meta_rescue", advisories.ServerEvent, {"server": "n1"}),
        ("api_limit_reached", "api_limit_reached", advisories.ApiLimitReached, {"dropped": 5}),
    ],
)  # fmt: skip
def test_each_kind_has_its_class_and_fields(
    kind: str, type_name: str, made: type[advisories.Advisory], fields: dict[str, object]
) -> None:
    body = {
        "type": f"{V1}{type_name}",
        "id": "i",
        "timestamp": "2026-01-01T00:00:00.5Z",
        "stream": "S",
        "domain": "hub",
        **fields,
    }
    event = parse_advisory(f"{PREFIX}.{KINDS[kind]}.S.c", json.dumps(body).encode(), PREFIX)

    assert type(event) is made
    assert (event.kind, event.id, event.stream, event.domain) == (kind, "i", "S", "hub")
    assert event.time.isoformat() == "2026-01-01T00:00:00.500000+00:00"
    assert {name: getattr(event, name) for name in fields} == fields
    assert event.raw == body


def test_fields_that_are_called_otherwise_in_json() -> None:
    audit = {"type": f"{V1}api_audit", "subject": "$JS.API.INFO", "response": "{}"}
    ack = {"type": "io.nats.jetstream.metric.v1.consumer_ack", "ack_time": 12}

    first = parse_advisory(f"{PREFIX}.ADVISORY.API", json.dumps(audit).encode(), PREFIX)
    second = parse_advisory(f"{PREFIX}.METRIC.CONSUMER.ACK.S.c", json.dumps(ack).encode(), PREFIX)

    assert isinstance(first, advisories.ApiAudit)
    assert (first.subject, first.api_subject) == (f"{PREFIX}.ADVISORY.API", "$JS.API.INFO")
    assert isinstance(second, advisories.ConsumerAck)
    assert second.ack_time_ns == 12


def test_every_kind_is_known_by_its_subject_and_in_the_type() -> None:
    assert {kind_of(f"{PREFIX}.{token}.a.b", PREFIX) for token in KINDS.values()} == (
        {*KINDS} - {"api_audit"}
    ) | {""}
    assert kind_of(f"{PREFIX}.ADVISORY.API", PREFIX) == "api_audit"
    assert set(advisories.AdvisoryKind.__args__) == set(KINDS)


@given(st.binary(max_size=60) | st.text(max_size=20).map(json.dumps).map(str.encode))
def test_whatever_comes_is_an_event(data: bytes) -> None:
    event = parse_advisory(f"{PREFIX}.ADVISORY.STREAM.NEW.S", data, PREFIX)

    assert isinstance(event, advisories.UnknownAdvisory)
    assert event.data == data


def test_values_of_another_type_stay_in_raw_alone() -> None:
    body = {"type": f"{V1}nak", "stream": 5, "stream_seq": "x", "timestamp": "never", "id": None}
    event = parse_advisory(f"{PREFIX}.ADVISORY.CONSUMER.MSG_NAKED.S.c", json.dumps(body).encode(),
                           PREFIX)  # fmt: skip

    assert isinstance(event, advisories.MessageNaked)
    assert (event.stream, event.stream_seq, event.time_ns, event.id) == ("", 0, 0, "")
    assert event.raw == body


@pytest.mark.parametrize(
    ("given_fields", "expected"),
    [
        ({"stream": "S"},
         ["ADVISORY.STREAM.*.S", "ADVISORY.CONSUMER.*.S.*", "METRIC.CONSUMER.*.S.*"]),
        ({"consumer": "c"}, ["ADVISORY.CONSUMER.*.*.c", "METRIC.CONSUMER.*.*.c"]),
        ({"kinds": ("msg_naked",)}, ["ADVISORY.CONSUMER.MSG_NAKED.*.*"]),
        ({"kinds": ("api_audit", "server_removed")}, ["ADVISORY.API", "ADVISORY.SERVER.REMOVED"]),
        ({"kinds": ("stream_deleted",), "stream": "S"}, ["ADVISORY.STREAM.DELETED.S"]),
    ],
)  # fmt: skip
def test_subjects_are_as_narrow_as_what_is_wanted(
    given_fields: dict[str, Any], expected: list[str]
) -> None:
    wanted = wanted_of(**given_fields)

    assert wanted.subjects() == [f"{PREFIX}.{subject}" for subject in expected]


def test_api_calls_are_not_asked_for_by_default() -> None:
    wanted = wanted_of()

    assert f"{PREFIX}.ADVISORY.API" not in wanted.subjects()
    assert f"{PREFIX}.ADVISORY.>" not in wanted.subjects()
