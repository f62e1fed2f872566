"""Clean-up on the server that must finish after its caller has left.

Law: cancelling a reader, however often, does not cancel what ends it. Each ending has a deadline of
its own; the connection waits for all of them before it closes. Before that, open producers store
what they hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

# One that is cancelled only has to tell what it has given up.
_CANCEL_WAIT_S = 1.0


class Endings:
    """The endings in flight on one connection."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._leavers: set[Callable[[], Awaitable[None]]] = set()

    def before_close(self, leave: Callable[[], Awaitable[None]]) -> Callable[[], None]:
        """Call back before the connection closes; return a function to stop.

        Args:
            leave: Stores what waits, and must not raise. It is cancelled when the time is over.
        """
        self._leavers.add(leave)
        return lambda: self._leavers.discard(leave)

    async def leave(self, timeout: float) -> None:
        """Let all that are open store what waits, for `timeout` seconds at most."""
        leaving = [asyncio.ensure_future(leave()) for leave in tuple(self._leavers)]
        if not leaving:
            return
        try:
            await asyncio.wait(leaving, timeout=timeout)
        finally:
            late = [each for each in leaving if each.cancel()]
            if late:  # Each says what it has given up.
                await asyncio.wait(late, timeout=_CANCEL_WAIT_S)

    async def run(self, ending: Coroutine[Any, Any, None]) -> None:
        """Carry out an ending; cancelling the caller does not cancel it.

        Args:
            ending: It must end by itself, within some seconds.
        """
        await asyncio.shield(self.begin(ending))

    def begin(self, ending: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin an ending, and return its task: it is to be waited for, and never cancelled.

        Args:
            ending: As for `run`.
        """
        task = asyncio.ensure_future(ending)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, timeout: float) -> None:
        """Wait until all have ended; what takes longer than `timeout` seconds is cancelled."""
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            # One may begin another.
            while self._tasks and (left_s := deadline - asyncio.get_running_loop().time()) > 0:
                await asyncio.wait(self._tasks, timeout=left_s)
        finally:
            for task in self._tasks:
                task.cancel()
