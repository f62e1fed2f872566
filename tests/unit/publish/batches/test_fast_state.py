"""The ingest of a fast ingest against a model that remembers each message."""

from __future__ import annotations

import itertools
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from natsstream.errors import ServerError
from natsstream.publish.batches.fast_answers import FinalAck, FlowAck, FlowGap, Refused
from natsstream.publish.batches.fast_state import (
    BatchState,
    IngestSpan,
    IngestState,
    merged,
    without,
)


def state_of(taken: int, *, base: int = 0, written: int | None = None) -> BatchState:
    batch = BatchState(base)
    batch.taken = taken
    batch.written = taken if written is None else written
    return batch


def refused(number: int) -> Refused:
    return Refused(number, ServerError("no"), "S", is_early=False)


def numbers(spans: list[IngestSpan]) -> set[int]:
    return {number for span in spans for number in range(span.first, span.last + 1)}


def test_an_ack_settles_all_before_it_and_sets_the_flow() -> None:
    batch = state_of(10)

    batch.on_ack(FlowAck(0, 4), 500)
    assert (batch.has_started, batch.room(2), batch.stored()) == (True, -2, 0)
    batch.on_ack(FlowAck(8, 2), 500)
    assert (batch.room(2), batch.stored(), batch.unknown()) == (2, 8, [IngestSpan(9, 10)])


def test_an_older_ack_takes_nothing_back_and_a_false_one_gives_nothing() -> None:
    batch = state_of(10)

    batch.on_ack(FlowAck(8, 2), 500)
    batch.on_ack(FlowAck(4, 2), 500)
    assert batch.acked == 8
    batch.on_ack(FlowAck(4_000, 10**9), 500)
    assert (batch.acked, batch.every) == (10, 500)


def test_what_is_behind_the_end_is_not_stored() -> None:
    batch = state_of(10, base=100, written=8)

    batch.on_final(FinalAck(6, 77))

    assert (batch.stored(), batch.last_seq) == (6, 77)
    assert batch.gaps() == [IngestSpan(107, 110)]
    assert batch.unknown() == []


def test_gaps_are_unknown_until_their_leader_is_known_but_for_refusals_and_the_unwritten() -> None:
    batch = BatchState(100, is_sure_of_gaps=False)
    batch.taken, batch.written = 22, 20

    batch.on_refused(refused(4))
    batch.on_refused(refused(9))
    batch.on_gap(FlowGap(10, 12))
    batch.on_final(FinalAck(15, 18))

    assert batch.has_doubtful_gaps
    assert batch.gaps() == [IngestSpan(104, 104), IngestSpan(109, 109), IngestSpan(121, 122)]
    assert batch.unknown() == [IngestSpan(110, 112), IngestSpan(116, 120)]
    assert (batch.stored(), batch.missing()) == (10, 4)

    batch.is_sure_of_gaps = True
    assert not batch.has_doubtful_gaps
    assert batch.gaps() == [IngestSpan(104, 104), IngestSpan(109, 112), IngestSpan(116, 122)]
    assert (batch.unknown(), batch.stored(), batch.missing()) == ([], 10, 12)


def test_batch_without_gaps_needs_no_leader() -> None:
    batch = BatchState(0, is_sure_of_gaps=False)
    batch.taken = batch.written = 5

    batch.on_refused(refused(2))
    batch.on_final(FinalAck(5, 4))

    assert not batch.has_doubtful_gaps
    assert (batch.gaps(), batch.unknown()) == ([IngestSpan(2, 2)], [])


def test_a_later_batch_doubts_as_the_first_one_did() -> None:
    ingest = IngestState("S", 0, is_sure_of_gaps=False)
    for _ in range(2):
        ingest.current.taken = ingest.current.written = 10
        ingest.current.on_final(FinalAck(6, 6))
        ingest.turn()

    report = ingest.report()
    assert (report.gaps, report.missing, report.stored) == ((), 0, 12)
    assert report.unknown == (IngestSpan(7, 10), IngestSpan(17, 20))


def test_a_batch_that_vanished_leaves_what_was_written_unknown() -> None:
    batch = state_of(10, base=100, written=8)
    batch.on_ack(FlowAck(4, 4), 500)

    batch.on_vanished()

    assert (batch.stored(), batch.unknown()) == (4, [IngestSpan(105, 108)])
    assert batch.gaps() == [IngestSpan(109, 110)]


def test_gaps_and_refusals_are_taken_from_the_count_of_the_end() -> None:
    batch = state_of(10)

    assert batch.on_gap(FlowGap(3, 4)) == IngestSpan(3, 4)
    batch.on_refused(refused(7))
    batch.on_final(FinalAck(10, 99))

    assert (batch.stored(), batch.refused_count, batch.refused[0].number) == (7, 1, 7)
    assert batch.gaps() == [IngestSpan(3, 4), IngestSpan(7, 7)]


def test_a_gap_that_repeats_a_refusal_counts_once() -> None:
    batch = state_of(5)

    batch.on_refused(refused(3))
    batch.on_gap(FlowGap(3, 3))
    batch.on_final(FinalAck(5, 9))

    assert (batch.stored(), batch.gaps()) == (4, [IngestSpan(3, 3)])


def test_refusals_that_are_kept_have_a_limit() -> None:
    batch = state_of(5_000)

    for number in range(1, 5_001):
        batch.on_refused(refused(number))

    assert (len(batch.refused), batch.refused_count) == (1_000, 5_000)
    assert batch.gaps() == [IngestSpan(1, 5_000)]


def test_what_was_said_before_a_break_is_not_believed_to_be_all() -> None:
    batch = state_of(10, base=100)
    batch.on_ack(FlowAck(4, 4), 500)
    batch.on_refused(refused(6))

    batch.on_break()
    batch.taken = batch.written = 12
    batch.on_final(FinalAck(12, 99))

    assert batch.unknown() == [IngestSpan(105, 105), IngestSpan(107, 110)]
    assert (batch.stored(), batch.missing(), batch.gaps()) == (6, 1, [IngestSpan(106, 106)])
    assert not batch.is_clean


def test_scattered_gaps_have_a_limit_and_the_numbers_stay_right() -> None:
    every_other = range(2, 2_001, 2)
    ingest = IngestState("S", 0, gaps_kept_max=100)
    batch = ingest.current
    for number in every_other:
        batch.taken = batch.written = number
        batch.on_refused(refused(number))
        batch.on_refused(refused(number))  # As a gap that is told twice.
        batch.on_ack(FlowAck(number, 10), 500)
        assert len(batch._gaps) <= 202  # pyright: ignore[reportPrivateUsage]
    batch.on_final(FinalAck(2_000, 1_000))

    report = ingest.report()
    assert (report.stored, report.missing, report.unknown) == (1_000, 1_000, ())
    assert list(report.gaps) == [IngestSpan(n, n) for n in every_other[:100]]
    ingest.turn()
    assert ingest.report() == report


def test_gaps_that_are_not_settled_are_all_kept() -> None:
    batch = BatchState(0, gaps_kept_max=100)
    batch.taken = batch.written = 2_000
    for number in range(2, 2_001, 2):
        batch.on_refused(refused(number))

    batch.on_vanished()

    assert (batch.missing(), len(batch.unknown()), batch.stored()) == (1_000, 1_000, 0)


def test_a_report_has_all_batches() -> None:
    ingest = IngestState("S", 40)
    ingest.current.taken = ingest.current.written = 5
    ingest.current.on_final(FinalAck(5, 45))
    ingest.turn()
    ingest.current.taken = ingest.current.written = 4
    ingest.current.on_final(FinalAck(2, 47))
    ingest.turn()
    ingest.current.taken, ingest.current.written = 3, 3
    ingest.current.on_vanished()

    report = ingest.report()

    assert (report.sent, report.stored, report.batches) == (12, 7, 3)
    assert (report.gaps, report.unknown) == ((IngestSpan(8, 9),), (IngestSpan(10, 12),))
    assert (report.first_seq, report.last_seq) == (41, 47)
    assert not report.is_complete


def test_a_first_sequence_is_told_only_where_nobody_else_wrote() -> None:
    ingest = IngestState("S", 40)
    ingest.current.taken = ingest.current.written = 5
    ingest.current.on_final(FinalAck(5, 46))

    report = ingest.report()

    assert (report.first_seq, report.is_complete) == (None, True)


SPANS = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 8)).map(
        lambda pair: IngestSpan(pair[0], pair[0] + pair[1])
    )
)


@given(SPANS)
def test_merged_spans_hold_the_same_numbers_in_order_and_apart(spans: list[IngestSpan]) -> None:
    result = merged(spans)

    assert numbers(result) == numbers(spans)
    assert all(one.last + 1 < other.first for one, other in itertools.pairwise(result))


@given(SPANS, SPANS)
def test_without_takes_exactly_the_holes_away(
    spans: list[IngestSpan], holes: list[IngestSpan]
) -> None:
    assert numbers(without(spans, merged(holes))) == numbers(spans) - numbers(holes)


def test_taking_holes_away_looks_at_each_a_few_times_however_many_there_are() -> None:
    looks = 0

    class Holes(list[IngestSpan]):
        def __getitem__(self, at: Any) -> Any:
            nonlocal looks
            looks += 1
            return cast("Any", super().__getitem__(at))

    spans = [IngestSpan(10 * at, 10 * at + 6) for at in range(10_000)]
    holes = Holes(IngestSpan(10 * at + 2, 10 * at + 3) for at in range(10_000))

    assert len(without(spans, holes)) == 20_000
    assert looks < 20 * 10_000


@given(
    taken=st.integers(1, 40),
    unwritten=st.integers(0, 5),
    answers=st.lists(
        st.one_of(
            st.integers(0, 45).map(lambda number: FlowAck(number, 3)),
            st.tuples(st.integers(0, 45), st.integers(0, 45)).map(lambda p: FlowGap(*p)),
            st.integers(0, 45).map(refused),
            st.none(),
        )
    ),
    end=st.one_of(st.none(), st.integers(0, 60)),
)
def test_every_message_is_stored_or_not_or_unknown_whatever_is_answered(
    taken: int, unwritten: int, answers: list[FlowAck | FlowGap | Refused | None], end: int | None
) -> None:
    batch = state_of(taken, written=max(taken - unwritten, 1))
    for answer in answers:
        if isinstance(answer, FlowAck):
            batch.on_ack(answer, 500)
        elif isinstance(answer, FlowGap):
            batch.on_gap(answer)
        elif answer is None:
            batch.on_break()
        else:
            batch.on_refused(answer)
    if end is None:
        batch.on_vanished()
    else:
        batch.on_final(FinalAck(end, 9))

    gaps, unknown = numbers(batch.gaps()), numbers(batch.unknown())
    assert not gaps & unknown
    assert (gaps | unknown) <= set(range(1, taken + 1))
    assert batch.stored() == taken - len(gaps) - len(unknown)
