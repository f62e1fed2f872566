"""Finds where the newest messages begin, by counting from a few sequences; pure rules.

Law: a range begins at or before its newest messages, and holds at most an eighth as many others, or
a thousand. A count tells where to look; only a read of the range tells the first of them.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Generator, Sequence

SURPLUS_MIN = 1_000
"""This many headers are read sooner than another consumer has counted."""


def search_newest(newest: int, first: int, last: int) -> Generator[int, int, int]:
    """Yield sequences to count the messages from, and return where a range of enough begins.

    Args:
        newest: Messages wanted, 1 or more.
        first: First sequence that may be read.
        last: Last sequence, inclusive.

    Yields:
        A sequence; the caller sends the number of messages from there to `last`.

    Returns:
        A sequence with `newest` messages or more behind it, or `first`.

    Cost: one count for each doubling of the distance to the end, and one for each halving where
    messages lie close together far away.
    """
    surplus = max(newest // 8, SURPLUS_MIN)
    most = newest + surplus
    distance, few = most, last + 1
    while distance < last + 1 - first:
        at = last + 1 - distance
        count = yield at
        if count >= newest:
            break
        few, distance = at, distance * 2
    else:
        at = first
        if few > last:
            return first  # All of it is no more than is read anyway.
        count = yield first
    # From `at` on there are enough, unless it is the first; from `few` on there are not.
    while count > most and few - at > surplus:
        middle = (at + few) // 2
        found = yield middle
        if found < newest:
            few = middle
        else:
            at, count = middle, found
    return at


class LastSequences:
    """The last sequences of a read, eight bytes each.

    Args:
        count: How many are kept, 1 or more.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._total = 0
        self._runs: deque[array[int]] = deque()

    def add(self, sequences: Sequence[int]) -> None:
        """Take over the next ones, ascending and at least one."""
        self._runs.append(array("Q", sequences))
        self._total += len(sequences)
        while self._total - len(self._runs[0]) >= self._count:
            self._total -= len(self._runs.popleft())

    @property
    def first(self) -> int | None:
        """The first of the last `count`; None while there are fewer."""
        surplus = self._total - self._count
        return self._runs[0][surplus] if surplus >= 0 else None
