"""A lane as a fetch uses it: messages that wait, how its pull ended, and waiting for either."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from natsstream.consume.pull.outcomes import PullOutcome, PullStatus
from natsstream.consume.pull.subscription import PullSubscription

if TYPE_CHECKING:
    from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
    from natsstream.consume.pull.open_pulls import PullTimes
    from natsstream.consume.pull.requests import FetchOptions
    from natsstream.errors import NatsStreamError


class FetchInbox:
    """One lane with what came on it.

    Attributes:
        lane: The subscription and its pull.
        messages: What came and was not taken.
        statuses: How pulls ended, the first one first.
        options: What the last pull was made for; None before the first.
        failure: Why nothing can come; None while something can.
        connection: Number of the connection that its pull went over.
    """

    def __init__(self, settling: AckSender) -> None:
        self.lane: PullSubscription = PullSubscription(
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
        if said.end is not PullOutcome.HEARTBEAT:
            self.statuses.append(said)
            self.notify()
