"""Numbers the chunks of a value, and proves the numbers; pure rules.

A chunk has no number: it is the n-th message of its subject, and a deleted message leaves no trace
there. So a number is proved by counting the subject's messages from a sequence on. Such a count can
be too low (messages were deleted, a replica lags behind), but not too high, because a subject of
chunks is written once.

Law: a chunk is returned under its proved number, or not at all. Chunks are proved

- if they directly follow a proved chunk in the stream: nothing fits in between;
- if they were received from a proved start on, and the stream holds as many behind them as the
  value has left: a skipped chunk would be missing from the count;
- if they were received from a proved start on, and end the value.

A foreign message in the place of a deleted chunk keeps all counts: only the digest of the whole
value finds it.
"""

from __future__ import annotations

from collections.abc import Sequence


class Positions:
    """Numbers the chunks of a value as they are received.

    Args:
        chunks: Chunks of the value.
        index: The proved number of the next chunk, from 0.
        sequence: The sequence of that chunk; 0 if it is not known.

    Attributes:
        index: The number of the next chunk.
        is_proved: True while all numbers so far are proved.
    """

    def __init__(self, chunks: int, *, index: int = 0, sequence: int = 0) -> None:
        self.index: int = index
        self.is_proved: bool = True
        self._chunks = chunks
        self._next_seq = sequence

    def take(self, sequences: Sequence[int]) -> None:
        """Number messages that were received one after the other, at least one."""
        first, last = sequences[0], sequences[-1]
        if first != self._next_seq or last - first + 1 != len(sequences):
            self.is_proved = False
        self.index += len(sequences)
        self._next_seq = last + 1
        if self.index == self._chunks:
            self.is_proved = True

    @property
    def question(self) -> tuple[int, int]:
        """A sequence, and the number of messages from there on that proves all so far."""
        return self._next_seq, self._chunks - self.index

    def prove(self) -> None:
        """Note that the count was the one in question."""
        self.is_proved = True


class SequenceSearch:
    """Finds, by guesses, a sequence with a number of messages from it on.

    Args:
        wanted: How many messages, at least one.
        last_seq: The sequence of the last of them. The first guess assumes that no other messages
            stand between them.

    Attributes:
        guess: The sequence to count from.
    """

    def __init__(self, wanted: int, last_seq: int) -> None:
        self.guess: int = max(last_seq - wanted + 1, 1)
        self._wanted = wanted
        self._end = last_seq + 1
        # From here on there are fewer, and from there on there are more.
        self._late, self._late_count = self._end, 0
        self._early, self._early_count = 0, 0
        self._earlier = 0
        self._halves = False

    def learn(self, count: int) -> bool:
        """Learn the count from the guess on, which is not the wanted one.

        Returns:
            True if there is another guess; False if no sequence fits.
        """
        if count < self._wanted:
            self._late, self._late_count = self.guess, count
        else:
            self._early, self._early_count = self.guess, count
        if self._late - self._early <= 1:
            return False
        self.guess = self._between() if self._early else self._before()
        return True

    def _before(self) -> int:
        """Return an earlier guess, from the distance of the messages so far.

        A step has a least width, which doubles: else a message far in front of thousands would be
        approached by thousands of short steps.
        """
        missing = self._wanted - self._late_count
        distance = self._end - self._late
        step = missing * distance // max(self._late_count, 1)
        least = missing << self._earlier
        self._earlier += 1
        return max(self._late - max(step, least), 1)

    def _between(self) -> int:
        """Return a guess between too early and too late: in proportion, then in the middle."""
        width = self._late - self._early
        share = width // 2
        if not self._halves:
            surplus = self._early_count - self._wanted
            share = width * surplus // max(self._early_count - self._late_count, 1)
        self._halves = not self._halves
        return self._early + min(max(share, 1), width - 1)
