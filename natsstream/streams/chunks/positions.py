"""Which chunk of a value a message holds; pure rules.

A chunk has no number: it is the n-th message of its subject, and a message that is deleted leaves
no trace there. So a number has to be proved, by how many messages of the subject the stream holds
from a sequence on. Such a count can be too low (messages were deleted, a replica lags behind), but
not too high, as a subject of chunks is written once.

Law: a chunk is handed out under the number that was proved for it, or not at all. Chunks are proved

- that stand one behind the other in the stream, behind one that is proved: nothing fits in between;
- that were received from a proved start on, when the stream holds as many behind them as the value
  has left: one that was passed over would be missing from the count;
- that were received from a proved start on, when they are the last of the value.

A foreign message under the subject, in the place of a deleted chunk, keeps all counts: that only
the digest of the whole tells.
"""

from __future__ import annotations

from collections.abc import Sequence


class Positions:
    """Numbers the chunks of a value as they are received, and says whether that is proved.

    Args:
        chunks: Chunks of the value.
        index: The number of the next chunk, from 0, which is proved.
        sequence: The sequence of that one; 0 where it is not known.

    Attributes:
        index: The number of the next chunk.
        is_proved: True while the numbers of all that were received are proved.
    """

    def __init__(self, chunks: int, *, index: int = 0, sequence: int = 0) -> None:
        self.index: int = index
        self.is_proved: bool = True
        self._chunks = chunks
        self._next_seq = sequence

    def take(self, sequences: Sequence[int]) -> None:
        """Take over messages that were received one after the other, at least one."""
        first, last = sequences[0], sequences[-1]
        if first != self._next_seq or last - first + 1 != len(sequences):
            self.is_proved = False
        self.index += len(sequences)
        self._next_seq = last + 1
        if self.index == self._chunks:
            self.is_proved = True

    @property
    def question(self) -> tuple[int, int]:
        """A sequence, and how many messages must stand from there on for a proof."""
        return self._next_seq, self._chunks - self.index

    def prove(self) -> None:
        """Note that the question was answered by this very number."""
        self.is_proved = True


class SequenceSearch:
    """Finds a sequence from which on a number of messages stand, by guesses.

    Args:
        wanted: How many messages, at least one.
        last_seq: The sequence of the last of them. The first guess takes it that they stand one
            behind the other, as they do where nobody else writes.

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
        self._halves = False

    def learn(self, count: int) -> bool:
        """Take over how many stand from the guess on, which is not the wanted number.

        Returns:
            False when there is no such sequence; else there is another guess.
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
        """Return an earlier guess: as far as the messages seen so far stand apart."""
        missing = self._wanted - self._late_count
        distance = self._end - self._late
        step = missing * distance // max(self._late_count, 1)
        return max(self._late - max(step, missing), 1)

    def _between(self) -> int:
        """Return a guess between what is too early and too late: by proportion, then by halves."""
        width = self._late - self._early
        share = width // 2
        if not self._halves:
            surplus = self._early_count - self._wanted
            share = width * surplus // max(self._early_count - self._late_count, 1)
        self._halves = not self._halves
        return self._early + min(max(share, 1), width - 1)
