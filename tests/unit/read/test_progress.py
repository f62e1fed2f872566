"""Progress of a read, against sets: every sequence is delivered once, or stands in one gap."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.read.missing import MissingSequences
from natsstream.read.progress import GAPS_KEPT_MAX, Gap, OutOfOrderError, Progress


@dataclass(frozen=True)
class Stored:
    """A range and what a stream holds of it.

    Attributes:
        first: First sequence wanted.
        last: Last sequence wanted.
        held: Sequences that the stream has.
        lost: Sequences that the server reports as lost.
        cuts: After how many messages a run ends.
        breaks: Runs after which the connection breaks.
    """

    first: int
    last: int
    held: frozenset[int]
    lost: frozenset[int]
    cuts: tuple[int, ...]
    breaks: frozenset[int]

    def runs(self) -> list[list[int]]:
        """Return the held sequences as they arrive."""
        left, runs = sorted(self.held), list[list[int]]()
        for cut in self.cuts:
            runs.append(left[:cut])
            left = left[cut:]
        return [run for run in [*runs, left] if run]


@st.composite
def stored(draw: st.DrawFn) -> Stored:
    """Return a range of up to 40 sequences with holes of all kinds."""
    first = draw(st.integers(1, 100))
    sequences = range(first, first + draw(st.integers(0, 40)))
    subsets = st.frozensets(st.sampled_from(sequences)) if sequences else st.just(frozenset[int]())
    held = draw(subsets)
    return Stored(
        first,
        first + len(sequences) - 1,
        held,
        draw(subsets) | draw(st.frozensets(st.integers(1, 200), max_size=3)),
        draw(st.lists(st.integers(1, 8), max_size=6).map(tuple)),
        draw(st.frozensets(st.integers(0, 6))),
    )


def holes(what: Stored) -> MissingSequences:
    """Return what a server would say of the range."""
    known = MissingSequences()
    everything = set(range(what.first, what.last + 1))
    known.learn(deleted=everything - what.held, lost=what.lost)
    return known


def accept(progress: Progress, run: list[int], delivery: int) -> None:
    """Hand a run over as the reader does."""
    progress.accept(run, first=run[0], last=run[-1], first_delivery=delivery, count=len(run))


def deliver(progress: Progress, what: Stored) -> None:
    """Hand everything over; after a break a new consumer numbers from 1."""
    progress.begin()
    delivery = 1
    for index, run in enumerate(what.runs()):
        accept(progress, run, delivery)
        delivery += len(run)
        if index in what.breaks:
            progress.begin()
            delivery = 1


def sequences_of(gaps: list[Gap], reason: str) -> list[int]:
    """Return every sequence of the gaps with a reason."""
    return [
        at for gap in gaps if gap.reason == reason for at in range(gap.first_seq, gap.last_seq + 1)
    ]


@given(stored())
def test_every_sequence_is_delivered_or_in_one_gap(what: Stored) -> None:
    progress = Progress(what.first, what.last, has_filters=False, missing=holes(what))

    deliver(progress, what)
    progress.finish(held_last=what.last)

    missing = sorted(set(range(what.first, what.last + 1)) - what.held)
    report = progress.report
    assert progress.is_done
    assert report.messages == len(what.held)
    assert sequences_of(report.gaps, "lost") == [at for at in missing if at in what.lost]
    assert sequences_of(report.gaps, "deleted") == [at for at in missing if at not in what.lost]
    assert (report.lost, report.deleted) == (
        len(sequences_of(report.gaps, "lost")),
        len(sequences_of(report.gaps, "deleted")),
    )
    assert [gap.first_seq for gap in report.gaps] == sorted(gap.first_seq for gap in report.gaps)


@given(stored(), st.integers(0, 150))
def test_what_lies_beyond_the_streams_end_is_lost(what: Stored, held_last: int) -> None:
    held_last = max(held_last, max(what.held, default=0))
    progress = Progress(what.first, what.last, has_filters=False, missing=MissingSequences())

    deliver(progress, what)
    progress.finish(held_last=held_last)

    missing = set(range(what.first, what.last + 1)) - what.held
    lost = {at for at in missing if at > held_last}
    assert set(sequences_of(progress.report.gaps, "lost")) == lost
    assert set(sequences_of(progress.report.gaps, "deleted")) == missing - lost
    assert progress.is_done


@given(stored(), st.integers(0, 150))
def test_filters_hide_what_is_deleted_and_not_what_is_lost(what: Stored, held_last: int) -> None:
    held_last = max(held_last, max(what.held, default=0))
    progress = Progress(what.first, what.last, has_filters=True, missing=holes(what))

    deliver(progress, what)
    progress.finish(held_last=held_last)

    start = max([what.first, held_last + 1, *(at + 1 for at in what.held)])
    assert progress.report.deleted == 0
    assert sequences_of(progress.report.gaps, "lost") == list(range(start, what.last + 1))
    assert progress.report.messages == len(what.held)
    assert progress.is_done


@given(stored(), st.integers(0, 150), st.integers(0, 150))
def test_what_lies_before_the_streams_begin_is_lost_up_to_the_ranges_end(
    what: Stored, first_held: int, again: int
) -> None:
    progress = Progress(what.first, what.last, has_filters=False, missing=MissingSequences())

    progress.lose_until(first_held)
    progress.lose_until(again)

    until = min(max(first_held, again), what.last + 1)
    assert sequences_of(progress.report.gaps, "lost") == list(range(what.first, until))
    assert progress.next_seq == max(what.first, until)


@given(stored())
def test_first_loss_is_the_first_lost_gap(what: Stored) -> None:
    progress = Progress(what.first, what.last, has_filters=False, missing=holes(what))

    deliver(progress, what)
    progress.finish(held_last=what.last)

    lost = [gap for gap in progress.report.gaps if gap.reason == "lost"]
    assert progress.loss == (lost[0] if lost else None)


def test_filters_hide_evicted_messages_only_between_matches() -> None:
    evicted = MissingSequences(eviction_is_loss=True)
    evicted.learn(first_held=8)
    progress = Progress(1, 20, has_filters=True, missing=evicted)

    accept(progress, [10, 15], 1)

    assert progress.report.gaps == [Gap(1, 7, "lost")]


@pytest.mark.parametrize(
    ("run", "delivery"),
    [
        pytest.param([13], 4, id="a delivery is missing"),
        pytest.param([13], 2, id="a delivery comes again"),
        pytest.param([12], 3, id="a message comes again"),
        pytest.param([11], 3, id="sequences go backwards"),
        pytest.param([13, 13], 3, id="one message twice in a run"),
    ],
)
def test_disorder_is_refused_and_nothing_is_taken(run: list[int], delivery: int) -> None:
    progress = Progress(11, 20, has_filters=False, missing=MissingSequences())
    accept(progress, [11, 12], 1)

    with pytest.raises(OutOfOrderError):
        accept(progress, run, delivery)

    assert progress.next_seq == 13
    assert progress.report.messages == 2
    accept(progress, [13], 3)
    assert progress.report.messages == 3


def test_gaps_beyond_a_thousand_are_counted_and_not_kept() -> None:
    count = GAPS_KEPT_MAX + 7
    progress = Progress(1, 2 * count, has_filters=False, missing=MissingSequences())
    progress.begin()

    accept(progress, list(range(2, 2 * count + 1, 2)), 1)

    report = progress.report
    assert (len(report.gaps), report.gaps_dropped) == (GAPS_KEPT_MAX, 7)
    assert report.deleted == count
    assert report.gaps[0] == Gap(1, 1, "deleted")


def test_gap_counts_both_ends() -> None:
    assert len(Gap(3, 5, "deleted")) == 3


def test_empty_range_is_done_from_the_start() -> None:
    assert Progress(5, 4, has_filters=False, missing=MissingSequences()).is_done


def test_hidden_messages_are_counted_apart_and_are_no_gap() -> None:
    progress = Progress(1, 6, has_filters=False, missing=MissingSequences())
    progress.begin()
    progress.accept([], first=1, last=4, first_delivery=1, count=4, hidden=1)
    progress.accept([5, 6], first=5, last=6, first_delivery=5, count=2, hidden=2)

    assert progress.is_done
    report = progress.report
    assert (report.messages, report.skipped, report.deleted, report.gaps) == (3, 3, 0, [])
