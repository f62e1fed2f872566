"""Predicates that Spark hands to a batch read; pure rules.

Law: a predicate only narrows what is read. Spark evaluates each of them again, so a bound may be
wider than its predicate and never narrower. A predicate of another form or type is left to Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Self, TypeAlias

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from natsstream.api.names import check_filter, collide, covers, drop_covered, is_literal
from natsstream.errors import SubjectError
from natsstream.units import NS_PER_SECOND, time_to_ns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.datasource import Filter

    from pyspark_natsstream.offsets import Offset
    from pyspark_natsstream.plan import Lookups, StreamState

SUBJECTS_MAX = 100
"""Subjects of one predicate at most: a consumer compares each message with its filters."""

CLOCK_ERROR_NS = 60 * NS_PER_SECOND
"""Times of a stream ascend but for the clocks of its leaders, which may differ by this much."""

_UNIX_NS_MAX = 2**63 - 1
_REPLACED = "\ufffd"  # In the column `subject`, for bytes that are no UTF-8.

_Interval: TypeAlias = tuple[int | None, int | None]
_EVERYTHING: _Interval = (None, None)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The messages that predicates can be true of.

    Attributes:
        first_seq: First sequence; None without a bound.
        last_seq: Last sequence, inclusive.
        first_us: First time, in Unix microseconds as Spark's column has it.
        last_us: Last time, inclusive.
        subjects: Subject filters of each predicate; a message matches one of each.
    """

    first_seq: int | None = None
    last_seq: int | None = None
    first_us: int | None = None
    last_us: int | None = None
    subjects: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, predicates: Iterable[Filter]) -> Self:
        """Return the bounds of predicates that are all true."""
        found = {"sequence": _EVERYTHING, "time": _EVERYTHING}
        subjects: list[tuple[str, ...]] = []
        for each in predicates:
            path: tuple[str, ...] = getattr(each, "attribute", ())
            column = path[0] if len(path) == 1 else ""  # Not a field of `data`.
            if column in found:
                (first, last), (low, high) = found[column], _interval(each)
                found[column] = _later(first, low), _earlier(last, high)
            elif column == "subject" and (filters := _filters(each)):
                subjects.append(filters)
        return cls(*found["sequence"], *found["time"], tuple(subjects))

    def narrowed(
        self, start: Offset, stop: Offset, state: StreamState, lookups: Lookups
    ) -> tuple[Offset, Offset]:
        """Return the part of a read that the bounds on sequence and time leave.

        Args:
            start: Where the read begins.
            stop: Where it ends.
            state: The stream now.
            lookups: Asked for each bound on the time.
        """
        first, next_seq = start.next_seq, stop.next_seq
        if self.first_seq is not None:
            first = max(first, self.first_seq)
        if self.last_seq is not None:
            next_seq = min(next_seq, self.last_seq + 1)
        if self.first_us is not None:
            begin_ns = self.first_us * 1000 - CLOCK_ERROR_NS
            first = max(first, _sequence_at(begin_ns, state, lookups))
        if self.last_us is not None:
            # Spark's microsecond has a thousand nanoseconds of the stream.
            end_ns = (self.last_us + 1) * 1000 + CLOCK_ERROR_NS
            next_seq = min(next_seq, _sequence_at(end_ns, state, lookups))
        return replace(start, next_seq=first), replace(stop, next_seq=max(next_seq, 1))

    def filtered(self, subjects: tuple[str, ...], hidden: str | None) -> tuple[str, ...] | None:
        """Return the filters of a read that the bounds on subjects leave; None for no message.

        Args:
            subjects: The filters of its options; empty for every subject.
            hidden: The subjects of control records that the read leaves out; a filter that names
                them would show them. None for none.
        """
        found = subjects or (">",)
        for wanted in self.subjects:
            if hidden is not None and any(covers(hidden, each) for each in wanted):
                continue
            found = drop_covered(
                narrow if covers(wide, narrow) else wide
                for narrow in wanted
                for wide in found
                if collide(wide, narrow)
            )
        return None if not found else subjects if found == (">",) else found


def _sequence_at(time_ns: int, state: StreamState, lookups: Lookups) -> int:
    if time_ns <= 0:
        return 1
    found = lookups.sequence_at(time_ns) if time_ns <= _UNIX_NS_MAX else None
    return state.stop_seq if found is None else found


def _interval(predicate: Filter) -> _Interval:
    """Return the first and the last number of a predicate, both inclusive."""
    match predicate:
        case EqualTo(value=value) | EqualNullSafe(value=value):
            return _number(value), _number(value)
        case GreaterThanOrEqual(value=value):
            return _number(value), None
        case LessThanOrEqual(value=value):
            return None, _number(value)
        case GreaterThan(value=value):
            low = _number(value)
            return None if low is None else low + 1, None
        case LessThan(value=value):
            high = _number(value)
            return None, None if high is None else high - 1
        case In(value=values):
            # A null is equal to nothing.
            numbers = [_number(value) for value in values if value is not None]
            known = [number for number in numbers if number is not None]
            is_whole = bool(known) and len(known) == len(numbers)
            return (min(known), max(known)) if is_whole else _EVERYTHING
        case _:
            return _EVERYTHING


def _number(value: object) -> int | None:
    """Return a sequence, or the Unix microseconds of a time; None for what is neither."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return time_to_ns(value) // 1000
    return value if type(value) is int else None


def _filters(predicate: Filter) -> tuple[str, ...]:
    """Return subject filters that match every subject of a predicate; none if there are none."""
    match predicate:
        case EqualTo(value=value) | EqualNullSafe(value=value):
            texts: list[object] = [value]
        case In(value=values):
            texts = [value for value in values if value is not None]
        case StringStartsWith(value=str(value)):
            parent = value.rpartition(".")[0]  # The last token may be the begin of one.
            return (f"{parent}.>",) if _is_exact(parent) else ()
        case _:
            return ()
    exact = [text for text in texts if isinstance(text, str) and _is_exact(text)]
    return tuple(dict.fromkeys(exact)) if len(texts) == len(exact) <= SUBJECTS_MAX else ()


def _is_exact(subject: str) -> bool:
    """Return True if a subject is a filter for itself alone."""
    try:
        check_filter(subject)
    except SubjectError:
        return False
    return is_literal(subject) and _REPLACED not in subject


def _later(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _earlier(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
