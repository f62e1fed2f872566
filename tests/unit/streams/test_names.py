"""Names and subjects: what would close the connection or mean something else is refused here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.errors import StreamNameError, SubjectError
from natsstream.streams.names import (
    STREAM_NAME_BYTES_MAX,
    SUBJECT_BYTES_MAX,
    check_filter,
    check_stream_name,
    check_subject,
)

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
