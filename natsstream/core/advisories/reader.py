"""A reader of advisories: `async with js.advisories() as events: async for event in events`.

Law: advisories are plain NATS, which delivers at most once. Advisories
dropped by a slow reader are counted and raised. A disconnect may lose others, and gives an event of
its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Self

from natsstream._wire.parser import Frame
from natsstream._wire.subscriptions import Subscription
from natsstream.advisories import AdvisoriesInterrupted, Advisory, parse_advisory
from natsstream.api.requests import Api
from natsstream.arguments import check_seconds
from natsstream.core.advisories.wanted import AdvisoryFilter
from natsstream.errors import ConfigError, NatsStreamError, SlowReaderError, UsageError


class Advisories:
    """Advisories from now on; made by `JetStream.advisories`.

    Attributes:
        dropped: Events dropped so far because the reader was too slow.
    """

    def __init__(self, api: Api, wanted: AdvisoryFilter) -> None:
        self.dropped: int = 0
        self._client = api.client
        self._wanted = wanted
        self._subjects = wanted.subjects()
        self._waiting: deque[Frame | Advisory] = deque()
        self._told = 0
        self._wake = asyncio.Event()
        self._subscriptions: list[Subscription] = []
        self._unwatch: Callable[[], None] = lambda: None
        self._connections = 0
        self._failure: NatsStreamError | None = None
        self._is_open = False
        self._has_ended = False

    @property
    def pending_count(self) -> int:
        """Events that have come and are not read yet."""
        return len(self._waiting)

    async def open(self) -> Self:
        """Listen; `close` ends it. When it returns, the server knows of it.

        Raises:
            PermissionDeniedError: The user may not listen there.
            TransportError: The server did not confirm in time.
        """
        if self._is_open or self._has_ended:
            raise ConfigError("a reader of advisories is opened once", hint="advisories() again")
        client = self._client
        self._is_open = True
        self._connections = client.connections
        self._unwatch = client.watch(self._on_connection)
        try:
            for subject in self._subjects:
                made = await client.subscribe(subject, self._on_frames, on_denied=self._fail)
                self._subscriptions.append(made)
            # A denial comes before the answer to the ping.
            await client.flush(client.options.request_timeout)
            if self._failure is not None:
                raise self._failure
        except BaseException:
            self._free()
            raise
        return self

    async def close(self) -> None:
        """Listen no more and drop what is not read; closing twice is fine."""
        self._free()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        self._free()

    def __aiter__(self) -> AsyncIterator[Advisory]:
        return self

    async def __anext__(self) -> Advisory:
        while True:
            event = self._pop()
            if event is not None:
                return event
            if self.dropped > self._told:
                raise self._slow()
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if self._has_ended:
                raise StopAsyncIteration
            if not self._is_open:
                raise UsageError(
                    "the reader of advisories is not open",
                    hint="async with js.advisories() as events: async for event in events",
                )
            self._wake.clear()
            await self._wake.wait()

    async def next(self, timeout: float) -> Advisory | None:
        """Return the next event, None when none came within `timeout` seconds.

        None comes at once when the reader has ended and everything is read.

        Raises:
            ConfigError: The timeout is no number of seconds.
            UsageError: The reader is not open.
            SlowReaderError: Events were dropped before this one.
            ConnectionClosedError: The connection was closed.
        """
        try:
            async with asyncio.timeout(check_seconds(timeout, "timeout", may_be_zero=True)):
                return await anext(self)
        except (TimeoutError, StopAsyncIteration):
            return None

    def _pop(self) -> Advisory | None:
        """Return the next event of the domain that waits."""
        while self._waiting:
            event = self._waiting.popleft()
            if isinstance(event, Advisory):
                return event
            subject = event[0].decode("utf-8", "surrogateescape")
            advisory = parse_advisory(subject, event[3], self._wanted.prefix)
            if self._wanted.domain is None or advisory.domain in ("", self._wanted.domain):
                return advisory
        return None

    def _on_frames(self, frames: list[Frame]) -> None:
        for frame in frames:
            if len(self._waiting) < self._wanted.max_pending:
                self._waiting.append(frame)
            else:
                self.dropped += 1
        self._wake.set()

    def _on_connection(self) -> None:
        client = self._client
        if client.is_closed:
            self._fail(client.closing_error())
        elif client.is_connected and client.connections != self._connections:
            # Told when there is a server again: from here on, what happens is heard.
            self._connections = client.connections
            self._waiting.append(AdvisoriesInterrupted(time_ns=time.time_ns()))
            self._wake.set()

    def _fail(self, error: NatsStreamError) -> None:
        self._failure = self._failure or error
        self._wake.set()

    def _slow(self) -> SlowReaderError:
        self._told = self.dropped
        return SlowReaderError(
            f"{self.dropped} advisories were dropped: more than {self._wanted.max_pending} waited "
            "to be read",
            dropped=self.dropped,
            hint="read faster, raise max_pending or choose kinds; or capture the subjects in a "
            "stream, which loses nothing",
        )

    def _free(self) -> None:
        self._unwatch()
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions.clear()
        self._waiting.clear()
        self._has_ended = True
        self._wake.set()

    def __repr__(self) -> str:
        return f"<Advisories {len(self._waiting)} waiting, {self.dropped} dropped>"
