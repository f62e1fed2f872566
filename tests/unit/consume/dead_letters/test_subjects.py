"""Subjects of dead letters, and what a dead-letter stream captures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.names import covers
from natsstream.consume.dead_letters.subjects import (
    LetterKey,
    advisory_subjects,
    letter_subject,
    letters_filter,
    read_letter_subject,
    replay_id,
    with_captured,
)

_NAMES = st.text(
    st.characters(blacklist_characters=" .*>/\\", blacklist_categories=("Cc", "Cs")),
    min_size=1,
    max_size=8,
)
_TOKENS = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=4)
_NUMBERS = st.integers(1, 2**64 - 1)


@given(queue=_NAMES, stream=_NAMES, consumer=_NAMES, sequence=_NUMBERS, time_ns=_NUMBERS)
def test_subject_says_which_message_it_is(
    queue: str, stream: str, consumer: str, sequence: int, time_ns: int
) -> None:
    key = LetterKey(stream, consumer, sequence, time_ns)
    subject = letter_subject(queue, key)

    assert read_letter_subject(subject) == key
    assert covers(letters_filter(queue), subject)
    assert replay_id(queue, key).endswith(f"{sequence}-{time_ns}")


@pytest.mark.parametrize(
    "subject",
    [
        *("", "$DLQ.Q.S.c.1", "$DLQ.Q.S.c.x.1", "$DLQ.Q.S.c.1.-1", "$KV.Q.S.c.1.1"),
        *("$DLQ.Q.S.c.1.1.1", "$DLQ.Q.*.c.1.1", "$DLQ.Q.S.*.1.1", "$DLQ.Q.>.c.1.1"),
        *("$DLQ.Q..c.1.1", "$DLQ.Q.S.\x1f.1.1"),
    ],
)
def test_other_subjects_are_no_letters(subject: str) -> None:
    assert read_letter_subject(subject) is None
    assert read_letter_subject(f"$DLQ.Q.S.c.1.{'9' * 5_000}") is None


def test_wider_advisories_take_the_place_of_narrower_ones() -> None:
    narrow = [letters_filter("Q"), *advisory_subjects("S", "c"), *advisory_subjects("T")]

    assert with_captured(narrow, advisory_subjects("S", "c")) == narrow
    assert with_captured(narrow, advisory_subjects("T", "x")) == narrow
    wide = with_captured(narrow, advisory_subjects("S"))
    assert sorted(wide) == sorted(
        [
            letters_filter("Q"),
            *advisory_subjects("S"),
            *advisory_subjects("T"),
        ]
    )


@given(wide=_TOKENS, narrow=_TOKENS, has_tail=st.booleans())
def test_covered_means_every_subject_is_matched(
    wide: list[str], narrow: list[str], *, has_tail: bool
) -> None:
    filter_ = ".".join([*wide, ">"] if has_tail else wide)
    subject = ".".join(narrow)

    def matches(tokens: list[str]) -> bool:
        if len(tokens) < len(wide) or (len(tokens) == len(wide)) == has_tail:
            return False
        return all(w in ("*", t) for w, t in zip(wide, tokens, strict=False))

    concrete = [[t.replace("*", each) for t in narrow] for each in ("a", "b", "z")]
    assert covers(filter_, subject) == all(map(matches, concrete))
