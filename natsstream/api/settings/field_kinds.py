"""The kinds of fields in configurations: the values that they take, and their JSON.

Law: a value that no server accepts, or that every server reads as something else, is refused before
anything is sent, and the error names the field: 0 is refused where servers read it as "not set".
A field has the kind of its type, unless its class names another one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

from natsstream.api.metadata import user_metadata
from natsstream.api.names import check_filter
from natsstream.arguments import (
    check_bool,
    check_choice,
    check_int,
    check_text,
    check_texts,
    check_utf8,
    described,
)
from natsstream.errors import ConfigError
from natsstream.fields import Fields
from natsstream.units import (
    NS_PER_SECOND,
    check_nanoseconds,
    duration_ns,
    format_rfc3339,
    is_of_1970,
    parse_rfc3339,
    position_text,
    time_from_ns,
    time_to_ns,
)

Reader = Callable[[Fields, str], object]
"""Reads one field of the server's JSON, by its name there."""

# The limits of Go's types; servers cannot parse larger numbers.
INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1
# The years 1 to 9999, which RFC 3339 can write.
_TIME_MIN_NS = -62_135_596_800 * NS_PER_SECOND
_TIME_MAX_NS = 253_402_300_800 * NS_PER_SECOND - 1


def _same(value: object) -> object:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldKind:
    """How a field is checked, read, written and compared.

    Attributes:
        check: Returns a given value as it is kept, or raises UsageError; it also takes the name of
            the field for the error.
        read: Reads the server's value.
        write: Returns a value as JSON.
        meaning: Returns JSON in a form that is equal for values of the same effect.
        json_names: The server's names; empty for the Python name.
        is_required: True if the field has no default.
    """

    check: Callable[[Any, str], object]
    read: Reader = Fields.text
    write: Callable[[Any], object] = _same
    meaning: Callable[[Any], object] = _same
    json_names: tuple[str, ...] = ()
    is_required: bool = False

    def named(self, *json_names: str) -> FieldKind:
        """Return the kind with other names in the server's JSON."""
        return replace(self, json_names=json_names)

    def never_zero(self, reads_as: str, hint: str) -> FieldKind:
        """Return the kind without 0, which servers read as something else."""

        def check(value: object, what: str) -> object:
            checked = self.check(value, what)
            if not checked:
                raise ConfigError(f"{what} is 0, which servers take for {reads_as}", hint=hint)
            return checked

        return replace(self, check=check)


def check_duration(value: object, what: str) -> float | timedelta:
    """Return a duration that a server can keep.

    Raises:
        ConfigError: It is neither seconds nor a timedelta, negative, longer than 292 years, or
            shorter than a nanosecond.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        raise ConfigError(f"{what} is {described(value)}", hint="give seconds, or a timedelta")
    try:
        nanoseconds = duration_ns(value)
    except ConfigError as error:
        raise ConfigError(f"{what}: {error.message}", hint=error.hint) from error
    if value and not nanoseconds:
        raise ConfigError(
            f"{what} is {described(value, with_type=False)}, less than a nanosecond",
            hint="give more, or 0",
        )
    return value


def check_time(value: object, what: str) -> datetime | int:
    """Return a moment that a server can keep.

    Raises:
        ConfigError: It is neither a datetime with a time zone nor Unix nanoseconds, but of Unix
            seconds, or not between the years 1 and 9999.
    """
    if isinstance(value, bool) or not isinstance(value, int | datetime):
        raise ConfigError(
            f"{what} is {described(value)}",
            hint="give a datetime with a time zone, or Unix nanoseconds",
        )
    check_nanoseconds(value, what)
    try:
        time_ns = time_to_ns(value)
    except ConfigError as error:
        raise ConfigError(f"{what}: {error.message}", hint=error.hint) from error
    if not _TIME_MIN_NS <= time_ns <= _TIME_MAX_NS:
        raise ConfigError(
            f"{what} is {described(value, with_type=False)}",
            hint="Unix nanoseconds of the years 1 to 9999",
        )
    return value


def check_limit(value: object, what: str) -> int:
    """Return a limit: a number from 1 on, or -1 for none.

    Raises:
        ConfigError: It is no number, or not a legal one, such as 0, which servers read as no limit.
    """
    return cast("int", LIMIT.check(value, what))


def check_extra(extra: object, what: str) -> Mapping[str, object]:
    """Return fields that natsstream does not know, by the server's names.

    Raises:
        ConfigError: It is no mapping, a name is no text, or a value is no JSON.
    """
    for name, value in _items(extra, what, "give JSON values by the server's names"):
        try:
            json.dumps({check_utf8(name, f"a name in {what}"): value}, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigError(
                f"{what}: {name!r} is {described(value)}", detail=str(error)
            ) from error
        if name == "metadata":  # Keys of the server are kept in it, so it goes out merged.
            _check_words(value, f"metadata in {what}")
    return cast("Mapping[str, object]", extra)


def _check_words(value: object, what: str) -> object:
    for key, item in _items(value, what, "give texts by texts"):
        check_utf8(key, f"a key of {what}")
        check_utf8(item, f"{what}, key {key!r}")
    return value


def _items(value: object, what: str, hint: str) -> Collection[tuple[object, object]]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{what} is {described(value)}", hint=hint)
    return cast("Mapping[object, object]", value).items()


def _check_durations(values: object, what: str) -> object:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise ConfigError(f"{what} is {described(values)}", hint=f"give a list: {what}=[1, 5]")
    waits = enumerate(cast("Sequence[object]", values))
    return tuple(check_duration(wait, f"{what}[{index}]") for index, wait in waits)


def _check_subjects(values: object, what: str) -> object:
    # The hint shows a call, where the field has its bare name.
    name = what.partition(" ")[0]
    return tuple(check_filter(subject) for subject in check_texts(values, name))


def _check_filter(value: object, what: str) -> str:
    return check_filter(check_text(value, what))


def _check_filter_or_empty(value: object, what: str) -> str:
    return _check_filter(value, what) if value != "" else ""


def _check_filled(value: object, what: str) -> str:
    text = check_utf8(value, what)
    if not text:
        raise ConfigError(f"{what} is empty")
    return text


def read_texts(fields: Fields, name: str) -> tuple[str, ...]:
    """Return the texts of a list."""
    return tuple(fields.texts(name))


def _read_durations(fields: Fields, name: str) -> object:
    return tuple(wait / NS_PER_SECOND for wait in fields.integers(name))


def _write_durations(values: Sequence[float | timedelta]) -> object:
    return [duration_ns(wait) for wait in values]


def _read_time(fields: Fields, name: str) -> datetime | int:
    # A datetime has microseconds: finer times stay numbers, so that a copy is exact. But numbers of
    # 1970 are refused, as seconds of a caller: a time of that year loses its last digits.
    time_ns = fields.moment(name)
    return time_ns if time_ns % 1_000 and not is_of_1970(time_ns) else time_from_ns(time_ns)


def _write_time(value: datetime | int) -> str:
    return _as_go_writes(format_rfc3339(time_to_ns(value)))


def _write_position(value: datetime | int) -> str:
    return _as_go_writes(position_text(time_to_ns(value)))


def _as_go_writes(text: str) -> str:
    # Without zeros at the end, so that an echo compares equal.
    return text[:-1].rstrip("0").removesuffix(".") + "Z"


def _microseconds(text: str) -> int:
    # A caller's datetime may be a server's time that was cut.
    return parse_rfc3339(text) // 1_000


def number(minimum: int | None = None, maximum: int = INT64_MAX) -> FieldKind:
    """Return the kind of whole numbers in a range."""

    def check(value: object, what: str) -> object:
        return check_int(value, what, minimum=minimum, maximum=maximum)

    return FieldKind(check=check, read=Fields.integer)


def choice(choices: Sequence[str]) -> FieldKind:
    """Return the kind of one of several words."""
    return FieldKind(check=lambda value, what: check_choice(value, what, choices))


TEXT = FieldKind(check=check_utf8)
FLAG = FieldKind(check=check_bool, read=Fields.flag)
FILLED_TEXT = FieldKind(check=_check_filled)
FILTER = FieldKind(check=_check_filter)
FILTER_OR_EMPTY = FieldKind(check=_check_filter_or_empty)
SUBJECTS = FieldKind(check=_check_subjects, read=read_texts, write=list)
LIMIT = number(-1).never_zero("no limit", "give -1 for no limit, or leave it out for the default")
DURATION = FieldKind(check=check_duration, read=Fields.seconds, write=duration_ns)
TIME = FieldKind(check=check_time, read=_read_time, write=_write_time, meaning=_microseconds)
START_TIME = FieldKind(
    check=check_time, read=_read_time, write=_write_position, meaning=_microseconds
)

BY_TYPE: Mapping[frozenset[object], FieldKind] = {
    frozenset({str}): TEXT,
    frozenset({bool}): FLAG,
    frozenset({int}): number(),
    frozenset({float, timedelta}): DURATION,
    frozenset({datetime, int}): TIME,
    frozenset({Sequence[str]}): FieldKind(check=check_texts, read=read_texts, write=list),
    frozenset({Sequence[float | timedelta]}): FieldKind(
        check=_check_durations, read=_read_durations, write=_write_durations
    ),
    frozenset({Mapping[str, str]}): FieldKind(
        check=_check_words, read=Fields.words, write=dict, meaning=user_metadata
    ),
}
"""The kinds of types, `None` left out."""
