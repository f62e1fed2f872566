"""Calls that wait until something has come to a place, such as a sequence.

Law: an arrival looks at those that it wakes and at few others, however many wait.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from itertools import count
from typing import Generic, TypeVar

Place = TypeVar("Place", int, tuple[int, int])


class Waiters(Generic[Place]):
    """The calls that wait, each for a place."""

    def __init__(self) -> None:
        # Ascending; the number keeps the order of calls for one place.
        self._waiting: list[tuple[Place, int, asyncio.Future[None]]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, place: Place) -> None:
        """Return when a place behind this one is released, or all are."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = place, next(self._numbers), waiter
        insort(self._waiting, entry)
        try:
            await waiter
        finally:
            at = bisect_left(self._waiting, entry)
            if self._waiting[at : at + 1] == [entry]:  # Else it was released.
                del self._waiting[at]

    def release_below(self, place: Place) -> None:
        """Let those go on that wait for a smaller place."""
        self._release(bisect_left(self._waiting, (place,)))

    def release_all(self) -> None:
        """Let all go on."""
        self._release(len(self._waiting))

    def _release(self, stop: int) -> None:
        released = self._waiting[:stop]
        del self._waiting[:stop]
        for _, _, waiter in released:
            if not waiter.done():
                waiter.set_result(None)
