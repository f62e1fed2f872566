"""When to send the next pull, and for how many messages; pure rules.

Law: messages in flight and buffered are never more than the window; in bytes it may be exceeded by
one pull's share. The next pull is due once a share of the window is free, so that the server has
one while the reader works.
"""

from __future__ import annotations

from math import ceil

PULLS_MAX = 16
"""Pulls that are open at once."""


class PullWindow:
    """Counts one flow.

    Args:
        max_messages: The window.
        max_bytes: The same in bytes, 0 for any.
        threshold: Share of the window down to which it is let run empty, from 0 to below 1.
        stop_after: Messages that are wanted in all, 0 for any number.
        max_batch: Messages that one pull may ask for, 0 for any number.
        bytes_limit: Bytes that one pull may ask for, 0 for any.

    Attributes:
        pulls: Pulls that are open at once when the reader keeps up.
        share: Messages that are free when the next pull is due.
        share_bytes: Bytes that one pull asks for, 0 for any.
        waiting: Messages here that were not handed out.
        reading: Messages of the run that the reader is at.
        handed: Messages that were handed out, as runs.
        is_single: True while pulls ask for one message of any size.
    """

    def __init__(
        self,
        max_messages: int,
        *,
        max_bytes: int = 0,
        threshold: float = 0.5,
        stop_after: int = 0,
        max_batch: int = 0,
        bytes_limit: int = 0,
    ) -> None:
        self._max_messages = max_messages
        self._threshold = threshold
        self._max_bytes = max_bytes
        self._stop_after = stop_after
        self._max_batch = 0
        self.share: int = max(1, max_messages - int(max_messages * threshold))
        self.pulls: int = min(PULLS_MAX, ceil(max_messages / self.share))
        self.share_bytes: int = 0
        self.limit(max_batch=max_batch, max_bytes=bytes_limit)
        self.waiting: int = 0
        self.reading: int = 0
        self.handed: int = 0
        self._waiting_bytes = 0
        self._reading_bytes = 0
        self.is_single: bool = False

    def resize(self, max_messages: int) -> None:
        """Go on with another window; what is here already stays."""
        self._max_messages = max_messages
        self.share = max(1, max_messages - int(max_messages * self._threshold))
        self.pulls = min(PULLS_MAX, ceil(max_messages / self.share))

    @property
    def counts_bytes(self) -> bool:
        """True when the sizes of messages matter."""
        return self._max_bytes > 0

    @property
    def to_hand(self) -> int | None:
        """Messages that are still to be handed out; None for any number."""
        return self._stop_after - self.handed if self._stop_after else None

    def arrive(self, count: int, size: int = 0) -> None:
        """Count messages in, and their bytes where these matter."""
        self.waiting += count
        self._waiting_bytes += size
        self.is_single = False

    def take(self, count: int, size: int = 0) -> None:
        """Count that the reader is done with its run and begins with another one."""
        self.finish()
        self.waiting -= count
        self._waiting_bytes -= size
        self.reading = count
        self._reading_bytes = size
        self.handed += count

    def put_back(self, count: int) -> None:
        """Count messages of the reader's run as waiting again."""
        self.waiting += count
        self.handed -= count

    def finish(self) -> None:
        """Count that the reader is done with its run."""
        self.reading = self._reading_bytes = 0

    def limit(self, *, max_batch: int, max_bytes: int) -> None:
        """Ask for no more than that at once, as the server wants; 0 is no limit."""
        self._max_batch = max_batch
        self.share_bytes = -(-self._max_bytes // self.pulls)
        if max_bytes > 0:
            self.share_bytes = min(self.share_bytes, max_bytes)

    def want(self, in_flight: int, bytes_in_flight: int = 0) -> int:
        """Return how many messages the next pull asks for; 0 when none is due.

        Args:
            in_flight: Messages that the open pulls may still bring.
            bytes_in_flight: The same in bytes.
        """
        window = 1 if self.is_single else self._max_messages
        held = self.waiting + self.reading
        room = window - in_flight - held
        wanted = self._stop_after - self.handed - self.waiting - in_flight
        if room <= 0 or (self._stop_after and wanted <= 0):
            return 0
        share = min(self.share, window)
        if self._stop_after:
            share = min(share, wanted)
        if room < share:
            return 0
        if self._max_bytes and not self.is_single:
            held_bytes = self._waiting_bytes + self._reading_bytes
            # A message larger than all of it waits here alone.
            is_empty = not held and not in_flight
            if self._max_bytes - held_bytes - bytes_in_flight < self.share_bytes and not is_empty:
                return 0
        count = min(room, max(share, ceil(window / self.pulls)))
        if self._stop_after:
            count = min(count, wanted)
        if self._max_batch > 0:
            count = min(count, self._max_batch)
            # With small pulls alone the window is not filled.
            if in_flight > (PULLS_MAX - 1) * count:
                return 0
        return count
