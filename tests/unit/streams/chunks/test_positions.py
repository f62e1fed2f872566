"""A chunk's number is proved by what a server can say, against streams that lose messages."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from natsstream.streams.chunks.positions import Positions, SequenceSearch

gaps = st.lists(st.integers(1, 4), min_size=1, max_size=12)
MOVES = st.lists(st.tuples(st.sampled_from("drdrdp"), st.integers(0, 20)), max_size=40)


@dataclass
class ModelStream:
    """The chunks of one value: all written, those stored, and those that cannot be read."""

    written: list[int]
    unreadable: set[int] = field(default_factory=set[int])
    held: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        self.held = set(self.written)

    def following(self, after: int) -> int | None:
        """Return the next delivery of a consumer, which skips messages that it cannot read."""
        found = (each for each in sorted(self.held - self.unreadable) if each > after)
        return next(found, None)

    def since(self, sequence: int) -> int:
        return len([each for each in self.held if each >= sequence])


def written(steps: list[int]) -> list[int]:
    """Return ascending sequences."""
    return [sum(steps[: at + 1]) for at in range(len(steps))]


@given(
    steps=gaps,
    start=st.integers(0, 12),
    early=st.integers(0, 3),
    unreadable=st.sets(st.integers(0, 12), max_size=2),
    moves=MOVES,
)
def test_what_is_proved_is_in_its_place(
    steps: list[int],
    start: int,
    early: int,
    unreadable: set[int],
    moves: list[tuple[str, int]],
) -> None:
    """d delivers, r removes a chunk, p asks for the proof; the count may lag behind."""
    stream = ModelStream(written(steps))
    start %= len(stream.written)
    before = stream.written[start - 1] if start else 0
    first = max(stream.written[start] - early, before + 1)
    stream.unreadable = {stream.written[each % len(stream.written)] for each in unreadable}
    positions = Positions(len(stream.written), index=start, sequence=first)
    at, taken = first - 1, list[int]()
    for move, number in moves:
        if move == "r":
            stream.held.discard(stream.written[number % len(stream.written)])
        elif move == "p" and taken:
            sequence, count = positions.question
            if stream.since(sequence) - number % 2 == count:
                positions.prove()
        else:
            run: list[int] = []
            while len(run) <= number % 3 and (found := stream.following(at)) is not None:
                run.append(found)
                at = found
            if run:
                taken += run
                positions.take(run)
        if positions.is_proved:
            assert taken == stream.written[start : start + len(taken)]


@given(steps=gaps)
def test_a_value_that_is_all_there_is_proved_by_counts(steps: list[int]) -> None:
    stream = ModelStream(written(steps))
    positions = Positions(len(stream.written))
    for sequence in stream.written:
        positions.take([sequence])
        after, count = positions.question
        assert stream.since(after) == count


def test_chunks_in_a_row_need_no_question() -> None:
    positions = Positions(10, index=2, sequence=7)
    positions.take([7, 8])
    positions.take([9])
    assert (positions.index, positions.is_proved) == (5, True)
    positions.take([11])
    assert not positions.is_proved
    assert positions.question == (12, 4)


def guesses(sequences: list[int], wanted: int) -> tuple[int | None, int]:
    """Return the sequence that is found, and by how many guesses."""
    search = SequenceSearch(wanted, sequences[-1])
    for turn in range(1, 200):
        held = len(sequences) - bisect_left(sequences, search.guess)
        if held == wanted:
            return search.guess, turn
        if not search.learn(held):
            return None, turn
    raise AssertionError("the search does not end")


@given(
    steps=st.lists(st.one_of(st.integers(1, 3), st.integers(1, 1 << 40)), min_size=1, max_size=60),
    wanted=st.integers(1, 60),
)
def test_a_sequence_is_found_wherever_others_wrote(steps: list[int], wanted: int) -> None:
    sequences = written(steps)
    wanted = min(wanted, len(sequences))
    found, turns = guesses(sequences, wanted)
    assert found is not None
    assert turns <= 3 * sequences[-1].bit_length()
    assert len(sequences) - bisect_left(sequences, found) == wanted


def test_a_chunk_far_in_front_of_the_others_is_found_soon() -> None:
    """A billion messages of others behind the first of 8,000 chunks."""
    sequences = [1, *range(1_000_000_000, 1_000_007_999)]
    assert guesses(sequences, 8_000) == (1, 31)


def test_a_sequence_is_found_soon_where_others_wrote_evenly() -> None:
    """Sixteen writers at once, a value of 8,000 chunks."""
    sequences = [1_000_000 + 16 * each + each * each % 7 for each in range(8_000)]
    assert max(guesses(sequences, wanted)[1] for wanted in range(1, 8_000, 97)) <= 8
