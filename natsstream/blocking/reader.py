"""Reads an async iterator from another thread.

Law: every item that the iterator gave is handed over, in order, before its end or its error; an
item is not held back to wait for the next; what is read ahead has a limit.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Any, cast

from natsstream.blocking.portal import (
    SIGNAL_LOOK_S,
    STOP_TIMEOUT_S,
    Portal,
    closed_error,
    say_it_blocking,
)
from natsstream.errors import ConnectionClosedError, NatsStreamError

# Items cross between the threads in runs: a crossing costs as much as fifty messages.
_RUN_ITEMS_MAX = 2_048
_RUN_BYTES_MAX = 1 << 20
# While the caller works on one run the loop fills the next: 2 + 2 runs x 1 MiB = 4 MiB, and one
# item that is larger.
_RUNS_AHEAD_MAX = 2
# Attributes by which an item tells its size: of columns, messages, entries.
_SIZES = ("nbytes", "data", "value")


class Reader:
    """Runs an async iterator in one task, a little ahead of the thread that takes its items."""

    def __init__(self, items: AsyncIterable[Any], portal: Portal) -> None:
        self._items = items
        self._portal = portal
        self._runs: SimpleQueue[list[Any] | _End] = SimpleQueue()
        # All below belongs to the loop's thread; `_is_full` is looked at from the other.
        self._run: list[Any] = []
        self._run_bytes = 0
        self._is_scheduled = False
        self._is_full = False
        self._room: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def runs(self) -> Generator[list[Any]]:
        """Yield the items in lists; leaving early closes an async generator before this returns."""
        self._portal.post(self._begin)
        is_done = False
        try:
            while True:
                self._portal.check_process()
                run = self._next_run()
                if isinstance(run, _End):
                    is_done = True
                    if run.error is not None:
                        say_it_blocking(run.error)
                        raise run.error
                    return
                if self._is_full:
                    with suppress(ConnectionClosedError):  # The end comes after what was taken.
                        self._portal.post(self._offer)
                yield run
        finally:
            if not is_done:
                self._close()

    def _next_run(self) -> list[Any] | _End:
        while True:
            with suppress(Empty):  # See `SIGNAL_LOOK_S`.
                return self._runs.get(timeout=SIGNAL_LOOK_S)

    def _close(self) -> None:
        with suppress(NatsStreamError, Empty):  # Closed or forked: there is nothing left to free.
            self._portal.post(self._cancel)
            # On the loop's thread only garbage is collected; what is cancelled ends by itself.
            while not self._portal.is_current_thread:
                if isinstance(self._runs.get(timeout=STOP_TIMEOUT_S), _End):
                    return

    # On the loop's thread.

    def _begin(self) -> None:
        self._task = self._portal.start(self._drive())
        self._task.add_done_callback(self._end)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._hand_over()
        self._runs.put(_End(closed_error() if task.cancelled() else task.exception()))

    async def _drive(self) -> None:
        loop = asyncio.get_running_loop()
        items = aiter(self._items)
        try:
            async for item in items:
                self._run.append(item)
                self._run_bytes += _size_of(cast("type[Any]", type(item)))(item)
                if len(self._run) >= _RUN_ITEMS_MAX or self._run_bytes >= _RUN_BYTES_MAX:
                    self._offer()
                    while self._run:
                        self._room = loop.create_future()
                        await self._room
                elif not self._is_scheduled:
                    # Runs as soon as the iterator waits: an item is never held back for a next.
                    self._is_scheduled = True
                    loop.call_soon(self._offer_soon)
        finally:
            if isinstance(items, AsyncGenerator):
                await cast("AsyncGenerator[Any]", items).aclose()

    def _offer_soon(self) -> None:
        self._is_scheduled = False
        self._offer()

    def _offer(self) -> None:
        """Hand the run over when there is room; otherwise the other thread tells when there is."""
        self._is_full = True  # Before the look, as the other thread takes before it looks at this.
        if self._runs.qsize() < _RUNS_AHEAD_MAX:
            self._is_full = False
            self._hand_over()

    def _hand_over(self) -> None:
        if self._run:
            run, self._run, self._run_bytes = self._run, [], 0
            self._runs.put(run)
        if self._room is not None and not self._room.done():
            self._room.set_result(None)


@dataclass(frozen=True, slots=True)
class _End:
    """Comes after the last run."""

    error: BaseException | None


@functools.cache
def _size_of(kind: type[Any]) -> Callable[[Any], int]:
    """Return what tells the bytes that an item of a class holds; 0 for those that do not say."""
    name = next((name for name in _SIZES if hasattr(kind, name)), None)
    if name is None:
        return lambda _: 0
    get = attrgetter(name)
    return get if name == "nbytes" else lambda item: _length(get(item))


def _length(value: object) -> int:
    return len(value) if isinstance(value, bytes) else 0
