"""Arguments of a wrong type or value: told by name, value and type, with a way out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.arguments import (
    check_bool,
    check_bytes,
    check_callable,
    check_choice,
    check_int,
    check_names,
    check_plain,
    check_seconds,
    check_text,
    check_texts,
    counted,
    described,
    did_you_mean,
)
from natsstream.errors import ConfigError, SubjectError
from natsstream.options import ConnectOptions

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKS: dict[str, Callable[[object], object]] = {
    "text": lambda value: check_text(value, "it"),
    "texts": lambda value: check_texts(value, "it"),
    "bytes": lambda value: check_bytes(value, "it"),
    "int": lambda value: check_int(value, "it", minimum=1, maximum=9),
    "bool": lambda value: check_bool(value, "it"),
    "seconds": lambda value: check_seconds(value, "it"),
    "choice": lambda value: check_choice(value, "it", ("limits", "workqueue")),
    "callable": lambda value: check_callable(value, "it"),
}
WRONG: dict[str, list[object]] = {
    "text": [None, 5, b"text", ["text"]],
    "texts": [None, 5, "text", b"text", ["a", 5]],
    "bytes": [None, 5, "text", [1, 2]],
    "int": [None, "5", 5.0, True, 0, 10],
    "bool": [None, 0, 1, "true"],
    "seconds": [None, "2", True, 0, -1, math.nan, math.inf],
    "choice": [None, 5, "work", ["limits"]],
    "callable": [None, "print"],
}


@pytest.mark.parametrize(
    ("kind", "value"), [(kind, value) for kind, values in WRONG.items() for value in values]
)
def test_wrong_value_is_told_by_name_with_a_hint(kind: str, value: object) -> None:
    with pytest.raises(ConfigError, match=r"^it\b") as raised:
        CHECKS[kind](value)

    assert raised.value.hint


@pytest.mark.parametrize(
    ("value", "told"),
    [(5, "5 (of type int)"), (None, "None"), ("5", "'5' (of type str)")],
)
def test_value_is_shown_with_its_type(value: object, told: str) -> None:
    assert described(value) == told


def test_value_that_nests_too_deep_is_named_so() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]

    assert described(value) == "a value that nests too deep (of type list)"


def test_long_value_is_cut() -> None:
    assert len(described("x" * 10_000)) < 100


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("text", ""),
        ("bytes", b""),
        ("int", 9),
        ("bool", False),
        ("seconds", 0.001),
        ("choice", "limits"),
        ("callable", print),
    ],
)
def test_right_value_comes_back_as_it_is(kind: str, value: object) -> None:
    assert CHECKS[kind](value) is value


@pytest.mark.parametrize("value", [bytearray(b"ab"), memoryview(b"ab")])
def test_bytes_that_may_change_are_copied(value: bytearray | memoryview) -> None:
    found = check_bytes(value, "data")

    assert (found, type(found)) == (b"ab", bytes)


def test_texts_come_as_a_tuple() -> None:
    assert check_texts(iter(["a", "b"]), "filters") == ("a", "b")


def test_one_text_for_several_is_told_how_to_write_it() -> None:
    with pytest.raises(ConfigError, match="filters is one string") as raised:
        check_texts("a.b", "filters")

    assert raised.value.hint == "give a list: filters=['a.b']"


def test_member_of_the_wrong_type_is_told_by_its_place() -> None:
    with pytest.raises(SubjectError, match=r"^subjects\[1\] is 5 \(of type int\)"):
        check_texts(["a", 5], "subjects", error=SubjectError)


def test_word_of_kafka_is_answered_with_that_of_nats() -> None:
    """The nearest word of "latest" is "last", which is something else."""
    with pytest.raises(ConfigError) as caught:
        check_choice("latest", "deliver_policy", ("all", "last", "new"))
    assert caught.value.hint.startswith("did you mean new?")
    assert did_you_mean("latest", ["latests", "new"]) == "did you mean latests? "


def test_misspelt_choice_is_answered_with_what_was_probably_meant() -> None:
    with pytest.raises(ConfigError, match=r"^retention is 'work'") as raised:
        check_choice("work", "retention", ("limits", "interest", "workqueue"))

    assert raised.value.hint == ("did you mean workqueue? give one of limits, interest, workqueue")


def test_misspelt_keyword_is_answered_with_what_was_probably_meant() -> None:
    with pytest.raises(ConfigError, match=r"^no stream field 'subject'") as raised:
        check_names({"subject", "name"}, ["name", "subjects"], "stream field", hint="see the docs")

    assert raised.value.hint == "did you mean subjects? see the docs"


def test_keywords_that_are_known_are_taken() -> None:
    check_names(["name"], ["name", "subjects"], "stream field")


@pytest.mark.parametrize("value", [10**5000, -(10**5000)], ids=["huge", "least"])
def test_number_that_no_clock_holds_is_told_without_writing_it(value: int) -> None:
    with pytest.raises(ConfigError, match=r"4,300 digits"):
        check_seconds(value, "timeout")


def test_zero_seconds_are_taken_where_nothing_has_to_be_waited_for() -> None:
    assert check_seconds(0, "timeout", may_be_zero=True) == 0


def _with(name: str, seconds: float) -> ConnectOptions:
    given: dict[str, Any] = {name: seconds}
    return ConnectOptions(**given)


@pytest.mark.parametrize("name", ["connect_timeout", "request_timeout", "ping_interval"])
def test_milliseconds_of_a_connection_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is 5000") as caught:
        _with(name, 5000)
    assert caught.value.hint == "give seconds, not milliseconds; at most 3,600"
    assert getattr(_with(name, 3600), name) == 3600
    assert ConnectOptions(reconnect_timeout=86_400).reconnect_timeout == 86_400


@given(st.integers())
def test_whole_numbers_without_bounds_are_all_taken(value: int) -> None:
    assert check_int(value, "sequence") == value


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [(0, "message", "0 messages"), (1, "batch", "1 batch"), (2, "batch", "2 batches")],
)
def test_count_agrees_with_its_noun(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text


async def _async(_: object) -> None:
    raise NotImplementedError


class _Async:
    async def __call__(self, _: object) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("function", [_async, _Async()])
def test_async_function_is_refused_where_nothing_awaits_it(function: object) -> None:
    with pytest.raises(ConfigError, match=r"it is .* which is async") as caught:
        check_plain(function, "it", takes="a number")
    assert caught.value.hint == "give a plain function that takes a number; it must not wait"


def _two(_a: object, _b: object) -> None:
    raise NotImplementedError


def test_function_for_other_arguments_is_refused() -> None:
    for function, count in ((_two, 2), (print, 2), (type, 1)):
        assert check_callable(function, "it", count=count) is function
    assert check_plain(_Async, "it", takes="nothing", count=0) is _Async  # Its objects are async.
    with pytest.raises(ConfigError, match="missing a required argument: '_b'"):
        check_callable(_two, "it", count=1)
    with pytest.raises(ConfigError, match="too many positional arguments"):
        check_plain(_two, "it", takes="three", count=3)
