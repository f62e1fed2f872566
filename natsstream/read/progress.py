"""How far a bounded read has come, and which sequences are missing; pure rules.

Law: every sequence of the range is delivered once and in order, or stands in a gap. A consumer
numbers its deliveries without a hole, so a hole there is ours and not the stream's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from natsstream.notebook import NotebookTable
from natsstream.read.missing import MissingSequences, Reason

GAPS_KEPT_MAX = 1_000
"""Gaps told one by one; a stream with a million single holes must not fill the memory."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Sequences of the range that hold no message.

    Attributes:
        first_seq: First missing sequence.
        last_seq: Last missing sequence, inclusive.
        reason: "deleted": the stream removed them by a rule or on request. "lost": the stream
            had them and cannot say why they are gone, or counts them as held and does not deliver.
    """

    first_seq: int
    last_seq: int
    reason: Reason

    def __len__(self) -> int:
        return self.last_seq - self.first_seq + 1


@dataclass(slots=True)
class ReadReport(NotebookTable):
    """Counts of a read so far.

    Attributes:
        messages: Messages that have arrived in order; a loop that was left may have been handed
            fewer of them.
        deleted: Sequences of the range that are gone by a rule or on request, as the server tells.
            Not counted where filters are set: a filter hides what is missing.
        lost: Sequences of the range that the server counts as stored and does not deliver, or lists
            as lost, or does not list as deleted. Not found where filters are set, nor where a
            server has read its damaged files anew: it then takes what it misses for deleted.
        has_unnamed_loss: True when the server says that the stream lost messages and not which:
            some of `deleted` may be lost. Asked only where sequences are missing.
        gaps: The first 1,000 gaps, in the order in which they were met.
        gaps_dropped: Gaps beyond those.
        resumes: How often the read went on after a break.
        skipped: Control records that were left out; neither messages nor gaps.
    """

    messages: int = 0
    deleted: int = 0
    lost: int = 0
    has_unnamed_loss: bool = False
    gaps: list[Gap] = field(default_factory=list[Gap])
    gaps_dropped: int = 0
    resumes: int = 0
    skipped: int = 0

    def add_resume(self) -> None:
        """Count a resume after a break."""
        self.resumes += 1

    def add_gap(self, gap: Gap) -> None:
        """Count a gap, and keep it while there is room."""
        if gap.reason == "lost":
            self.lost += len(gap)
        else:
            self.deleted += len(gap)
        if len(self.gaps) < GAPS_KEPT_MAX:
            self.gaps.append(gap)
        else:
            self.gaps_dropped += 1


class OutOfOrderError(Exception):
    """Deliveries have a hole or go backwards; the reader begins again. Never leaves `streams`."""


class Progress:
    """The state of one read.

    Args:
        first: First sequence wanted.
        last: Last sequence wanted, inclusive.
        has_filters: True when filters hide some sequences, so that holes tell nothing.
        missing: Tells why sequences are missing.
    """

    def __init__(
        self, first: int, last: int, *, has_filters: bool, missing: MissingSequences
    ) -> None:
        self.next_seq: int = first
        self.last: int = last
        self.report: ReadReport = ReadReport()
        self._has_filters = has_filters
        self._missing = missing
        self._loss: Gap | None = None
        self._next_delivery = 1

    @property
    def is_done(self) -> bool:
        """True when no sequence of the range is left."""
        return self.next_seq > self.last

    @property
    def loss(self) -> Gap | None:
        """The first gap with lost messages, None while nothing is lost."""
        return self._loss

    def begin(self) -> None:
        """Start with a new consumer, which numbers its deliveries from 1."""
        self._next_delivery = 1

    def accept(
        self,
        sequences: Iterable[int],
        *,
        first: int,
        last: int,
        first_delivery: int,
        count: int,
        hidden: int = 0,
    ) -> None:
        """Take over one delivered run of messages.

        Args:
            sequences: All of its sequences; read only when the run has holes.
            first: First of them.
            last: Last of them, at most the range's last.
            first_delivery: The consumer's number of the first.
            count: Number of messages.
            hidden: How many of them are not handed over.

        Raises:
            OutOfOrderError: A delivery is missing, repeated or goes backwards; nothing was taken.
        """
        if (
            first_delivery != self._next_delivery
            or first < self.next_seq
            or last - first + 1 < count
        ):
            raise OutOfOrderError
        self._next_delivery += count
        if self._has_filters:
            self.lose_until(min(first, self._missing.evicted_before))
        else:
            if last - first + 1 == count:
                self._skip(first)
            else:
                for sequence in sequences:
                    self._skip(sequence)
                    self.next_seq = sequence + 1
        self.next_seq = last + 1
        self.report.messages += count - hidden
        self.report.skipped += hidden

    def finish(self, *, held_last: int) -> None:
        """Count the end of the range as missing.

        Args:
            held_last: Last sequence that the stream has given out; what lies beyond is lost.
        """
        end = self.last + 1
        if held_last < self.last:
            lost_from = max(self.next_seq, held_last + 1)
            if not self._has_filters:
                self._skip(lost_from)
            self._miss(lost_from, end, "lost")
        elif not self._has_filters:
            self._skip(end)
        self.next_seq = end

    def lose_until(self, first_held: int) -> None:
        """Count what lies before a sequence as lost, but for control records."""
        stop = min(first_held, self.last + 1)
        for reason, end in self._missing.evictions(self.next_seq, stop):
            self._miss(self.next_seq, end, reason)

    def _skip(self, sequence: int) -> None:
        """Count the sequences from the next wanted one up to (not including) `sequence`."""
        self.report.has_unnamed_loss = self._missing.has_unnamed_loss
        for reason, stop in self._missing.reasons(self.next_seq, sequence):
            self._miss(self.next_seq, stop, reason)

    def _miss(self, start: int, stop: int, reason: Reason) -> None:
        """Count one gap and pass it."""
        gap = Gap(start, stop - 1, reason)
        self.report.add_gap(gap)
        if reason == "lost" and self._loss is None:
            self._loss = gap
        self.next_seq = stop
