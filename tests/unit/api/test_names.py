"""Names and subjects: what would close the connection or mean something else is refused here."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api import names
from natsstream.api.names import (
    STREAM_NAME_BYTES_MAX,
    SUBJECT_BYTES_MAX,
    check_filter,
    check_filters,
    check_stream_name,
    check_subject,
    covers,
    drop_covered,
)
from natsstream.errors import ConfigError, StreamNameError, SubjectError

ILLEGAL_ANYWHERE = [" ", "\t", "\r", "\n", "\x00", "\x7f", "\x1f", "\ud800", "\udcff"]


@pytest.mark.parametrize(
    "name", ["ORDERS", "a", "A-b_c1", "Straße", "日本", "x" * 255, "$KV", "=", "a\u00a0b"]
)
def test_legal_stream_names_are_returned(name: str) -> None:
    assert check_stream_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "a.b", "*", "a*", ">", "a>b", "a/b", "a\\b", "x" * 256, "ß" * 128]
    + [f"a{each}b" for each in ILLEGAL_ANYWHERE],
)
def test_illegal_stream_names_are_refused(name: str) -> None:
    with pytest.raises(StreamNameError):
        check_stream_name(name)


@pytest.mark.parametrize(
    "subject", ["a", "a.b.c", "$KV.b.k", "a*b", "a>b", "ü.ö", "\u2003", "x" * 3_584]
)
def test_legal_subjects_are_returned(subject: str) -> None:
    assert check_subject(subject) == subject
    assert check_filter(subject) == subject


@pytest.mark.parametrize("subject", ["*", ">", "a.*", "a.>", "*.b", "a.*.c"])
def test_wildcards_are_for_filters_only(subject: str) -> None:
    assert check_filter(subject) == subject
    with pytest.raises(SubjectError, match="wildcard"):
        check_subject(subject)


@pytest.mark.parametrize(
    "subject",
    ["", ".", "a.", ".a", "a..b", ">.a", "a.>.b", "x" * 3_585, "ß" * 1_793]
    + [f"a{each}b" for each in ILLEGAL_ANYWHERE],
)
def test_illegal_subjects_are_refused(subject: str) -> None:
    with pytest.raises(SubjectError):
        check_filter(subject)
    with pytest.raises(SubjectError):
        check_subject(subject)


def test_surrogate_in_a_subject_is_named() -> None:
    with pytest.raises(SubjectError, match="has the surrogate") as caught:
        check_filter("a.\ud800")

    assert "UTF-8" in caught.value.hint


@given(st.text(st.characters(), max_size=300))
def test_what_passes_fits_the_wire(text: str) -> None:
    try:
        wire = check_filter(text).encode()
    except SubjectError:
        pass
    else:
        assert 0 < len(wire) <= SUBJECT_BYTES_MAX
        assert not set(wire) & set(b" \t\r\n")
    try:
        wire = check_stream_name(text).encode()
    except StreamNameError:
        return
    assert 0 < len(wire) <= STREAM_NAME_BYTES_MAX
    assert not set(wire) & set(b" \t\r\n.*>/\\")


@pytest.mark.parametrize("value", [None, 5, b"a.b", ["a"]])
def test_names_and_subjects_of_another_type_are_refused(value: object) -> None:
    # The cast says what the annotations refuse.
    text = cast("str", value)
    with pytest.raises(StreamNameError, match="name is"):
        check_stream_name(text)
    with pytest.raises(SubjectError, match="subject is"):
        check_subject(text)
    with pytest.raises(SubjectError, match="subject is"):
        check_filter(text)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [(">", "a.b"), (">", ">"), ("a.>", "a.b.c"), ("a.*", "a.b"), ("a.b", "a.b"), ("*.>", "a.>")],
)
def test_filters_of_which_one_covers_the_other_are_refused(wide: str, narrow: str) -> None:
    """As the server does (10138)."""
    assert covers(wide, narrow)
    for filters in ([wide, narrow], [narrow, "z", wide]):
        with pytest.raises(ConfigError, match="overlap") as told:
            check_filters(filters)
        assert repr(wide) in told.value.message
        assert repr(narrow) in told.value.message


@pytest.mark.parametrize("more", [["d.7"], ["d.*", "e"]])
def test_overlapping_filters_are_found_without_comparing_all(
    monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    compared = 0

    def counting(wide: str, narrow: str) -> bool:
        nonlocal compared
        compared += 1
        return covers(wide, narrow)

    monkeypatch.setattr(names, "covers", counting)
    with pytest.raises(ConfigError, match="overlap"):
        check_filters([*(f"d.{number}" for number in range(4_000)), *more])
    assert compared <= 4_000


@pytest.mark.parametrize(
    "filters",
    [
        [],
        ["a"],
        ["a", "b"],
        ["a.>", "a"],
        ["a.*", "*.b"],
        ["a.*.x", "a.y.*"],
        ["a.b", "a.b.c"],
        ["a.*", "a.*.c"],
    ],
)
def test_filters_that_the_server_takes_together_are_returned(filters: list[str]) -> None:
    assert check_filters(filters) == tuple(filters)


@given(st.lists(st.sampled_from("ab*"), min_size=1, max_size=4), st.data())
def test_filter_covers_what_has_other_tokens_in_place_of_its_wildcards(
    tokens: list[str], data: st.DataObject
) -> None:
    narrow = [data.draw(st.sampled_from("ab*")) if each == "*" else each for each in tokens]

    assert covers(".".join(tokens), ".".join(narrow))
    assert covers(".".join([*tokens[:-1], ">"]), ".".join(narrow))
    assert not covers(".".join(tokens), ".".join([*narrow, "c"]))


@given(st.lists(st.lists(st.sampled_from("ab*>"), min_size=1, max_size=4), max_size=8))
def test_filters_that_are_left_are_those_that_no_other_one_covers(drawn: list[list[str]]) -> None:
    texts = [
        ".".join("c" if each == ">" else each for each in tokens[:-1])
        + ("." if tokens[:-1] else "")
        + tokens[-1]
        for tokens in drawn
    ]

    left = drop_covered(texts)

    assert left == tuple(
        each
        for each in dict.fromkeys(texts)
        if not any(other != each and covers(other, each) for other in texts)
    )


def test_thousand_long_wildcards_are_compared_at_once() -> None:
    """Each with each would take minutes."""
    deep = ".".join(["*"] * 300)
    texts = [f"{deep}.{number}.*" for number in range(1_000)]

    assert drop_covered([*texts, f"{deep}.7.x", f"{deep}.7"]) == (*texts, f"{deep}.7")
