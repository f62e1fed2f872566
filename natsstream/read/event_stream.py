"""Events on their way to whoever listens.

Law: bounded; the oldest is dropped first and counted; closing ends all loops that wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator

from natsstream.iteration import Calls
from natsstream.read.read_events import GapFound, ReadEvent

_log = logging.getLogger("natsstream.consumer")

EVENTS_KEPT_MAX = 256
"""Events kept for a listener."""


class EventStream:
    """The newest events of one reader; each is logged as it comes.

    Args:
        what: The reader, for the log.

    Attributes:
        dropped: Events that nobody took in time.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self.dropped: int = 0
        self._events: deque[ReadEvent] = deque()
        self._wake = asyncio.Event()
        self._is_closed = False

    def put(self, event: ReadEvent) -> None:
        """Add an event; a full queue drops its oldest one."""
        # Streams with deletions are ordinary, and may have very many.
        is_plain = isinstance(event, GapFound) and event.gap.reason == "deleted"
        level = logging.DEBUG if is_plain else event.LOG_LEVEL
        if _log.isEnabledFor(level):
            _log.log(level, "%s: %s", self._what, event.describe())
        if len(self._events) >= EVENTS_KEPT_MAX:
            self._events.popleft()
            self.dropped += 1
        self._events.append(event)
        self._wake.set()

    def close(self) -> None:
        """End the loops, after what is there."""
        self._is_closed = True
        self._wake.set()

    def events(self) -> AsyncGenerator[ReadEvent]:
        """Yield the events; two loops share them."""
        return Calls(self._take)

    async def _take(self) -> ReadEvent | None:
        while not (self._events or self._is_closed):
            self._wake.clear()
            await self._wake.wait()
        return self._events.popleft() if self._events else None
