"""A set of sequences as ranges: few ranges stand for many sequences."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class SequenceRanges:
    """Sequences as disjoint ranges that ascend and do not touch; both ends are included."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def __contains__(self, seq: int) -> bool:
        at = bisect_left(self._lasts, seq)
        return at < len(self._firsts) and self._firsts[at] <= seq

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def add(self, first: int, last: int) -> None:
        """Add a range; an empty one adds nothing."""
        if last < first:
            return
        start = bisect_left(self._lasts, first - 1)
        stop = bisect_right(self._firsts, last + 1)
        if start < stop:
            first = min(first, self._firsts[start])
            last = max(last, self._lasts[stop - 1])
        self._firsts[start:stop] = [first]
        self._lasts[start:stop] = [last]

    def forget(self, last: int) -> None:
        """Drop all sequences up to one."""
        stop = bisect_right(self._lasts, last)
        del self._firsts[:stop], self._lasts[:stop]
        if self._firsts:
            self._firsts[0] = max(self._firsts[0], last + 1)
