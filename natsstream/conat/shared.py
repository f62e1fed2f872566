"""Objects that several users share, each made once.

Law: two users that ask for the same thing at the same moment get the same object, opened once. It
is closed for good when all of them have closed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

Release = Callable[[], bool]
"""Counts one user of an object less, and returns True for the last one."""


def is_last() -> bool:
    """Return True: an object that is not shared has one user."""
    return True


class SharedObjects(Generic[T]):
    """The open objects of one kind, by what they were asked for."""

    def __init__(self) -> None:
        self._opening: dict[Hashable, asyncio.Future[T]] = {}
        self._users: dict[Hashable, int] = {}

    async def get(self, key: Hashable, make: Callable[[Release], Awaitable[T]]) -> T:
        """Return the object of a key; the first user makes it, the others wait."""
        while (found := self._opening.get(key)) is not None:
            self._users[key] += 1
            try:
                return await asyncio.shield(found)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not found.cancelled() or (task is not None and task.cancelling()):
                    self._release(key)
                    raise
                # The first user left: another one takes its place.
        self._users[key] = 1
        opening = self._opening[key] = asyncio.get_running_loop().create_future()
        try:
            made = await make(lambda: self._release(key))
        except BaseException as error:
            del self._opening[key], self._users[key]
            if isinstance(error, asyncio.CancelledError):
                opening.cancel()
            else:
                opening.set_exception(error)
                opening.exception()
            raise
        opening.set_result(made)
        return made

    def _release(self, key: Hashable) -> bool:
        if key not in self._users:
            return True
        self._users[key] -= 1
        if self._users[key]:
            return False
        del self._users[key], self._opening[key]
        return True
