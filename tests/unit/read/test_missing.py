"""Why sequences are missing, against a set for each reason."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.read.missing import MissingSequences, Reason, holes_between

LAST = 30
sequences = st.frozensets(st.integers(1, LAST))


@dataclass(frozen=True)
class Told:
    """What a server has said of a stream's 30 sequences.

    Attributes:
        first_held: The first sequence that it holds.
        deleted: What it lists as deleted; None where it was not asked.
        lost: What it reports as lost.
        eviction_is_loss: What is missing before the first counts as lost.
    """

    first_held: int
    deleted: frozenset[int] | None
    lost: frozenset[int]
    eviction_is_loss: bool

    def reason(self, sequence: int) -> Reason:
        """Say why one sequence is missing."""
        if sequence in self.lost:
            return "lost"
        if sequence < self.first_held:
            return "lost" if self.eviction_is_loss else "deleted"
        return "deleted" if self.deleted is None or sequence in self.deleted else "lost"

    def holes(self) -> MissingSequences:
        """Return what was said, as the reader learns it."""
        holes = MissingSequences(eviction_is_loss=self.eviction_is_loss)
        holes.learn(first_held=self.first_held, deleted=self.deleted, lost=self.lost)
        return holes


told = st.builds(Told, st.integers(0, LAST + 1), st.none() | sequences, sequences, st.booleans())


@given(told, st.integers(1, LAST), st.integers(1, LAST + 1))
def test_stretches_cover_the_hole_with_the_reason_of_each_sequence(
    told: Told, start: int, stop: int
) -> None:
    spread: list[Reason] = []
    at = start
    for reason, end in told.holes().reasons(start, stop):
        assert at < end <= stop
        spread.extend(reason for _ in range(at, end))
        at = end

    assert spread == [told.reason(sequence) for sequence in range(start, stop)]


@given(told, st.integers(1, LAST), st.integers(1, LAST + 1))
def test_a_hole_is_explained_when_the_list_has_all_of_it(told: Told, start: int, stop: int) -> None:
    held_back = range(max(start, told.first_held), stop)
    known = told.lost | (told.deleted or frozenset())

    explained = told.holes().explain(start, stop)

    assert explained == (told.deleted is not None and all(each in known for each in held_back))


@given(sequences, sequences, sequences, sequences)
def test_a_newer_list_takes_the_place_of_the_older_and_losses_stay(
    deleted: frozenset[int], lost: frozenset[int], newer: frozenset[int], later: frozenset[int]
) -> None:
    holes = MissingSequences()
    holes.learn(deleted=deleted, lost=lost)
    holes.learn(deleted=newer, lost=later)

    for sequence in range(1, LAST + 1):
        is_deleted = sequence in newer and sequence not in lost | later
        assert [*holes.reasons(sequence, sequence + 1)] == [
            ("deleted" if is_deleted else "lost", sequence + 1)
        ]


def test_first_sequence_never_goes_back() -> None:
    holes = MissingSequences(eviction_is_loss=True)
    holes.learn(first_held=9)
    holes.learn(first_held=3)

    assert holes.evicted_before == 9


def test_holes_of_a_billion_sequences_are_told_at_once() -> None:
    """A loop over the sequences would run into the test's timeout."""
    holes = MissingSequences()
    holes.learn(first_held=10**12, deleted=(), lost=[5, 6, 10**9])

    assert [*holes.reasons(1, 10**12 + 10**9)] == [
        ("deleted", 5),
        ("lost", 7),
        ("deleted", 10**9),
        ("lost", 10**9 + 1),
        ("deleted", 10**12),
        ("lost", 10**12 + 10**9),
    ]


@given(sequences, st.integers(1, 5))
def test_holes_lie_between_the_sequences(delivered: frozenset[int], start: int) -> None:
    ascending = sorted(each for each in delivered if each >= start)
    holes = holes_between(ascending, start)

    missing = {each for first, stop in holes for each in range(first, stop)}
    assert missing == set(range(start, max(ascending, default=0))) - delivered
    assert all(first < stop for first, stop in holes)


@pytest.mark.parametrize("delivered", [[], [3], [3, 4, 5]])
def test_no_hole_is_no_hole(delivered: list[int]) -> None:
    assert holes_between(delivered, 3) == []


@given(sequences, sequences, st.integers(1, LAST), st.integers(1, LAST))
def test_evicted_sequences_are_lost_but_for_replaced_records(
    records: frozenset[int], again: frozenset[int], start: int, first_held: int
) -> None:
    holes = MissingSequences(eviction_is_loss=True)
    holes.learn(first_held=first_held, records=[(each, each) for each in records])
    holes.learn(records=[(each, each) for each in again])

    for tell in (holes.evictions, holes.reasons):
        told: dict[int, Reason] = {}
        at = start
        for reason, stop in tell(start, max(start, first_held)):
            assert stop > at
            told |= dict.fromkeys(range(at, stop), reason)
            at = stop
        assert told == {
            each: "deleted" if each in records | again else "lost"
            for each in range(start, max(start, first_held))
        }


def test_longer_list_of_records_counts_beside_the_shorter() -> None:
    holes = MissingSequences(eviction_is_loss=True)
    holes.learn(first_held=9, records=[(1, 1)])
    holes.learn(records=[(1, 4), (6, 6)])

    told = [*holes.evictions(1, 9)]
    assert told == [("deleted", 2), ("deleted", 5), ("lost", 6), ("deleted", 7), ("lost", 9)]
