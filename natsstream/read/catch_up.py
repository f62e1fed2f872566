"""Whether a read has also passed what has replaced, meanwhile, some of what existed; pure rules.

A read that begins with the last message of each subject, or of a stream that keeps few messages of
a subject, comes to a horizon: the stream's last sequence at the beginning. A subject that was
written between the beginning and its turn is not among what was delivered up to there: its older
message is gone, and the newer one lies behind the horizon. So the read continues to the stream's
last sequence now, and again for the messages replaced in this shorter time, until none is left.

Law: once done, each subject that had a message at the beginning and has one still was delivered.
Rounds are limited, for a stream that is written faster than it is read. A subject that is missing
after the last round was replaced in each of them, before its turn came.
"""

from __future__ import annotations

ROUNDS_MAX = 16
"""Each round reads what was stored while the one before was read."""


class CatchUp:
    """The way of a read behind its horizon, until it has caught up.

    Args:
        is_wanted: False where the horizon is enough.

    Attributes:
        is_done: True when nothing is left.
    """

    def __init__(self, *, is_wanted: bool) -> None:
        self.is_done: bool = not is_wanted
        self._target = 0
        self._rounds = 0

    def has_question(self, next_seq: int) -> bool:
        """Return True if the stream's last sequence has to be requested.

        Args:
            next_seq: Everything before it was handed over.
        """
        return not self.is_done and next_seq > self._target

    def learn(self, last_seq: int, next_seq: int) -> None:
        """Take over the stream's last sequence: that is how far this round goes."""
        self._rounds += 1
        self._target = last_seq
        if next_seq > last_seq or self._rounds > ROUNDS_MAX:
            self.is_done = True

    def end(self) -> None:
        """Note that nothing was left in the stream at one moment."""
        self.is_done = True
