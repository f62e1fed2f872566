"""When to check that a push consumer still exists.

Law: one check at a time. It continues when its reader stops waiting, else a reader with short
timeouts would never learn that the consumer was deleted; `stop` and `close` end it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

# Frames that came while the loop was busy are read first: that was no silence.
_GRACE_S = 0.01


class HeartbeatMonitor:
    """Watches the heartbeats of one push consumer.

    Args:
        silence_s: Seconds in which nothing may come until it is looked for.
    """

    def __init__(self, silence_s: float) -> None:
        self.silence_s: float = silence_s
        self._heard_at = time.monotonic()
        self._is_wanted = False
        self._task: asyncio.Task[None] | None = None

    def hear(self) -> None:
        """Note that a frame came."""
        self._heard_at = time.monotonic()

    def want(self) -> None:
        """Check at the next chance, whatever was heard."""
        self._is_wanted = True

    @property
    def wait_s(self) -> float | None:
        """Seconds until the next check, 0 for now; None while one runs."""
        if self._task is not None:
            return None
        left_s = self._heard_at + self.silence_s - time.monotonic()
        return 0.0 if self._is_wanted else max(left_s, 0.0)

    def begin(self, look: Callable[[bool], Awaitable[None]], done: Callable[[], None]) -> None:
        """Start a check, unless one runs.

        Args:
            look: Checks the consumer, and must not raise. Its argument is True after a silence.
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
        """Cancel a running check."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Cancel a running check, and wait until it has ended."""
        self.stop()
        if self._task is not None:
            await asyncio.wait([self._task])
