"""What was written, what was read, and what the stream holds: the books of a run; pure rules.

Law: what is wrong is written down as a finding and never raised, so that a run tells all of it.
Books have their full size from the beginning: what a run's memory grows by is not theirs.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

from scripts.chaos_runs.letters import MixedUpError, read_letter, split_identity

FINDINGS_MAX = 50

Outcome: TypeAlias = Literal["free", "open", "acked", "refused", "unknown"]
"""What became of a message: not written yet, under way, acknowledged, certainly not stored, or
nobody knows."""

_CODES: dict[Outcome, int] = {"free": 0, "open": 1, "acked": 2, "refused": 3, "unknown": 4}
_OUTCOMES: dict[int, Outcome] = {code: outcome for outcome, code in _CODES.items()}


@dataclass(frozen=True, slots=True)
class Finding:
    """A promise that was broken.

    Attributes:
        law: Which promise, in a few words.
        text: What happened.
    """

    law: str
    text: str

    def __str__(self) -> str:
        return f"{self.law}: {self.text}"


class Findings:
    """What was found; only the first ones are kept, all are counted.

    Args:
        tell: Gets each that is kept, at once.
    """

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self._tell = tell
        self.kept: list[Finding] = []
        self.count: int = 0

    def add(self, law: str, text: str) -> None:
        """Write down that a promise was broken."""
        self.count += 1
        if len(self.kept) < FINDINGS_MAX:
            self.kept.append(Finding(law, text))
            self._tell(f"FINDING {self.kept[-1]}")


class WriterBook:
    """What one writer has sent, and how each message ended.

    Args:
        name: For findings.
        index: The writer's number in its letters.
        capacity: Messages that it may send.
        keeps_order: It promises that none is stored before an earlier one.
    """

    def __init__(self, name: str, index: int, capacity: int, *, keeps_order: bool = False) -> None:
        self.name: str = name
        self.index: int = index
        self.keeps_order: bool = keeps_order
        self.count: int = 0
        self.ends: Counter[Outcome] = Counter()
        self.duplicates: int = 0
        self.last_acked_seq: int = 0
        self._outcomes = bytearray(b"\0" * (capacity + 1))
        self._sequences = array("Q", bytes(8 * (capacity + 1)))

    @property
    def is_full(self) -> bool:
        """True when nothing more may be sent."""
        return self.count + 1 >= len(self._outcomes)

    def begin(self) -> int:
        """Return the number of the next message, which is under way from now on."""
        self.count += 1
        self._outcomes[self.count] = _CODES["open"]
        return self.count

    def acked(self, number: int, sequence: int, *, duplicate: bool) -> None:
        """Take down an acknowledgement."""
        self._end(number, "acked")
        self._sequences[number] = sequence
        self.duplicates += duplicate
        self.last_acked_seq = max(self.last_acked_seq, sequence)

    def refused(self, number: int) -> None:
        """Take down that a message is certainly not stored."""
        self._end(number, "refused")

    def unknown(self, number: int) -> None:
        """Take down that nobody knows whether a message is stored."""
        self._end(number, "unknown")

    def outcome(self, number: int) -> Outcome:
        """Return how a message ended."""
        return _OUTCOMES[self._outcomes[number]]

    def sequence(self, number: int) -> int:
        """Return the acknowledged sequence of a message; 0 when there is none."""
        return self._sequences[number]

    def _end(self, number: int, outcome: Outcome) -> None:
        self._outcomes[number] = _CODES[outcome]
        self.ends[outcome] += 1


class Content:
    """Which message stands at which sequence, as the readers of a run have seen it.

    Args:
        capacity: Largest sequence.
        findings: Where a contradiction is written down.
    """

    def __init__(self, capacity: int, findings: Findings) -> None:
        self._identities = array("Q", bytes(8 * (capacity + 1)))
        self._findings = findings

    @property
    def capacity(self) -> int:
        """Largest sequence that is watched."""
        return len(self._identities) - 1

    def identity(self, sequence: int) -> int:
        """Return what stands at a sequence; 0 when nobody has seen it."""
        return self._identities[sequence]

    def see(self, sequence: int, identity: int, reader: str) -> None:
        """Take down what a reader found, and compare it with what others have found."""
        if not 0 < sequence <= self.capacity:
            self._findings.add("content", f"{reader}: sequence {sequence} can not be")
            return
        known = self._identities[sequence]
        if not known:
            self._identities[sequence] = identity
        elif known != identity:
            was, now = split_identity(known), split_identity(identity)
            self._findings.add(
                "content", f"{reader}: sequence {sequence} was {was}, and is {now} now"
            )


class Sightings:
    """What one reader has seen: strictly ascending, and in the end without a hole.

    Args:
        name: The reader, for findings.
        content: What all readers see.
        findings: Where a broken promise is written down.
        writers: Indexes of the writers that its filters let through; empty for all.
        first: Where it began.
    """

    def __init__(
        self,
        name: str,
        content: Content,
        findings: Findings,
        *,
        writers: Collection[int] = (),
        first: int = 1,
    ) -> None:
        self.name: str = name
        self.writers: frozenset[int] = frozenset(writers)
        self.first: int = first
        self.last: int = first - 1
        self.count: int = 0
        self._content = content
        self._findings = findings
        self._seen = bytearray(content.capacity + 1)

    @property
    def next_seq(self) -> int:
        """Where it goes on."""
        return self.last + 1

    def see(self, sequence: int, subject: str, mark: str | None, data: bytes) -> None:
        """Take down one message."""
        try:
            identity = read_letter(subject, mark, data)
        except MixedUpError as error:
            self._findings.add("payload", f"{self.name}: sequence {sequence}: {error}")
            return
        if sequence <= self.last:
            word = "again" if self._seen[sequence] else "late"
            self._findings.add(
                "order", f"{self.name}: sequence {sequence} came {word}, after {self.last}"
            )
            return
        writer, _ = split_identity(identity)
        if self.writers and writer not in self.writers:
            self._findings.add("filter", f"{self.name}: got {subject} at sequence {sequence}")
        self.last = sequence
        self.count += 1
        self._content.see(sequence, identity, self.name)
        if sequence < len(self._seen):
            self._seen[sequence] = 1

    def check_whole(self, last: int | None = None) -> None:
        """Compare what it saw with what stands in the stream, from its begin to where it came.

        Args:
            last: Where it should have come; None is where it came.
        """
        missing: list[int] = []
        stop = (self.last if last is None else last) + 1
        for sequence in range(self.first, min(stop, len(self._seen))):
            identity = self._content.identity(sequence)
            if self._seen[sequence] or not identity:
                continue
            if not self.writers or split_identity(identity)[0] in self.writers:
                missing.append(sequence)
        if missing:
            self._findings.add(
                "gap",
                f"{self.name}: {len(missing)} messages were not delivered: "
                f"{', '.join(map(str, missing[:10]))}",
            )
