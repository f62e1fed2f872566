"""Control subjects: where they lie, and which streams capture them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.control import (
    CONTROL_KEY,
    Control,
    captured,
    control_of,
    new_control,
)
from natsstream.api.names import check_filter, collide, covers
from natsstream.api.settings.source import StreamSource
from natsstream.api.stream_config import StreamConfig
from natsstream.errors import ConfigError, SubjectError

PREFIX = "orders.$ctl.k3j9x2q7"
tokens = st.sampled_from(["a", "b", "*", "$ctl", "n", "p", "eof"])
filters = st.tuples(st.lists(tokens, min_size=1, max_size=6), st.booleans()).map(
    lambda drawn: ".".join([*drawn[0], *([">"] if drawn[1] else [])])
)
literals = st.lists(st.sampled_from(["a", "b", "$ctl", "n", "p", "eof"]), min_size=1, max_size=6)


def stream(*subjects: str, prefix: str | None = PREFIX) -> StreamConfig:
    """Return the configuration of a stream with a prefix in its metadata."""
    metadata = None if prefix is None else {CONTROL_KEY: prefix}
    return StreamConfig(name="ORDERS", subjects=subjects or None, metadata=metadata)


def test_subjects_of_a_prefix() -> None:
    control = Control(PREFIX)

    assert control.filter == f"{PREFIX}.>"
    assert control.end == f"{PREFIX}.eof"
    assert control.state("b3JkZXI") == f"{PREFIX}.p.b3JkZXI"
    for subject in (control.end, control.state("x")):
        assert control.has(subject)
        assert covers(control.filter, subject)
    for other in (PREFIX, f"{PREFIX}x.eof", "orders.$ctl.other.eof", "orders.new"):
        assert not control.has(other)


@pytest.mark.parametrize("prefix", ["", "a..b", "a.", "orders.*", "orders.>", "a b"])
def test_prefix_that_is_no_subject_is_refused(prefix: str) -> None:
    with pytest.raises(SubjectError):
        Control(prefix)
    with pytest.raises(ConfigError, match="no subject"):
        control_of(stream(">", prefix=prefix))


def test_control_of_a_stream() -> None:
    assert control_of(stream("orders.>")) == Control(PREFIX)
    assert control_of(stream("orders.*", "orders.$ctl.>")) == Control(PREFIX)
    assert control_of(stream("orders.>", prefix=None)) is None
    assert control_of(StreamConfig(name="ORDERS")) is None


@pytest.mark.parametrize("subjects", [("orders.*",), ("orders.*.*.*",), ("orders.*.*.*.*",), ()])
def test_stream_that_does_not_capture_its_control_subjects_is_refused(
    subjects: tuple[str, ...],
) -> None:
    with pytest.raises(ConfigError, match="does not capture") as caught:
        control_of(stream(*subjects))
    assert PREFIX in str(caught.value)


def test_copies_hold_subjects_that_they_do_not_capture() -> None:
    of_orders, metadata = StreamSource(name="ORDERS"), {CONTROL_KEY: PREFIX}
    mirror = StreamConfig(name="M", mirror=of_orders, metadata=metadata)
    sourcing = StreamConfig(name="S", subjects=["s"], sources=[of_orders], metadata=metadata)

    assert control_of(mirror) == control_of(sourcing) == Control(PREFIX)


@pytest.mark.parametrize(
    ("subjects", "prefix"),
    [
        (("orders.>",), "orders.$ctl.n1"),
        (("orders.eu.*.new", "x"), "orders.eu.$ctl.n1"),
        (("orders",), "orders.$ctl.n1"),
        (("*.orders",), "ORDERS.$ctl.n1"),
        ((">",), "ORDERS.$ctl.n1"),
        ((), "ORDERS.$ctl.n1"),
    ],
)
def test_new_control_stands_beside_the_data(subjects: tuple[str, ...], prefix: str) -> None:
    assert new_control(stream(*subjects, prefix=None), "n1") == Control(prefix)


@pytest.mark.parametrize("nonce", ["", "a.b", "*", "a b"])
def test_nonce_that_is_not_one_token_is_refused(nonce: str) -> None:
    with pytest.raises(ConfigError, match="not one token"):
        new_control(stream("orders.>"), nonce)


@pytest.mark.parametrize(
    ("subjects", "added"),
    [
        (["orders.>"], []),
        (["orders.*"], ["orders.$ctl.>"]),
        (["orders.new", "b"], ["orders.$ctl.>"]),
        (["orders.*.*"], [f"{PREFIX}.>"]),
        (["orders.*.*.*"], [f"{PREFIX}.p.*"]),
        (["orders.*.*.*.*"], [f"{PREFIX}.eof"]),
        (["orders.*.*.*", "orders.*.*.*.*"], []),
        ([], ["orders.$ctl.>"]),
    ],
)
def test_missing_control_subjects_are_added(subjects: list[str], added: list[str]) -> None:
    assert captured(subjects, Control(PREFIX)) == [*subjects, *added]


def test_prefix_of_another_form_is_added_by_itself() -> None:
    assert captured(["a"], Control("control")) == ["a", "control.>"]


def test_subjects_that_overlap_in_part_are_refused() -> None:
    with pytest.raises(ConfigError, match="overlap"):
        captured(["orders.*.*.*.x"], Control(PREFIX))


@given(st.lists(filters, max_size=3))
def test_control_records_are_captured_and_no_two_subjects_collide(subjects: list[str]) -> None:
    if any(collide(one, other) for one in subjects for other in subjects if one is not other):
        return  # No server has such a stream.
    control = Control("a.$ctl.n")

    try:
        found = captured(subjects, control)
    except ConfigError:
        return

    for each in found:
        check_filter(each)
    for record in (control.end, control.state("b"), control.state("p")):
        assert any(covers(each, record) for each in found)
    for one in found:
        assert not any(collide(one, other) for other in found if other is not one)
    assert control_of(StreamConfig(name="S", subjects=found, metadata={CONTROL_KEY: "a.$ctl.n"}))


@given(filters, filters, literals)
def test_filters_collide_where_one_subject_matches_both(
    one: str, other: str, literal: list[str]
) -> None:
    subject = ".".join(literal)
    if covers(one, subject) and covers(other, subject):
        assert collide(one, other)
    assert collide(one, other) == collide(other, one)
    assert collide(one, other) == bool(_witness(one.split("."), other.split(".")))


def _witness(one: list[str], other: list[str]) -> bool:
    """Return True if two filters have a subject in common, found token by token."""
    if not one or not other:
        return not one and not other
    if one[0] == ">" or other[0] == ">":
        return True
    if one[0] != other[0] and "*" not in (one[0], other[0]):
        return False
    return _witness(one[1:], other[1:])
