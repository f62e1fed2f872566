"""Constructors of public classes: unknown names are refused with the right one, all else stays."""

from __future__ import annotations

import inspect
import pickle
import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from nats.js import api

import natsstream as ns
from natsstream import testing
from natsstream.api.stream_config import StreamConfig
from natsstream.constructors import check_arguments
from natsstream.errors import ConfigError
from natsstream.foreign_names import FIELDS

# What users make, and not only get.
GIVEN = [
    "Backoff",
    "BucketConfig",
    "Configuration",
    "ConnectOptions",
    "ConsumerConfig",
    "ConsumerLimits",
    "Expect",
    "ExternalStream",
    "ObjectBucketConfig",
    "ObjectLink",
    "ObjectOptions",
    "Placement",
    "PublishItem",
    "PublishMessage",
    "PublishOptions",
    "RawMessage",
    "Republish",
    "Schedule",
    "StreamConfig",
    "StreamSource",
    "SubjectTransform",
    "ValueFormat",
]
SERVERS = {
    name: getattr(testing, name)
    for name in ("FaultProxy", "NatsCluster", "NatsClusterContainer", "NatsContainer", "NatsServer")
}
CLASSES: dict[str, Any] = {**{name: getattr(ns, name) for name in GIVEN}, **SERVERS}


@pytest.mark.parametrize("name", CLASSES)
def test_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^no {name} (field|argument) 'unknwon'") as caught:
        CLASSES[name](unknwon=1)

    assert caught.value.hint or name in SERVERS


@pytest.mark.parametrize(
    ("name", "theirs", "ours"),
    [
        (name, theirs, ours)
        for name, each in FIELDS.items()
        if name != "ConnectOptions"  # Of `connect` and attested there.
        for theirs, ours in each.items()
    ],
)
def test_name_of_another_client_is_answered_with_one_that_exists(
    name: str, theirs: str, ours: str
) -> None:
    known = inspect.signature(CLASSES[name]).parameters
    found = re.match(r"\w+", ours)

    assert theirs not in known
    assert found is not None
    assert found[0] in {*known, *ns.__all__, *testing.__all__}
    with pytest.raises(ConfigError) as caught:
        CLASSES[name](**{theirs: 1})
    assert caught.value.hint.startswith(f"in natsstream: {ours}")


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        (ns.StreamConfig, {"num_replicas": 3}, "in natsstream: replicas; "),
        (ns.StreamConfig, {"name": "X", "max_msg": 3}, "did you mean max_msgs? "),
        (ns.SubjectTransform, {"src": "a"}, "in natsstream: source; "),
        (ns.ConsumerLimits, {"max_ack": 3}, "did you mean max_ack_pending? "),
        (ns.ObjectLink, {"kind": 3}, "give one of bucket, name"),
    ],
)
def test_hint_has_the_name_here(kind: Any, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        kind(**given)

    assert caught.value.hint.startswith(told)


def test_class_and_keywords_of_a_call_refuse_with_the_same_words() -> None:
    with pytest.raises(ConfigError) as of_class:
        check_arguments(ns.StreamConfig, ["max_msg"])
    with pytest.raises(ConfigError) as of_call:
        StreamConfig.from_call("ORDERS", {"max_msg": 1})

    assert str(of_call.value) == str(of_class.value)


def test_missing_argument_stays_a_type_error() -> None:
    message: Any = ns.PublishMessage
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'subject'"):
        message(data=b"x")


def test_values_are_copied_pickled_and_shown_as_before() -> None:
    expect = ns.Expect(last_seq=4)
    message = ns.PublishMessage("orders.new", b"x", expect=expect)

    assert pickle.loads(pickle.dumps(message)) == deepcopy(message) == message  # noqa: S301 - Ours.
    assert replace(message, data=b"y") == ns.PublishMessage("orders.new", b"y", expect=expect)
    assert repr(expect).startswith("Expect(stream=None, last_seq=4, ")
    assert "unknown" not in str(inspect.signature(ns.PublishMessage))
    with pytest.raises(ConfigError, match="no Expect field 'last_sequence'"):
        replace(expect, last_sequence=4)  # pyright: ignore[reportCallIssue] - The promise.


def test_each_object_has_a_default_of_its_own() -> None:
    first, second = ns.StreamConfig(name="A"), ns.StreamConfig(name="B")

    assert first.extra == second.extra == {}
    assert first.extra is not second.extra


def test_type_error_of_a_value_is_not_told_as_one_of_a_name() -> None:
    kind: Any = ns.StreamConfig
    with pytest.raises(TypeError, match="missing 1 required"):
        kind(max_msgs=1)


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        (
            ns.StreamConfig,
            api.StreamConfig(name="A"),
            "the stream is given as nats-py's StreamConfig",
        ),
        (ns.StreamConfig, {"name": "A"}, "the stream is given as dict"),
        (ns.StreamConfig, ns.ConsumerConfig(), "the stream is given as ConsumerConfig"),
        (
            ns.BucketConfig,
            api.KeyValueConfig("b"),
            "the bucket is given as nats-py's KeyValueConfig",
        ),
        (
            ns.ObjectBucketConfig,
            api.ObjectStoreConfig("b"),
            "the object store is given as nats-py's ObjectStoreConfig",
        ),
    ],
)
def test_configuration_of_another_class_is_named(kind: Any, given: object, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        kind.from_call(given, {})

    assert caught.value.message == told
    assert caught.value.hint == f"give ns.{kind.__name__}(...), or a name and keywords"


def test_part_of_a_configuration_of_nats_py_is_named() -> None:
    part: Any = api.StreamSource(name="A")
    with pytest.raises(ConfigError, match="of type nats-py's StreamSource"):
        ns.StreamConfig(name="B", mirror=part)
