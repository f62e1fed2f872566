"""Reads plain subjects: subscribes, buffers what comes, and hands it out in order.

Law: core NATS delivers at most once. Messages that a slow reader loses are counted, and raised as
an error unless the caller wants none. Memory has a limit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from natsstream._wire.client import Client
from natsstream._wire.parser import Frame
from natsstream._wire.subscriptions import Subscription
from natsstream.arguments import check_seconds
from natsstream.core.bounded_queue import BoundedQueue
from natsstream.errors import NatsStreamError, SlowReaderError, UsageError

Item = TypeVar("Item")


class SubjectReader(Generic[Item]):
    """The messages of some subjects, from `open` to `close`.

    Args:
        client: The connection.
        subjects: The subjects, with wildcards.
        waiting: Holds what waits to be read; a number is the time of a reconnect.
        read: Makes an item of a frame; None skips it.
        interrupted: Makes an item of the time of a reconnect; None makes none.
        slow: Makes the error for so many dropped messages; None only counts them.
        what: Its name in errors.
        example: How to open it.
        group: Queue group; empty for none.
    """

    def __init__(
        self,
        client: Client,
        subjects: Sequence[str],
        waiting: BoundedQueue[Frame | int],
        read: Callable[[Frame], Item | None],
        *,
        interrupted: Callable[[int], Item] | None = None,
        slow: Callable[[int], SlowReaderError] | None,
        what: str,
        example: str,
        group: str = "",
    ) -> None:
        self._client = client
        self._subjects = subjects
        self._waiting = waiting
        self._read = read
        self._interrupted = interrupted
        self._slow = slow
        self._what = what
        self._example = example
        self._group = group
        self._subscriptions: list[Subscription] = []
        self._connections = 0
        self._failure: NatsStreamError | None = None
        self._is_open = False
        self._has_ended = False
        self._is_end_told = False
        self._wake = asyncio.Event()
        self._unwatch: Callable[[], None] = lambda: None

    async def open(self) -> None:
        """Subscribe; when it returns, the server knows of the subscriptions."""
        if self._is_open or self._has_ended:
            raise UsageError(f"{self._what} is opened once", hint="make another one")
        client = self._client
        self._is_open = True
        self._connections = client.connections
        self._unwatch = client.watch(self._on_connection)
        try:
            for subject in self._subjects:
                made = await client.subscribe(
                    subject,
                    self._on_frames,
                    queue=self._group,
                    on_denied=self._fail,
                    what=self._what,
                )
                self._subscriptions.append(made)
            # A denial comes before the answer to the ping.
            await client.flush(client.options.request_timeout, what=self._what)
            if self._failure is not None:
                raise self._failure
        except BaseException:
            self.close()
            raise

    async def drain(self) -> None:
        """End the subscriptions, but not what has arrived."""
        self._client.check_loop()
        if not self._subscriptions:
            return
        for each in self._subscriptions:
            each.stop()
        try:
            # Messages that the server sent before come before the PONG.
            await self._client.flush(self._client.options.request_timeout, what=self._what)
        finally:
            self._end()

    def close(self) -> None:
        """End the subscriptions and drop what is not read; closing twice is fine."""
        self._client.check_loop()
        self._waiting.take_all()
        self._end()

    async def next(self) -> Item:
        """Return the next item, and wait for it."""
        while True:
            while (entry := self._waiting.take()) is not None:
                item = self._item(entry)
                if item is not None:
                    return item
            if self._slow is not None and (dropped := self._waiting.take_dropped()):
                raise self._slow(dropped)
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if self._has_ended:
                raise StopAsyncIteration
            if not self._is_open:
                raise UsageError(f"{self._what} is not open", hint=self._example)
            self._client.check_loop()
            self._wake.clear()
            await self._wake.wait()

    async def next_within(self, timeout: float) -> Item | None:
        """Return the next item; None when none came within `timeout` seconds, once at the end."""
        check_seconds(timeout, "timeout", may_be_zero=True)
        try:
            async with asyncio.timeout(timeout):
                return await self.next()
        except TimeoutError:
            return None
        except StopAsyncIteration:
            self._tell_end()
            return None

    def _tell_end(self) -> None:
        if self._is_end_told:  # A loop of such calls would never wait, and so stop the event loop.
            raise ended_error(self._what)
        self._is_end_told = True

    def _item(self, entry: Frame | int) -> Item | None:
        if not isinstance(entry, int):
            return self._read(entry)
        return None if self._interrupted is None else self._interrupted(entry)

    def _on_frames(self, frames: list[Frame]) -> None:
        for frame in frames:
            self._waiting.put(frame, sum(map(len, frame)))
        self._wake.set()

    def _on_connection(self) -> None:
        client = self._client
        if client.is_closed:
            self._fail(client.closing_error(self._what))
        elif client.is_connected and client.connections != self._connections:
            # From here on, what happens is heard.
            self._connections = client.connections
            if self._interrupted is not None:
                self._waiting.force(time.time_ns())
                self._wake.set()

    def _fail(self, error: NatsStreamError) -> None:
        self._failure = self._failure or error
        self._wake.set()

    def _end(self) -> None:
        self._unwatch()
        for each in self._subscriptions:
            each.close()
        self._subscriptions.clear()
        self._has_ended = True
        self._wake.set()


def ended_error(what: str) -> UsageError:
    """Return the error of a call for the next item behind the one that has told the end."""
    return UsageError(
        f"{what} has ended, as the call before has told by None",
        hint="leave the loop of next() when it is drained or closed; async for does",
    )
