"""Bounds of predicates: never narrower than what the predicates are true of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from pyspark_natsstream.offsets import Offset
from pyspark_natsstream.plan import StreamState
from pyspark_natsstream.predicates import CLOCK_ERROR_NS, SUBJECTS_MAX, Bounds

from natsstream.api.names import covers

if TYPE_CHECKING:
    from collections.abc import Sequence

CREATED_NS = 1_795_237_200_000_000_000
MINUTE_NS = 60 * 10**9
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SUBJECTS = ["o.eu", "o.eu.1", "o.eu.2", "o.us.1", "o.$ctl.p.x", "p", "o.*.1"]
COMPARED: tuple[Any, ...] = (
    EqualTo,
    EqualNullSafe,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
)


@dataclass
class Row:
    """A message of the stream; `time_ns` is what the server keeps."""

    sequence: int
    time_ns: int
    subject: str

    @property
    def time(self) -> datetime:
        return EPOCH + timedelta(microseconds=self.time_ns // 1000)


class Stream:
    """A stream whose messages come by time, as `Lookups`."""

    def __init__(self, times_ns: Sequence[int]) -> None:
        self.rows = [
            Row(number + 1, time_ns, SUBJECTS[number % len(SUBJECTS)])
            for number, time_ns in enumerate(times_ns)
        ]
        self.state = StreamState(
            stream="S",
            created_ns=CREATED_NS,
            messages=len(self.rows),
            stored_bytes=len(self.rows),
            first_seq=1,
            last_seq=len(self.rows),
        )

    def sequence_at(self, time_ns: int) -> int | None:
        """As the server answers, which searches by halves."""
        low, high = 0, len(self.rows)
        while low < high:
            middle = (low + high) // 2
            if self.rows[middle].time_ns >= time_ns:
                high = middle
            else:
                low = middle + 1
        return low + 1 if low < len(self.rows) else None

    def first_of_newest(self, count: int, last_seq: int) -> int:
        raise AssertionError((count, last_seq))

    def read(self, predicates: Sequence[Filter]) -> list[Row]:
        """Return the messages that a read with these bounds gets from the server."""
        bounds = Bounds.of(predicates)
        offset = Offset(stream="S", next_seq=1, created_ns=CREATED_NS)
        stop = Offset(stream="S", next_seq=self.state.stop_seq, created_ns=CREATED_NS)
        first, end = bounds.narrowed(offset, stop, self.state, self)
        filters = bounds.filtered((), None)
        if filters is None:
            return []
        return [
            row
            for row in self.rows[first.next_seq - 1 : end.next_seq - 1]
            if not filters or any(covers(each, row.subject) for each in filters)
        ]


def holds(predicate: Any, row: Row) -> bool:
    """What Spark makes of a predicate; null is false."""
    compared: Any = predicate.child if isinstance(predicate, Not) else predicate
    value: Any = getattr(row, compared.attribute[0])
    match predicate:
        case Not(child=child):
            return not holds(child, row)
        case EqualTo(value=wanted) | EqualNullSafe(value=wanted):
            return value == wanted
        case GreaterThan(value=wanted):
            return value > wanted
        case GreaterThanOrEqual(value=wanted):
            return value >= wanted
        case LessThan(value=wanted):
            return value < wanted
        case LessThanOrEqual(value=wanted):
            return value <= wanted
        case In(value=wanted):
            return value in wanted
        case StringStartsWith(value=wanted):
            return value.startswith(wanted)
        case IsNull():
            return False
        case _:
            return True


def numbers(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Filter]:
    compared: st.SearchStrategy[Filter] = st.sampled_from(COMPARED).flatmap(
        lambda kind: values.map(lambda value: kind((name,), value))
    )
    some = st.lists(values | st.none(), max_size=3).map(lambda found: In((name,), tuple(found)))
    return compared | some


# A step back of a clock, ties, and steps below a microsecond.
steps = st.sampled_from([-MINUTE_NS + 1, 0, 1, 999, 1000, 2 * MINUTE_NS])
times = st.integers(-5 * 10**6, 10**9).map(
    lambda us: EPOCH + timedelta(microseconds=CREATED_NS // 1000 + us)
)
sequences = numbers("sequence", st.integers(-1, 12) | st.just(2**63 - 1))
subjects = st.sampled_from([*SUBJECTS, "o", "o.eu.", "o.e", "", "a b", "o.>"])
named: st.SearchStrategy[Filter] = st.one_of(
    subjects.map(lambda text: EqualTo(("subject",), text)),
    subjects.map(lambda text: StringStartsWith(("subject",), text)),
    st.lists(subjects | st.none(), max_size=4).map(lambda found: In(("subject",), tuple(found))),
)
plain = st.one_of(sequences, numbers("time", times), named)
predicates_drawn = st.lists(plain | plain.map(Not), min_size=1, max_size=3)


@given(st.lists(steps, min_size=1, max_size=12), predicates_drawn)
def test_read_with_bounds_has_every_row_that_the_predicates_are_true_of(
    moves: list[int], predicates: list[Filter]
) -> None:
    """Times may go back by less than the error of a clock."""
    highest, times_ns = CREATED_NS, list[int]()
    for move in moves:
        times_ns.append(highest + move)
        highest = max(highest, times_ns[-1])
    stream = Stream(times_ns)

    read = stream.read(predicates)

    wanted = [row for row in stream.rows if all(holds(each, row) for each in predicates)]
    assert [row for row in read if row in wanted] == wanted


def steady() -> Stream:
    """Ten messages, an hour apart."""
    return Stream([CREATED_NS + number * 60 * MINUTE_NS for number in range(10)])


@pytest.mark.parametrize(
    ("predicates", "sequences"),
    [
        ([EqualTo(("sequence",), 4)], [4]),
        ([EqualNullSafe(("sequence",), 4)], [4]),
        ([GreaterThan(("sequence",), 4), LessThan(("sequence",), 7)], [5, 6]),
        ([GreaterThanOrEqual(("sequence",), 4), LessThanOrEqual(("sequence",), 5)], [4, 5]),
        ([In(("sequence",), (8, None, 6))], [6, 7, 8]),
        ([LessThan(("sequence",), 1)], []),
        ([GreaterThan(("sequence",), 2**63 - 1)], []),
        ([EqualTo(("subject",), "o.eu.1")], [2, 9]),
        ([StringStartsWith(("subject",), "o.eu.")], [2, 3, 9, 10]),
        ([StringStartsWith(("subject",), "o.e")], [1, 2, 3, 4, 5, 7, 8, 9, 10]),
        ([StringStartsWith(("subject",), "o.eu."), EqualTo(("subject",), "p")], []),
        ([In(("subject",), ("p", "o.eu", None))], [1, 6, 8]),
    ],
)
def test_bound_reads_no_more_than_it_says(predicates: list[Filter], sequences: list[int]) -> None:
    assert [row.sequence for row in steady().read(predicates)] == sequences


@pytest.mark.parametrize(
    ("kind", "sequences"),
    [
        (EqualTo, [5]),
        (GreaterThan, [5, 6, 7, 8, 9, 10]),
        (GreaterThanOrEqual, [5, 6, 7, 8, 9, 10]),
        (LessThan, [1, 2, 3, 4, 5]),
        (LessThanOrEqual, [1, 2, 3, 4, 5]),
    ],
)
def test_bound_on_the_time_reads_the_clock_error_more(kind: Any, sequences: list[int]) -> None:
    stream = steady()

    read = stream.read([kind(("time",), stream.rows[4].time)])

    assert [row.sequence for row in read] == sequences


class Asked:
    """Remembers the times that were looked up."""

    def __init__(self) -> None:
        self.times_ns: list[int] = []

    def sequence_at(self, time_ns: int) -> int | None:
        self.times_ns.append(time_ns)
        return None

    def first_of_newest(self, count: int, last_seq: int) -> int:
        raise AssertionError((count, last_seq))


@pytest.mark.parametrize(
    ("kind", "first_ns", "stop_ns"),
    [
        (EqualTo, 7_000, 8_000),
        (GreaterThan, 8_000, None),
        (GreaterThanOrEqual, 7_000, None),
        (LessThan, None, 7_000),
        (LessThanOrEqual, None, 8_000),
    ],
)
def test_microsecond_stands_for_its_thousand_nanoseconds(
    kind: Any, first_ns: int | None, stop_ns: int | None
) -> None:
    asked, moment = Asked(), EPOCH + timedelta(microseconds=CREATED_NS // 1000 + 7)
    offset = Offset(stream="S", next_seq=1, created_ns=CREATED_NS)

    Bounds.of([kind(("time",), moment)]).narrowed(offset, offset, steady().state, asked)

    wanted = [] if first_ns is None else [CREATED_NS + first_ns - CLOCK_ERROR_NS]
    wanted += [] if stop_ns is None else [CREATED_NS + stop_ns + CLOCK_ERROR_NS]
    assert asked.times_ns == wanted


@pytest.mark.parametrize(
    ("year", "sequences"), [(1, [list(range(1, 11)), []]), (9999, [[], list(range(1, 11))])]
)
def test_time_that_the_server_cannot_hold_is_before_or_after_every_message(
    year: int, sequences: list[list[int]]
) -> None:
    moment, stream = datetime(year, 1, 1, tzinfo=UTC), steady()

    found = [stream.read([kind(("time",), moment)]) for kind in (GreaterThan, LessThan)]

    assert [[row.sequence for row in read] for read in found] == sequences


@pytest.mark.parametrize(
    "predicate",
    [
        Not(EqualTo(("sequence",), 4)),
        Not(In(("subject",), ("p",))),
        EqualTo(("data", "sequence"), 4),
        EqualTo(("stream",), "S"),
        GreaterThan(("sequence",), 4.5),
        EqualTo(("sequence",), None),
        EqualTo(("sequence",), True),  # noqa: FBT003
        GreaterThan(("time",), datetime(2026, 11, 21)),  # noqa: DTZ001 - Without a zone, on purpose.
        In(("sequence",), ()),
        In(("sequence",), (1, "2")),
        IsNull(("sequence",)),
        IsNotNull(("subject",)),
        EqualTo(("subject",), "o.*.1"),
        EqualTo(("subject",), "o.\ufffd"),
        EqualTo(("subject",), "a b"),
        EqualTo(("subject",), ""),
        StringStartsWith(("subject",), "o"),
        StringStartsWith(("subject",), "o.>.x"),
        StringEndsWith(("subject",), ".1"),
        StringContains(("subject",), "eu"),
        In(("subject",), tuple(f"o.{number}" for number in range(SUBJECTS_MAX + 1))),
    ],
)
def test_predicate_that_no_range_or_filter_stands_for_is_left_to_spark(predicate: Filter) -> None:
    assert Bounds.of([predicate]) == Bounds()


@pytest.mark.parametrize(
    ("own", "predicate", "filters"),
    [
        (("o.eu.*", "p"), EqualTo(("subject",), "o.eu.1"), ("o.eu.1",)),
        (("o.eu.*", "p"), StringStartsWith(("subject",), "o."), ("o.eu.*",)),
        (("o.*.1",), StringStartsWith(("subject",), "o.eu."), ("o.*.1",)),
        (("p",), EqualTo(("subject",), "o.eu.1"), None),
        ((), EqualTo(("subject",), "o.$ctl.p.x"), ()),
        (("o.>",), In(("subject",), ("p", "o.$ctl.p.x")), ("o.>",)),
        ((), StringStartsWith(("subject",), "o.$ctl."), ()),
        ((), StringStartsWith(("subject",), "o."), ("o.>",)),
    ],
)
def test_filters_of_predicates_keep_those_of_the_options_and_show_no_control_records(
    own: tuple[str, ...], predicate: Filter, filters: tuple[str, ...] | None
) -> None:
    assert Bounds.of([predicate]).filtered(own, "o.$ctl.>") == filters
