"""The buffered messages of a flow, in runs that arrived together; pure.

Law: messages are handed out in the order in which they arrived, also those that a reader's run had
left when it was put back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from natsstream.consume.delivery.delivered import DeliveredMessage
from natsstream.consume.pull.window import PullWindow


class MessageBuffer:
    """Buffers one flow's messages, and counts them in its window.

    Attributes:
        rest: Of the run that is being handed out, the last one first.
    """

    def __init__(self, window: PullWindow) -> None:
        self.rest: list[DeliveredMessage] = []
        self._window = window
        self._runs: deque[tuple[list[DeliveredMessage], int]] = deque()

    @property
    def has_run(self) -> bool:
        """True while there is a run that `take` can hand out."""
        return bool(self._runs)

    def __len__(self) -> int:
        return len(self.rest) + self._window.waiting

    def __iter__(self) -> Iterator[DeliveredMessage]:
        yield from reversed(self.rest)
        for run, _ in self._runs:
            yield from run

    def add(self, messages: list[DeliveredMessage]) -> None:
        """Add messages that arrived together; a run is no longer than the window's share."""
        window, share = self._window, self._window.share
        count = len(messages)
        runs = (messages,)
        if count > share:
            runs = [messages[start : start + share] for start in range(0, count, share)]
        for run in runs:
            size = sum([each.wire_bytes for each in run]) if window.counts_bytes else 0
            window.arrive(len(run), size)
            self._runs.append((run, size))

    def take(self) -> None:
        """Make the next run the one that is handed out."""
        run, size = self._runs.popleft()
        left = self._window.to_hand
        if left is not None and left < len(run):
            # More came than was asked for, after a break; it is given back at the end.
            self._runs.appendleft((run[left:], 0))
            run = run[:left]
        self._window.take(len(run), size)
        self.rest += run[::-1]

    def put_back(self) -> None:
        """Put the rest of the run that is being handed out before the others."""
        if self.rest:
            self._runs.appendleft((self.rest[::-1], 0))
            self._window.put_back(len(self.rest))
            self.rest.clear()

    def remove(self, *, below: int | None) -> list[DeliveredMessage]:
        """Remove and return messages; those that stay are handed out later.

        Args:
            below: Remove those that were delivered less often; None removes all.
        """
        kept: list[DeliveredMessage] = []
        removed: list[DeliveredMessage] = []
        for message in self:
            is_kept = below is not None and message.delivered >= below
            (kept if is_kept else removed).append(message)
        self._runs.clear()
        self._window.waiting = len(kept)
        if kept:
            self._runs.append((kept, 0))
        return removed
