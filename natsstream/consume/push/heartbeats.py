"""When a push consumer is looked for, and that it is done once and to the end.

Law: one look at a time; one that its reader no longer waits for goes on, else a reader with little
patience would never learn that the consumer is gone; `stop` and `close` end it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

# What came while the loop was busy with something else is read first: it was not silent then.
_GRACE_S = 0.01


class HeartbeatMonitor:
    """Watches the silence of one push consumer.

    Args:
        silence_s: Seconds in which nothing may come until it is looked for.
    """

    def __init__(self, silence_s: float) -> None:
        self.silence_s: float = silence_s
        self._heard_at = time.monotonic()
        self._is_wanted = False
        self._task: asyncio.Task[None] | None = None

    def hear(self) -> None:
        """Take note that something came."""
        self._heard_at = time.monotonic()

    def want(self) -> None:
        """Look with the next chance, whatever was heard."""
        self._is_wanted = True

    @property
    def wait_s(self) -> float | None:
        """Seconds until it is to be looked for, 0 for now; None while that is under way."""
        if self._task is not None:
            return None
        left_s = self._heard_at + self.silence_s - time.monotonic()
        return 0.0 if self._is_wanted else max(left_s, 0.0)

    def begin(self, look: Callable[[bool], Awaitable[None]], done: Callable[[], None]) -> None:
        """Look now, unless that is under way.

        Args:
            look: Looks, and deals with what it finds; it must not raise. It is told whether there
                was a silence.
            done: Called at the end, also when it was closed.
        """
        if self._task is not None:
            return

        def end(_: object) -> None:
            self._task = None
            done()

        self._task = asyncio.get_running_loop().create_task(self._look(look))
        self._task.add_done_callback(end)

    async def _look(self, look: Callable[[bool], Awaitable[None]]) -> None:
        if not self._is_wanted:
            await asyncio.sleep(_GRACE_S)
            if time.monotonic() - self._heard_at < self.silence_s:
                return
        is_silent, self._is_wanted = not self._is_wanted, False
        await look(is_silent)
        self.hear()

    def stop(self) -> None:
        """End a look that is under way, in the loop's next turns."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """End a look that is under way, and wait until it has ended."""
        self.stop()
        if self._task is not None:
            await asyncio.wait([self._task])
