"""The names of streams that templates make: no two subjects share one by accident."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.names import check_stream_name
from natsstream.errors import ConfigError, NatsStreamError, SubjectError
from natsstream.streams.templates.naming import Naming, escape_token, naming_of, overlap

tokens = st.text(min_size=1, max_size=6).filter(
    lambda text: not any(c in ".*> \t\r\n\f\v" or c < " " or c == "\x7f" for c in text)
)


def name_for(naming: Naming, subject: str) -> str | None:
    found = naming.tokens_of(subject)
    return None if found is None else naming.name_of(found)


@given(st.lists(tokens, min_size=2, max_size=2), st.lists(tokens, min_size=2, max_size=2))
def test_two_pairs_of_tokens_never_share_a_name(one: list[str], other: list[str]) -> None:
    for naming in (naming_of("a.*.b.*"), naming_of("a.*.b.*", "X{2}__{1}Y")):
        names = [name_for(naming, f"a.{each[0]}.b.{each[1]}") for each in (one, other)]
        assert (names[0] == names[1]) == (one == other)


@given(tokens)
def test_escaped_tokens_are_legal_in_names_and_can_be_read_again(token: str) -> None:
    escaped = escape_token(token)

    check_stream_name(escaped)
    raw = bytearray()
    while escaped:
        size = 3 if escaped[0] == "=" else 1
        raw += bytes.fromhex(escaped[1:3]) if size == 3 else escaped[0].encode()
        escaped = escaped[size:]
    assert raw.decode("utf-8", "surrogatepass") == token


@pytest.mark.parametrize(
    ("pattern", "subject", "name", "captured"),
    [
        ("orders.*", "orders.eu", "orders_eu", "orders.eu"),
        ("orders.*", "orders.e_u", "orders_e=5Fu", "orders.e_u"),
        ("orders.*.>", "orders.eu.new.1", "orders_eu", "orders.eu.>"),
        ("*.in.*", "a.in.b", "a_in_b", "a.in.b"),
        ("orders.*", "orders", None, None),
        ("orders.*", "orders.a.b", None, None),
        ("orders.*", "order.a", None, None),
        ("orders.*.>", "orders.eu", None, None),
    ],
)
def test_subject_gives_name_and_what_is_captured(
    pattern: str, subject: str, name: str | None, captured: str | None
) -> None:
    naming = naming_of(pattern)
    found = naming.tokens_of(subject)

    assert name_for(naming, subject) == name
    assert (None if found is None else naming.subject_of(found)) == captured


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("orders.new", None),
        ("orders.>", None),
        ("orders.*.*", "X_{1}"),
        ("orders.*.*", "X_{1}_{1}"),
        ("orders.*.*", "X_{1}{2}"),
        ("orders.*.*", "X_{1}-{2}"),
        ("orders.*", "X"),
        ("orders.*", "X.{1}"),
        ("orders.*", 5),
        (5, None),
        ("a b.*", None),
    ],
)
def test_rule_by_which_streams_could_be_shared_is_refused(pattern: str, name: str | None) -> None:
    with pytest.raises(NatsStreamError) as caught:
        naming_of(pattern, name)
    assert isinstance(caught.value, ConfigError | SubjectError | ValueError)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a.*", "a.b", True),
        ("a.*", "b.*", False),
        ("a.*", "a.*.*", False),
        ("a.*.>", "a.*", False),
        ("a.*.>", "a.*.b", True),
        ("*.b", "a.*", True),
        (">", "a", True),
    ],
)
def test_patterns_overlap(one: str, other: str, *, expected: bool) -> None:
    assert overlap(one, other) is expected
    assert overlap(other, one) is expected
