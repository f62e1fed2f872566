"""A lane as a fetch uses it: messages that wait, how its pull ended, and waiting for either.

What lives here: the state between a pull and the fetch that takes its messages. What must not: what
a fetch does next (`fetching.py`), and what becomes of a mailbox that was left (`mailboxes.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from natsstream.streams.pulling.ends import End, PullStatus
from natsstream.streams.pulling.lane import Lane

if TYPE_CHECKING:
    from natsstream.errors import NatsStreamError
    from natsstream.streams.delivery.delivered import DeliveredMessage
    from natsstream.streams.delivery.settling import Settling
    from natsstream.streams.pulling.open_pulls import PullTimes
    from natsstream.streams.pulling.requests import FetchOptions


class Mailbox:
    """One lane with what came on it.

    Attributes:
        lane: The subscription and its pull.
        messages: What came and was not taken.
        statuses: How pulls ended, the first one first.
        options: What the last pull was made for; None before the first.
        failure: Why nothing can come; None while something can.
        connection: Number of the connection that its pull went over.
    """

    def __init__(self, settling: Settling) -> None:
        self.lane: Lane = Lane(
            settling,
            on_messages=self._on_messages,
            on_status=self._on_status,
            on_failed=self.fail,
        )
        self.messages: list[DeliveredMessage] = []
        self.statuses: deque[PullStatus] = deque()
        self.options: FetchOptions | None = None
        self.failure: NatsStreamError | None = None
        self.connection: int = 0
        self._client = settling.source.api.client
        self._wake: asyncio.Future[None] | None = None

    @property
    def is_broken(self) -> bool:
        """True when a break of the connection lies behind its pull."""
        return self.failure is not None or self.connection != self._client.connections

    def pull(
        self,
        options: FetchOptions,
        count: int,
        body: bytes,
        times: PullTimes,
        subject: str | None = None,
    ) -> None:
        """Ask for messages on it."""
        self.options = options
        self.connection = self._client.connections
        max_bytes = options.max_bytes
        self.lane.pull(count, body, times=times, max_bytes=max_bytes, subject=subject)

    def take(self, count: int) -> list[DeliveredMessage]:
        """Return up to so many messages that wait here."""
        taken, self.messages = self.messages[:count], self.messages[count:]
        return taken

    async def wait(self, timeout: float) -> bool:
        """Wait for a message, a status or a break; False when none came in time."""
        if self.messages or self.statuses or self.failure is not None:
            return True
        self._wake = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout):
                await self._wake
        except TimeoutError:
            return False
        finally:
            self._wake = None
        return True

    def fail(self, error: NatsStreamError) -> None:
        """Let whoever waits know that nothing comes."""
        if self.failure is None:
            self.failure = error
        self.notify()

    def notify(self) -> None:
        """Wake whoever waits."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _on_messages(self, messages: list[DeliveredMessage]) -> None:
        self.messages += messages
        self.notify()

    def _on_status(self, said: PullStatus) -> None:
        if said.end is not End.HEARTBEAT:
            self.statuses.append(said)
            self.notify()
