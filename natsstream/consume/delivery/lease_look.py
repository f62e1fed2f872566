"""The look at a consumer whose messages are kept alive: its `ack_wait` may have been changed.

Law: whoever keeps messages alive knows a changed lease at most `LOOK_EVERY_S`, and a round trip,
after the change, while the server answers. Nothing is asked while there are no such messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from math import inf
from time import monotonic

from natsstream.consume.delivery.limit_watch import LimitWatch
from natsstream.consume.delivery.look import look
from natsstream.consume.delivery.source import ConsumerSource

LOOK_EVERY_S = 5.0
"""Seconds between two reminders, where the lease is long, and at most between two looks."""


class LeaseLook:
    """Looks, one look at a time, and tells what is new.

    Args:
        source: The consumer, as it was last seen.
        limit_watch: The handle's; it knows if the user may look.
        tell: Gets the consumer as it is now, where it was changed.

    Attributes:
        known_at: When the last look began that was answered, by the monotonic clock: until then the
            lease was the one that is known.
    """

    def __init__(
        self,
        source: ConsumerSource,
        limit_watch: LimitWatch,
        tell: Callable[[ConsumerSource], None],
    ) -> None:
        self._source = source
        self._limit_watch = limit_watch
        self._tell = tell
        self._looked_at = -LOOK_EVERY_S
        self.known_at: float = -inf
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look, unless a look is running or was not long ago; called with each message too."""
        now = asyncio.get_running_loop().time()
        if self._task is not None or not self._limit_watch.may_look:
            return
        # Where reminders come more often, the next one after half the time is not too late.
        if now >= self._looked_at + LOOK_EVERY_S / 2:
            self._looked_at = now
            self._task = asyncio.create_task(self._look(), name=f"{self._source.what}, look")

    def end(self) -> None:
        """Cancel the look that is running, if there is one."""
        if self._task is not None:
            self._task.cancel()

    async def _look(self) -> None:
        begun = monotonic()
        try:
            info = await look(self._source, self._limit_watch)
        finally:
            self._task = None
        if info is None:
            return
        now = replace(ConsumerSource.of(self._source.api, info), tuning=self._source.tuning)
        if now != self._source:  # Or the consumer was made anew, which readers are told.
            self._source = now
            self._tell(now)
        self.known_at = begun
