"""When an answer is believed that lacks what a stream has had.

Law: with replicas, no single answer is proof. A leader that is cut off from its peers takes itself
for the leader for 10 s more (nats-server's lostQuorumInterval), and answers with what it had then.
So does one that has just come back.
"""

from __future__ import annotations

_STALE_LEADER_S = 12.0


class ShortAnswers:
    """The answers about one stream that lack what it has had."""

    def __init__(self) -> None:
        # When the first and the last of those in a row came.
        self._short: tuple[float, float] | None = None

    def is_believed(self, *, is_short: bool, replicas: int | None, now: float) -> bool:
        """Return True if the newest answer tells what the stream has.

        Args:
            is_short: The answer lacks what the stream has had.
            replicas: Those of the stream.
            now: The time, in seconds.
        """
        if not is_short or (replicas or 1) == 1:
            self._short = None
            return True
        begin, last = self._short or (now, now)
        if now - last > _STALE_LEADER_S:  # Another leader may just have come back.
            begin = now
        self._short = begin, now
        return now - begin >= _STALE_LEADER_S
