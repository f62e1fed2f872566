"""How a reader recovers from a break: its cause, the next attempt, when to give up; pure rules.

Law: the first attempt after a break waits for nothing, each further one twice as long as the last.
Progress begins anew. A reader that makes none for `limit_s` gives up; its next attempt begins anew.
A reader without an end has an infinite limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

Cause = TypeVar("Cause")

RETRY_WAIT_S = 0.05
RETRY_WAIT_MAX_S = 1.0


class Recovery(Generic[Cause]):
    """The breaks of one reader; times are seconds of any one clock.

    Args:
        limit_s: Seconds without progress after which the reader gives up.
        severity: The causes from the mildest to the worst: of several the worst counts. Without it
            the first one counts.

    Attributes:
        cause: The cause of the break; None without one. The reader clears it once recovered.
    """

    def __init__(self, limit_s: float, *, severity: Sequence[Cause] = ()) -> None:
        self.limit_s: float = limit_s
        self.cause: Cause | None = None
        self._severity = severity
        self._deadline: float | None = None
        self._attempts = 0

    def note(self, cause: Cause) -> None:
        """Note the cause of a break."""
        rank = self._severity.index
        if self.cause is None or (self._severity and rank(cause) > rank(self.cause)):
            self.cause = cause

    def limit(self, limit_s: float) -> None:
        """Set the limit; a break in progress gets all of a new limit."""
        if limit_s != self.limit_s:
            self.limit_s = limit_s
            self._deadline = None

    def reset(self) -> None:
        """Note progress: the next attempt is a first one, with all of the time."""
        self._deadline = None
        self._attempts = 0

    def left_s(self, now: float) -> float:
        """Return the seconds until the reader gives up, from the first attempt on; 0 for now."""
        if self._deadline is None:
            self._deadline = now + self.limit_s
        return max(self._deadline - now, 0.0)

    def next_wait(self, now: float) -> float | None:
        """Return the seconds to wait before the next attempt; None when it is time to give up.

        Giving up is a reset as well: a caller that tries again gets all of the time.
        """
        left_s = self.left_s(now)
        if not left_s:
            self.reset()
            return None
        self._attempts += 1
        if self._attempts == 1:
            return 0.0
        return min(RETRY_WAIT_S * 2 ** (self._attempts - 2), RETRY_WAIT_MAX_S, left_s)
