"""Changes of a core stream, for callbacks and for `async for`.

Law: a reader that is far behind is told so by an error, never silently left without a change.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

from natsstream.arguments import check_plain
from natsstream.errors import NatsStreamError, SlowReaderError
from natsstream.iteration import Resumable
from natsstream.own_loop import OwnLoop

T = TypeVar("T")
Listener = Callable[[T], object]

CHANGES_KEPT_MAX = 65_536
"""Changes that may wait for one reader."""

_log = logging.getLogger("natsstream.conat")


class Changes(Generic[T]):
    """The listeners and readers of one object's changes."""

    def __init__(self) -> None:
        self._listeners: list[Listener[T]] = []
        # A reader that its user has dropped is gone, whether or not it was ever read.
        self._readers: list[weakref.ref[_Reader[T]]] = []
        self._is_closed = False
        self._error: NatsStreamError | None = None
        self._own_loop = OwnLoop()

    @property
    def is_heard(self) -> bool:
        """True if there is a listener or a reader."""
        return bool(self._listeners) or any(self._reading())

    def on(self, listener: Listener[T]) -> None:
        """Call a function with each change; it must not wait.

        Raises:
            ConfigError: It takes no change, or is async.
        """
        check_plain(listener, "listener", takes="a change", count=1)
        self._listeners.append(listener)

    def off(self, listener: Listener[T]) -> None:
        """Call a function no more; one that was never added is ignored."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def emit(self, change: T) -> None:
        """Tell everyone; the error of a listener is logged, and hurts nobody else."""
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception:  # noqa: BLE001 - Logged; it is the listener's.
                _log.exception("a listener of changes failed")
        for reader in self._reading():
            reader.put(change)

    def close(self, error: NatsStreamError | None = None) -> None:
        """End all iterations behind what they have, with an error if one ended the object."""
        self._is_closed = True
        self._error = self._error or error
        self._listeners.clear()
        for reader in self._reading():
            reader.close(error)

    def read(self) -> AsyncGenerator[T]:
        """Yield the changes from this call on."""
        self._own_loop.check()
        reader = _Reader[T]()
        self._readers.append(weakref.ref(reader, self._readers.remove))
        if self._is_closed:
            reader.close(self._error)
        return reader

    def _reading(self) -> list[_Reader[T]]:
        # A copy, as the end of a reader changes the list.
        return [reader for each in tuple(self._readers) if (reader := each()) is not None]


class _Reader(Resumable[T]):
    """The changes that one reader has not taken yet; a read that fails may be repeated."""

    def __init__(self) -> None:
        self._waiting: deque[T] = deque()
        self._dropped = 0
        self._is_closed = False
        self._error: NatsStreamError | None = None
        self._wake = asyncio.Event()

    def put(self, change: T) -> None:
        if self._is_closed:
            return
        if len(self._waiting) < CHANGES_KEPT_MAX and not self._dropped:
            self._waiting.append(change)
        else:
            self._dropped += 1
        self._wake.set()

    def close(self, error: NatsStreamError | None) -> None:
        self._error = self._error or error
        self._is_closed = True
        self._wake.set()

    async def __anext__(self) -> T:
        while not self._waiting:
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                raise SlowReaderError(
                    f"{dropped} changes came while {CHANGES_KEPT_MAX} waited to be read",
                    dropped=dropped,
                    hint="read faster; the arrays have all of them",
                )
            if self._error is not None:
                raise self._error.with_traceback(None)
            if self._is_closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._waiting.popleft()

    async def aclose(self) -> None:
        self._waiting.clear()
        self._dropped = 0
        self.close(None)
