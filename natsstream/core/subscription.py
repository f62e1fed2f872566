"""Listening to a subject of plain NATS.

Law: core NATS delivers at most once. Messages that a slow reader loses are counted, and raised as
an error unless the caller wants none. Memory has a limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Literal, Self

from natsstream._wire.client import Client
from natsstream._wire.parser import Frame
from natsstream._wire.subscriptions import Subscription
from natsstream.arguments import check_seconds
from natsstream.core.message import CoreMessage
from natsstream.errors import (
    ConfigError,
    NatsStreamError,
    SlowReaderError,
    UsageError,
)

MAX_PENDING = 65_536
MAX_PENDING_BYTES = 64 << 20


class CoreSubscription:
    """A subject that is listened to while the context is open; made by `Core.subscribe`.

    `async with` subscribes, `async for` gives the messages in the order in which they arrived.

    Attributes:
        subject: The subject, wildcards included.
        dropped: Messages dropped so far because the reader was too slow.
    """

    def __init__(
        self,
        client: Client,
        subject: str,
        *,
        queue: str,
        max_pending: int,
        max_pending_bytes: int,
        on_slow: Literal["raise", "drop"],
        opened: set[CoreSubscription],
    ) -> None:
        self._opened = opened
        self.subject: str = subject
        self.dropped: int = 0
        self._client = client
        self._queue_group = queue
        self._max_pending = max_pending
        self._max_pending_bytes = max_pending_bytes
        self._raises = on_slow == "raise"
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._told = 0
        self._subscription: Subscription | None = None
        self._failure: NatsStreamError | None = None
        self._has_ended = False
        self._wake = asyncio.Event()
        self._unwatch: Callable[[], None] = lambda: None

    @property
    def pending_count(self) -> int:
        """Messages that have arrived and are not read yet."""
        return len(self._frames)

    async def open(self) -> Self:
        """Subscribe; `close` ends it. When it returns, the server knows of the subscription.

        Raises:
            PermissionDeniedError: The user may not subscribe there.
            TransportError: The server did not confirm in time.
        """
        if self._subscription is not None or self._has_ended:
            raise ConfigError("a subscription is opened once", hint="subscribe() again")
        client = self._client
        self._opened.add(self)
        self._unwatch = client.watch(self._on_connection)
        try:
            self._subscription = await client.subscribe(
                self.subject, self._on_frames, queue=self._queue_group, on_denied=self._fail
            )
            # A denial comes before the answer to the ping.
            await client.flush(client.options.request_timeout)
            if self._failure is not None:
                raise self._failure
        except BaseException:
            self._drop()
            raise
        return self

    async def drain(self) -> None:
        """End the subscription, but not what has arrived: the iteration ends after that.

        Raises:
            TransportError: The server did not confirm in time; the subscription is ended still.
        """
        subscription = self._subscription
        if subscription is None:
            return
        subscription.stop()
        try:
            # Messages that the server sent before come before the PONG.
            await self._client.flush(self._client.options.request_timeout)
        finally:
            self._free()

    async def close(self) -> None:
        """End the subscription and drop what is not read; closing twice is fine."""
        self._drop()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        self._drop()

    def __aiter__(self) -> AsyncIterator[CoreMessage]:
        return self

    async def __anext__(self) -> CoreMessage:
        while True:
            if self._frames:
                frame = self._frames.popleft()
                self._bytes -= _size(frame)
                return CoreMessage(self._client, frame)
            if self._raises and self.dropped > self._told:
                raise self._slow()
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if self._has_ended:
                raise StopAsyncIteration
            if self._subscription is None:
                raise UsageError(
                    f"the subscription to {self.subject} is not open",
                    hint="async with js.core.subscribe(...) as messages: async for message in "
                    "messages",
                )
            self._wake.clear()
            await self._wake.wait()

    async def next(self, timeout: float) -> CoreMessage | None:
        """Return the next message, None when none came within `timeout` seconds.

        None comes at once when the subscription has ended and everything is read.

        Raises:
            UsageError: The subscription is not open.
            SlowReaderError: Messages were dropped before this one.
            ConnectionClosedError: The connection was closed.
            ConfigError: `timeout` is no number of seconds.
        """
        check_seconds(timeout, "timeout", may_be_zero=True)
        try:
            async with asyncio.timeout(timeout):
                return await anext(self)
        except (TimeoutError, StopAsyncIteration):
            return None

    def _drop(self) -> None:
        self._frames.clear()
        self._bytes = 0
        self._free()

    def _on_frames(self, frames: list[Frame]) -> None:
        for frame in frames:
            size = _size(frame)
            is_full = len(self._frames) >= self._max_pending
            if is_full or (self._frames and self._bytes + size > self._max_pending_bytes):
                self.dropped += 1
            else:
                self._frames.append(frame)
                self._bytes += size
        self._wake.set()

    def _on_connection(self) -> None:
        if self._client.is_closed:
            self._fail(self._client.closing_error())

    def _fail(self, error: NatsStreamError) -> None:
        self._failure = error
        self._wake.set()

    def _slow(self) -> SlowReaderError:
        dropped, self._told = self.dropped - self._told, self.dropped
        return SlowReaderError(
            f"{dropped} messages on {self.subject} came while {self._max_pending} messages or "
            f"{self._max_pending_bytes} bytes waited to be read, and were dropped",
            dropped=self.dropped,
            hint='read faster, raise max_pending, use a queue group or a stream; on_slow="drop" '
            "only counts them",
        )

    def _free(self) -> None:
        self._opened.discard(self)
        self._unwatch()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        self._has_ended = True
        self._wake.set()

    def __repr__(self) -> str:
        return f"<CoreSubscription {self.subject!r} {len(self._frames)} pending>"


def _size(frame: Frame) -> int:
    return len(frame[0]) + len(frame[1]) + len(frame[2]) + len(frame[3])
