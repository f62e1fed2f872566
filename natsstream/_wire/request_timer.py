"""How long a question is waited for, and when it is asked again meanwhile.

Law: the future that is waited for settles at the deadline at the latest, by `TimeoutError`; a
question is asked again only while it has no answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from natsstream._wire.parser import Frame

# A node that has no way to the leader yet takes a question and forgets it. A server that is merely
# slow is asked 4 times in 10 s.
_AGAIN_AFTER_S = 1.0
_AGAIN_WAIT_S_MAX = 4.0


class RequestTimer:
    """Waits for one answer.

    Args:
        future: Future of the answer.
        deadline: When there is none any more, on the loop's clock.
        ask_again: Asks once more; None for what must be asked once only.

    Cost: a third of `asyncio.timeout` and `asyncio.wait`, which would do the same.
    """

    __slots__ = ("_ask_again", "_deadline", "_future", "_timer", "_wait_s")

    def __init__(
        self, future: asyncio.Future[Frame], deadline: float, ask_again: Callable[[], None] | None
    ) -> None:
        self._future = future
        self._deadline = deadline
        self._ask_again = ask_again
        self._wait_s = _AGAIN_AFTER_S
        self._timer = self._next(future.get_loop())

    def end(self) -> None:
        """Wait no longer."""
        self._timer.cancel()

    def _next(self, loop: asyncio.AbstractEventLoop) -> asyncio.TimerHandle:
        when = self._deadline
        if self._ask_again is not None:
            when = min(when, loop.time() + self._wait_s)
        return loop.call_at(when, self._tick)

    def _tick(self) -> None:
        if self._future.done():
            return
        loop = self._future.get_loop()
        if self._ask_again is None or loop.time() >= self._deadline:
            self._future.set_exception(TimeoutError())
            return
        self._ask_again()
        self._wait_s = min(2 * self._wait_s, _AGAIN_WAIT_S_MAX)
        self._timer = self._next(loop)
