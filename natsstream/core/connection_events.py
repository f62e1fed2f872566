"""The events of the connection: `async for event in js.events()`.

Law: an event is told in order; a reader that is far behind loses the oldest, and is told how many.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Self

from natsstream._wire.client import Client
from natsstream.events import Closed, ConnectionEvent

EVENTS_KEPT_MAX = 1_000


class ConnectionEvents:
    """The connection's events from now on; made by `JetStream.events`.

    `async for` ends after `Closed`. Events are kept from the moment at which the object is made.

    Attributes:
        dropped: Events dropped so far because more than 1,000 were waiting.
    """

    def __init__(self, client: Client) -> None:
        self.dropped: int = 0
        self._events: deque[ConnectionEvent] = deque()
        self._wake = asyncio.Event()
        self._has_ended = client.is_closed
        self._unlisten = client.listen(self._on_event)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Listen no more; an iteration that waits ends. Closing twice is fine."""
        self._unlisten()
        self._has_ended = True
        self._wake.set()

    def __aiter__(self) -> AsyncIterator[ConnectionEvent]:
        return self

    async def __anext__(self) -> ConnectionEvent:
        while not self._events:
            if self._has_ended:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._events.popleft()

    def _on_event(self, event: ConnectionEvent) -> None:
        if len(self._events) >= EVENTS_KEPT_MAX:
            self._events.popleft()
            self.dropped += 1
        self._events.append(event)
        self._has_ended = isinstance(event, Closed)
        self._wake.set()

    def __repr__(self) -> str:
        return f"<ConnectionEvents {len(self._events)} waiting, {self.dropped} dropped>"
