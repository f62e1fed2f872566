"""Constructors of public classes: unknown names are refused with the right one, all else stays."""

from __future__ import annotations

import inspect
import pickle
import re
from copy import deepcopy
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

import pytest

import natsstream as ns
from natsstream import testing
from natsstream.api.stream_config import StreamConfig
from natsstream.constructors import answers_fields, check_arguments
from natsstream.errors import ConfigError
from natsstream.foreign_names import FIELDS

DATACLASSES = {
    name: kind
    for name in ns.__all__
    if isinstance(kind := getattr(ns, name), type) and is_dataclass(kind)
}
SERVERS = {
    name: getattr(testing, name)
    for name in ("FaultProxy", "NatsCluster", "NatsClusterContainer", "NatsContainer", "NatsServer")
}
CLASSES: dict[str, Any] = {**DATACLASSES, **SERVERS}


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
        (ns.PubAck, {"kind": 3}, "give one of stream, sequence, duplicate, domain, value"),
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


@pytest.mark.parametrize("name", DATACLASSES)
def test_constructor_sets_what_that_of_the_dataclass_sets(name: str) -> None:
    kind: Any = DATACLASSES[name]
    own = kind.__init__.__wrapped__
    has_check = hasattr(kind, "__post_init__")
    given = {} if has_check else {each.name: object() for each in fields(kind)}
    given |= {"name": "a", "source": "a", "destination": "a"} if has_check else {}
    parameters = inspect.signature(kind).parameters
    given = {each: value for each, value in given.items() if each in parameters}

    nothing: set[str] = set()
    for left_out in (nothing, {each.name for each in fields(kind) if _has_default(each)}):
        chosen = {each: value for each, value in given.items() if each not in left_out}
        try:
            wanted = kind.__new__(kind)
            own(wanted, **chosen)
        except TypeError as error:
            with pytest.raises(TypeError, match=re.escape(str(error))):
                kind(**chosen)
        else:
            made = kind(**chosen)
            for each in fields(kind):
                ours, theirs = getattr(made, each.name), getattr(wanted, each.name)
                assert ours == theirs or each.default_factory is not MISSING


def _has_default(field: Any) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


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


def test_class_that_is_no_dataclass_is_left_as_it_is() -> None:
    class Plain:
        pass

    before = dict(vars(Plain))
    assert answers_fields(Plain) is Plain
    assert dict(vars(Plain)) == before
