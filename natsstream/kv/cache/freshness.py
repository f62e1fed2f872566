"""How old what a local mirror answers can be; pure rules.

Law: the mirror is as fresh as the last status whose revision it has reached. An answer of the
server proves nothing while its entries have not arrived, or while the keys were not listed after a
break.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

_LOOKS_MAX = 64


@dataclass(frozen=True, slots=True)
class LookAtServer:
    """One answer of the server.

    Attributes:
        revision: The newest that the bucket had.
        asked_ns: When it was asked, by our own clock.
        time_ns: The server's time, in Unix nanoseconds; 0 where it did not say.
    """

    revision: int
    asked_ns: int
    time_ns: int = 0

    def latest_ns(self, now_ns: int) -> int:
        """Return the latest time that it can be on the server now."""
        return self.time_ns + now_ns - self.asked_ns


class Freshness:
    """Since when nothing is known.

    Args:
        now_ns: When the mirror begins.

    Attributes:
        known_ns: The moment that the mirror is known to be as new as.
    """

    def __init__(self, now_ns: int) -> None:
        self.known_ns: int = now_ns
        # Those that the mirror has not come to yet, the oldest first.
        self._looks: deque[LookAtServer] = deque(maxlen=_LOOKS_MAX)
        self._breaks_seen = 0
        self._breaks_listed = 0

    @property
    def must_list(self) -> bool:
        """True where markers may have come and gone in a break: the keys must be listed."""
        return self._breaks_seen > self._breaks_listed

    def look(self, look: LookAtServer) -> None:
        """Take in what the server said; `reach` tells when the mirror has come to it."""
        self._looks.append(look)

    def reach(self, revision: int, *, breaks: int) -> None:
        """Note how far the mirror has come, and how often its watch broke so far."""
        self._breaks_seen = breaks
        if self.must_list:
            return
        while self._looks and self._looks[0].revision <= revision:
            self.known_ns = max(self.known_ns, self._looks.popleft().asked_ns)

    def note_listed(self, breaks: int) -> None:
        """Note that the keys were listed after that many breaks."""
        self._breaks_listed = max(self._breaks_listed, breaks)
