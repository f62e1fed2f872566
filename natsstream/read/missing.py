"""Why sequences of a stream are missing; pure rules.

Law: a sequence that the stream says it holds, and does not deliver, is lost. nats-server skips a
message whose bytes on disk are damaged without a word, and counts it as held.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, TypeAlias

Reason: TypeAlias = Literal["deleted", "lost"]


class MissingSequences:
    """The missing sequences of a stream, as far as they are known.

    Args:
        eviction_is_loss: Count sequences before the stream's first one as lost.

    Attributes:
        eviction_is_loss: As given.
        has_unnamed_loss: True when the server said that it lost messages, and not which.
    """

    def __init__(self, *, eviction_is_loss: bool = False) -> None:
        self.eviction_is_loss: bool = eviction_is_loss
        self.has_unnamed_loss: bool = False
        self._first_held = 0
        self._lost: list[int] = []
        self._known: list[int] | None = None
        self._records: list[tuple[int, int]] = []

    @property
    def evicted_before(self) -> int:
        """Sequences before this one were lost by eviction; 0 for none."""
        return self._first_held if self.eviction_is_loss else 0

    def learn(
        self,
        *,
        first_held: int = 0,
        deleted: Collection[int] | None = None,
        lost: Collection[int] = (),
        records: Collection[tuple[int, int]] = (),
    ) -> None:
        """Take over what the server says now.

        Args:
            first_held: First sequence of the stream.
            deleted: Every deleted sequence from the first to the last; None when it was not asked.
            lost: Sequences that it reports as lost.
            records: First and last sequences of what held control records, which were replaced.
        """
        self._first_held = max(self._first_held, first_held)
        self._lost = sorted({*self._lost, *lost})
        self._records = sorted({*self._records, *records})
        if deleted is not None:
            self._known = sorted({*deleted, *self._lost} if self._lost else deleted)

    def explain(self, start: int, stop: int) -> bool:
        """Return True if the server has said why each sequence from start to stop is missing."""
        if self._known is None:
            return False
        start = max(start, self._first_held)
        return bisect_left(self._known, stop) - bisect_left(self._known, start) >= stop - start

    def reasons(self, start: int, stop: int) -> Iterator[tuple[Reason, int]]:
        """Yield why the sequences from start to stop are missing: the reason and where it ends.

        Sequences without a list of the server count as deleted.
        """
        # Bounded by what is known: each turn passes one known sequence, or ends.
        while start < stop:
            reason, end = self._stretch(start, stop)
            yield reason, end
            start = end

    def evictions(self, start: int, stop: int) -> Iterator[tuple[Reason, int]]:
        """Yield what a stream has lost at its beginning: the reason and where it ends.

        All of it is lost but control records, which their producers have replaced.
        """
        for first, last in self._records:
            if last < start or first >= stop:
                continue
            if first > start:
                yield "lost", first
            yield "deleted", min(last + 1, stop)
            start = last + 1
        if start < stop:
            yield "lost", stop

    def _stretch(self, start: int, stop: int) -> tuple[Reason, int]:
        """Return why `start` is missing, and up to where the reason is the same."""
        lost_until = _run_until(self._lost, start, stop)
        if lost_until > start:
            return "lost", lost_until
        stop = _next_of(self._lost, start, stop)
        if start < self._first_held:
            stop = min(stop, self._first_held)
            return next(self.evictions(start, stop)) if self.eviction_is_loss else ("deleted", stop)
        if self._known is None:
            return "deleted", stop
        deleted_until = _run_until(self._known, start, stop)
        if deleted_until > start:
            return "deleted", deleted_until
        return "lost", _next_of(self._known, start, stop)


def holes_between(sequences: Sequence[int], start: int) -> list[tuple[int, int]]:
    """Return the stretches (start, stop) that are missing from `start` to the last sequence."""
    holes: list[tuple[int, int]] = []
    for sequence in sequences:
        if sequence > start:
            holes.append((start, sequence))
        start = sequence + 1
    return holes


def _run_until(ascending: list[int], start: int, stop: int) -> int:
    """Return where the run of neighbours that begins at `start` ends; `start` when it has none."""
    index = bisect_left(ascending, start)
    while index < len(ascending) and ascending[index] == start < stop:
        index, start = index + 1, start + 1
    return start


def _next_of(ascending: list[int], start: int, stop: int) -> int:
    """Return the first number at or after `start`, at most `stop`."""
    index = bisect_left(ascending, start)
    return min(ascending[index], stop) if index < len(ascending) else stop
