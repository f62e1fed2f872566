"""Listening to a subject of plain NATS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Self

from natsstream._wire.parser import Frame
from natsstream.core.bounded_queue import BoundedQueue
from natsstream.core.message import CoreMessage
from natsstream.core.subject_reader import SubjectReader
from natsstream.foreign_names import answers_names

MAX_PENDING = 65_536
MAX_PENDING_BYTES = 64 << 20


@answers_names("sub", calls=False)
class CoreSubscription:
    """A subject that is listened to while the context is open; made by `Core.subscribe`.

    `async with` subscribes, `async for` gives the messages in the order in which they arrived.

    Attributes:
        subject: The subject, wildcards included.
    """

    def __init__(
        self, subject: str, waiting: BoundedQueue[Frame | int], reader: SubjectReader[CoreMessage]
    ) -> None:
        self.subject: str = subject
        self._waiting = waiting
        self._reader = reader

    @property
    def pending_count(self) -> int:
        """Messages that have arrived and are not read yet."""
        return len(self._waiting)

    @property
    def dropped(self) -> int:
        """Messages dropped so far because the reader was too slow."""
        return self._waiting.dropped

    async def open(self) -> Self:
        """Subscribe; `close` ends it. When it returns, the server knows of the subscription.

        Raises:
            PermissionDeniedError: The user may not subscribe there.
            TransportError: The server did not confirm in time.
        """
        await self._reader.open()
        return self

    async def drain(self) -> None:
        """End the subscription, but not what has arrived: the iteration ends after that.

        Raises:
            TransportError: The server did not confirm in time; the subscription is ended still.
        """
        await self._reader.drain()

    async def close(self) -> None:
        """End the subscription and drop what is not read; closing twice is fine."""
        self._reader.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        self._reader.close()

    def __aiter__(self) -> AsyncIterator[CoreMessage]:
        return self

    async def __anext__(self) -> CoreMessage:
        return await self._reader.next()

    async def next(self, timeout: float) -> CoreMessage | None:
        """Return the next message, None when none came within `timeout` seconds.

        None comes at once, and once, when the subscription has ended and everything is read.

        Raises:
            UsageError: The subscription is not open, or a call before has told its end.
            SlowReaderError: Messages were dropped before this one.
            ConnectionClosedError: The connection was closed.
            ConfigError: `timeout` is no number of seconds.
        """
        return await self._reader.next_within(timeout)

    def __repr__(self) -> str:
        return f"<CoreSubscription {self.subject!r} {self.pending_count} pending>"
