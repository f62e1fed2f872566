"""Objects that several users share, each made once.

Law: two users that ask for the same thing at the same moment get the same object, opened once. It
is closed for good when all of them have closed it. A user who gives up while it is opened disturbs
none of the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, Protocol, TypeVar


class Closable(Protocol):
    """An object that several users can share."""

    async def close(self) -> None:
        """Leave it; ends it where the release that it was made with says so."""


T = TypeVar("T", bound=Closable)

Release = Callable[[], bool]
"""Counts one user of an object less, and returns True for the last one."""


def is_last() -> bool:
    """Return True: an object that is not shared has one user."""
    return True


class _Share(Generic[T]):
    """One object, from the moment at which it is asked for.

    Attributes:
        opening: The task that makes it.
        users: How many wait for it or have it.
    """

    opening: asyncio.Task[T]

    def __init__(self) -> None:
        self.users: int = 0


class SharedObjects(Generic[T]):
    """The open objects of one kind, by what they were asked for."""

    def __init__(self) -> None:
        self._shares: dict[Hashable, _Share[T]] = {}

    async def get(self, key: Hashable, make: Callable[[Release], Coroutine[Any, Any, T]]) -> T:
        """Return the object of a key; the first user has it made, the others wait."""
        share = self._shares.get(key) or self._open(key, make)
        share.users += 1
        opening = share.opening
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if _has_made(opening):
                # It was opened at the moment at which this user gave up.
                await opening.result().close()
            elif self._release(key, share):
                opening.cancel()
                await asyncio.wait([opening])
            raise

    def _open(self, key: Hashable, make: Callable[[Release], Coroutine[Any, Any, T]]) -> _Share[T]:
        share = self._shares[key] = _Share[T]()

        def forget_failed(opening: asyncio.Task[T]) -> None:
            if not _has_made(opening):
                self._forget(key, share)

        share.opening = asyncio.create_task(make(lambda: self._release(key, share)))
        share.opening.add_done_callback(forget_failed)
        return share

    def _release(self, key: Hashable, share: _Share[T]) -> bool:
        share.users -= 1
        if share.users > 0:
            return False
        self._forget(key, share)
        return True

    def _forget(self, key: Hashable, share: _Share[T]) -> None:
        if self._shares.get(key) is share:
            del self._shares[key]


def _has_made(opening: asyncio.Task[T]) -> bool:
    return opening.done() and not opening.cancelled() and opening.exception() is None
