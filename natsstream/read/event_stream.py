"""Events on their way to whoever listens.

Law: bounded; the oldest is dropped first and counted; closing ends all loops that wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

from natsstream.read.read_events import ReadEvent

EVENTS_KEPT_MAX = 256
"""Events kept for a listener."""


class EventStream:
    """The newest events of one reader.

    Attributes:
        dropped: Events that nobody took in time.
    """

    def __init__(self) -> None:
        self.dropped: int = 0
        self._events: deque[ReadEvent] = deque()
        self._wake = asyncio.Event()
        self._is_closed = False

    def put(self, event: ReadEvent) -> None:
        """Add an event; a full queue drops its oldest one."""
        if len(self._events) >= EVENTS_KEPT_MAX:
            self._events.popleft()
            self.dropped += 1
        self._events.append(event)
        self._wake.set()

    def close(self) -> None:
        """End the loops, after what is there."""
        self._is_closed = True
        self._wake.set()

    async def events(self) -> AsyncGenerator[ReadEvent]:
        """Yield the events; two loops share them."""
        while True:
            while self._events:
                yield self._events.popleft()
            if self._is_closed:
                return
            self._wake.clear()
            await self._wake.wait()
