"""Control subjects: where they lie, and which streams capture them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.control import (
    CONTROL_KEY,
    Control,
    Span,
    captured,
    control_of,
    data_subjects,
    expected_control,
    likely_control,
    named_control,
    new_control,
    past_of,
    with_past,
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


@given(st.lists(filters, max_size=3))
def test_records_are_hidden_where_filters_match_them_and_do_not_name_them(
    given_filters: list[str],
) -> None:
    control = Control("a.$ctl.n")
    records = (control.end, control.state("a"), control.state("b"))
    matched = any(covers(each, record) for each in given_filters for record in records)
    named = any(covers("a.$ctl.>", each) for each in given_filters)

    if named:
        assert not control.is_hidden(given_filters)
    elif matched or not given_filters:
        assert control.is_hidden(given_filters)


@pytest.mark.parametrize(
    ("asked", "is_hidden"),
    [
        ((), True),
        (("orders.>",), True),
        (("orders.*.*.*",), True),
        (("orders.*", "orders.new.>"), False),
        (("orders.$ctl.>",), False),
        ((f"{PREFIX}.>",), False),
        ((f"{PREFIX}.eof", "orders.new"), False),
        (("orders.$ctl.other.>",), False),
    ],
)
def test_filters_and_control_records(asked: tuple[str, ...], *, is_hidden: bool) -> None:
    assert Control(PREFIX).is_hidden(asked) is is_hidden


def test_prefix_of_another_form_has_its_own_area() -> None:
    control = Control("control.orders")

    assert control.area == control.filter == "control.orders.>"
    assert control.is_hidden([">"])
    assert not control.is_hidden(["control.orders.eof"])
    assert control.start == b"control.orders."


def test_stream_has_or_gets_the_control_subjects_that_are_likely() -> None:
    bare = stream("orders.>", prefix=None)
    expected = expected_control(bare, 5)

    assert likely_control(bare, 5) == expected
    assert expected.prefix.startswith("orders.$ctl.")
    assert expected_control(bare, 6) != expected
    assert likely_control(stream("orders.>"), 5) == Control(PREFIX)
    assert likely_control(stream(f"{'x' * 3_580}.>", prefix=None), 5) is None
    # A stream that captures its control subjects no more still has the records.
    assert named_control(stream("other")) == Control(PREFIX)


@pytest.mark.parametrize(
    ("subjects", "kept"),
    [
        (["orders.*", "orders.$ctl.>"], ["orders.*"]),
        (["orders.new", f"{PREFIX}.>", "b"], ["orders.new", "b"]),
        (["orders.*.*.*", f"{PREFIX}.p.*"], None),
        (["orders.>"], None),
        ([">"], None),
    ],
)
def test_subjects_of_data(subjects: list[str], kept: list[str] | None) -> None:
    config = stream(*subjects)
    if kept is None:
        with pytest.raises(ConfigError, match="matches both"):
            data_subjects(config, Control(PREFIX))
    else:
        assert data_subjects(config, Control(PREFIX)) == kept
    assert data_subjects(config, None) == subjects


def test_copy_has_no_subjects_of_data() -> None:
    sourcing = StreamConfig(name="S", subjects=["s"], sources=[StreamSource(name="ORDERS")])

    with pytest.raises(ConfigError, match="copies other streams"):
        data_subjects(sourcing, Control(PREFIX))


@given(st.frozensets(st.integers(1, 60)))
def test_past_keeps_sequences_of_both_ends(sequences: frozenset[int]) -> None:
    spans: tuple[Span, ...] = ()
    for sequence in sorted(sequences):
        spans = with_past(spans, sequence)

    kept = [each for first, last in spans for each in range(first, last + 1)]
    assert kept == sorted(set(kept))
    assert set(kept) <= sequences
    assert len(spans) <= 8
    if sequences:
        assert {min(sequences), max(sequences)} <= set(kept)
    if len(sequences) <= 8:
        assert set(kept) == sequences


@pytest.mark.parametrize(
    ("data", "past"),
    [
        (b'{"at":[[1,1],[4,9]]}', ((1, 1), (4, 9))),
        (b"{}", ()),
        (b'{"at":null}', ()),
        (b'{"at":[[2,1]]}', ()),
        (b'{"at":[[1]]}', ()),
        (b'{"at":[["1",2]]}', ()),
        (b"no json", ()),
    ],
)
def test_past_is_read_from_any_record(data: bytes, past: tuple[Span, ...]) -> None:
    assert past_of(data) == past
