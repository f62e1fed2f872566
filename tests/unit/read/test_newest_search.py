"""Unit tests of the search for the newest messages: against a set of sequences."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from natsstream.read.newest_search import SURPLUS_MIN, LastSequences, search_newest

FIRST_MAX = 5_000
clumps = st.lists(
    st.tuples(st.integers(1, 10**7), st.integers(1, 4_000), st.integers(1, 9)), max_size=4
)


def sequences_of(places: list[tuple[int, int, int]]) -> list[int]:
    """Return sequences in clumps: where each begins, how many it has, and how far apart."""
    return sorted({start + at * step for start, count, step in places for at in range(count)})


def search(
    newest: int, first: int, last: int, count_from: Callable[[int], int]
) -> tuple[int, list[int]]:
    """Return where the range begins, and the sequences that were counted from."""
    steps, asked = search_newest(newest, first, last), list[int]()
    try:
        at = next(steps)
        while True:
            asked.append(at)
            at = steps.send(count_from(at))
    except StopIteration as found:
        return found.value, asked


@given(clumps, st.integers(1, 12_000), st.integers(1, FIRST_MAX), st.integers(0, 1_000))
def test_range_has_all_of_the_newest_and_few_others(
    places: list[tuple[int, int, int]], newest: int, first: int, empty: int
) -> None:
    held = [each for each in sequences_of(places) if each >= first]
    last = max(held, default=first) + empty

    start, asked = search(newest, first, last, lambda at: len(held) - bisect_left(held, at))

    inside = len(held) - bisect_left(held, start)
    assert first <= start <= last
    assert inside >= min(newest, len(held))
    assert inside <= newest + max(newest // 8, SURPLUS_MIN)
    assert all(first <= at <= last for at in asked)
    assert len(asked) <= 2 * (last - first + 1).bit_length() + 1


@given(st.integers(1, 3_000), st.integers(1, 10**9), st.data())
def test_search_ends_whatever_is_counted(newest: int, last: int, data: st.DataObject) -> None:
    """Messages come and go meanwhile, and replicas differ."""
    counts = st.integers(-100, 10**9)

    start, asked = search(newest, 1, last, lambda _: data.draw(counts))

    assert 1 <= start <= last
    assert len(asked) <= 2 * last.bit_length() + 1


def test_short_stream_is_not_counted() -> None:
    assert search(10, 5, 5 + SURPLUS_MIN, lambda _: 0) == (5, [])


@given(st.lists(st.lists(st.integers(1, 9), min_size=1), max_size=9), st.integers(1, 40))
def test_first_of_the_last_sequences_is_told(runs: list[list[int]], count: int) -> None:
    kept, everything = LastSequences(count), [each for run in runs for each in run]
    for run in runs:
        kept.add(run)

    assert kept.first == (everything[-count] if count <= len(everything) else None)
