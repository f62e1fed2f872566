"""The state of a fast ingest: which of its messages are stored, are not, or nobody can say.

Law: a message counts as stored only where the stream has said so, and as not stored only where it
cannot be stored any more; all others are unknown. Messages are numbered from 1 through the whole
ingest; each batch of it numbers its own from 1, and the ingest adds what was before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from natsstream.errors import NatsStreamError
from natsstream.publish.batches.fast_answers import FinalAck, FlowAck, FlowGap, Refused

REFUSALS_KEPT_MAX = 1_000
GAPS_KEPT_MAX = 10_000


class IngestSpan(NamedTuple):
    """Messages of an ingest by their numbers, both included."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """How many they are."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class IngestRefusal:
    """A message that the stream refused: its number in the ingest, and why."""

    number: int
    error: NatsStreamError


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The outcome of a fast ingest's messages, numbered from 1 as they were sent.

    Attributes:
        stream: The stream.
        sent: Messages that `send` and `send_many` took.
        stored: Messages that the stream has. A message whose `msg_id` it knew already counts: the
            server does not tell it apart.
        after_seq: The stream's last sequence when the ingest began: all stand behind it.
        last_seq: The sequence of the last message that was stored, as far as the server told;
            None where it did not.
        gaps: Messages that are not stored: lost on the way, refused, or behind the end of a batch.
            The first 10,000 runs of them.
        missing: How many are not stored in all.
        refused: Those of them that the stream refused, with its reasons; at most 1,000.
        refused_count: How many it refused.
        unknown: Messages of which it cannot be told: the server was gone before it had acked them,
            or, with `on_gap="ok"`, the connection broke before all that was said of them had come.
            Gaps of a replicated stream, but for refusals, until `close` or `resume` has found the
            same leader: a new one may store them later. While the ingest is open, those that are
            in flight.
        batches: Fast batches that were begun.
    """

    stream: str
    sent: int = 0
    stored: int = 0
    after_seq: int = 0
    last_seq: int | None = None
    gaps: tuple[IngestSpan, ...] = ()
    missing: int = 0
    refused: tuple[IngestRefusal, ...] = ()
    refused_count: int = 0
    unknown: tuple[IngestSpan, ...] = ()
    batches: int = 0

    @property
    def is_complete(self) -> bool:
        """True when every message that was sent is stored."""
        return self.stored == self.sent

    @property
    def first_seq(self) -> int | None:
        """The sequence of the first message, where nobody else wrote in between; else None."""
        if self.last_seq is None or not self.stored:
            return None
        is_alone = self.last_seq - self.after_seq == self.stored
        return self.after_seq + 1 if is_alone else None


class BatchState:
    """One fast batch.

    Attributes:
        base: Messages of the ingest before it.
        taken: Messages that it was given, from 1.
        written: Those that were written to a server.
        acked: All up to this number are settled.
        every: An ack comes each so many messages.
        has_started: True when the server has answered its first message.
        has_ended: True when nothing of it can be stored any more.
        last_seq: The stream's sequence of its last message, when its end told it.
        refused: The first refusals.
        refused_count: All refusals.
        is_sure_of_gaps: False while a gap may have been told by a leader that stores some of its
            messages later: they are unknown then, but for refusals and what was never written.
    """

    # Laws of the gaps: all of them stand in `_gaps`, except those in `_dark`, a region that is
    # settled and of which only their number is kept. A gap is told before an ack goes beyond it,
    # so none comes that belongs there, but one that is told twice may.

    def __init__(
        self, base: int, gaps_kept_max: int = GAPS_KEPT_MAX, *, is_sure_of_gaps: bool = True
    ) -> None:
        self.base: int = base
        self.is_sure_of_gaps: bool = is_sure_of_gaps
        self._gaps_kept_max = gaps_kept_max
        self.taken: int = 0
        self.written: int = 0
        self.acked: int = 0
        self.every: int = 1
        self.has_started: bool = False
        self.has_ended: bool = False
        self.last_seq: int | None = None
        self.refused: list[IngestRefusal] = []
        self.refused_count: int = 0
        self._gaps: list[IngestSpan] = []
        self._fold_at = 2 * gaps_kept_max
        self._dark = IngestSpan(1, 0)
        self._dark_missing = 0
        self._doubtful: list[IngestSpan] = []
        # Refused or never written: missing, whatever leader reports it.
        self._certain: list[IngestSpan] = []

    def room(self, outstanding: int) -> int:
        """Return how many messages may be taken now.

        Args:
            outstanding: Acks that may be in flight.
        """
        return self.acked + outstanding * self.every - self.taken

    def on_ack(self, answer: FlowAck, every_max: int) -> None:
        """Take an ack; an older one than the last changes nothing but the flow."""
        self.has_started = True
        self.every = min(answer.every, every_max)
        self.acked = max(self.acked, min(answer.number, self.written))

    def on_gap(self, answer: FlowGap) -> IngestSpan | None:
        """Take a gap; return what is missing, in the numbers of the ingest."""
        self.has_started = True
        span = IngestSpan(max(answer.first, 1), min(answer.last, self.written))
        if span.size < 1:
            return None
        self._lack(span)
        return IngestSpan(self.base + span.first, self.base + span.last)

    def on_refused(self, answer: Refused) -> None:
        """Take the refusal of a message."""
        if 1 <= answer.number <= self.written:
            self.refused_count += 1
            if len(self.refused) < REFUSALS_KEPT_MAX:
                self.refused.append(IngestRefusal(self.base + answer.number, answer.error))
                self._certain.append(IngestSpan(answer.number, answer.number))
            self._lack(IngestSpan(answer.number, answer.number))

    def on_break(self) -> None:
        """The connection broke: what was said of messages in flight may be lost.

        A later ack settles them, and says no more than that where gaps are allowed.
        """
        span = IngestSpan(self.acked + 1, self.written)
        if span.size > 0 and not self.has_ended:
            self._doubtful = merged([*self._doubtful, span])

    def on_final(self, answer: FinalAck) -> None:
        """Take the end: what is behind its count is not stored."""
        self.has_ended = True
        self._certain.append(IngestSpan(self.written + 1, self.taken))
        self.acked = min(answer.count, self.written)
        self.last_seq = answer.sequence or None
        self._lack(IngestSpan(self.acked + 1, self.taken))
        self.acked = self.written = self.taken

    def on_vanished(self) -> None:
        """The batch is over and nobody can tell how: what was written and not acked is unknown."""
        self.has_ended = True
        self._certain.append(IngestSpan(self.written + 1, self.taken))
        self._lack(IngestSpan(self.written + 1, self.taken))

    def _lack(self, span: IngestSpan) -> None:
        for one in without([span] if span.size > 0 else [], [self._dark]):
            last = self._gaps[-1] if self._gaps else None
            if last is not None and last.first <= one.first <= last.last + 1:
                # So a run of refusals is one span.
                self._gaps[-1] = IngestSpan(last.first, max(last.last, one.last))
            else:
                self._gaps.append(one)
        if len(self._gaps) >= self._fold_at:
            self._fold()

    def _fold(self) -> None:
        """Keep the first spans, and of the others that are settled only how many they hold."""
        spans = merged(self._gaps)
        self._doubtful = without(self._doubtful, spans)
        kept, rest = spans[: self._gaps_kept_max], spans[self._gaps_kept_max :]
        if rest and kept[-1].last < self.acked:
            self._dark = IngestSpan(kept[-1].last + 1, self.acked)
            self._dark_missing += _size(_within(rest, self._dark))
            rest = _within(rest, IngestSpan(self.acked + 1, self.taken))
        kept += rest
        self._gaps = kept
        self._fold_at = max(2 * self._gaps_kept_max, 2 * len(kept))

    @property
    def has_doubtful_gaps(self) -> bool:
        """True while there are gaps that are not believed."""
        return not self.is_sure_of_gaps and bool(without(merged(self._gaps), self._lacking()))

    def _lacking(self) -> list[IngestSpan]:
        gaps = merged(self._gaps)
        if self.is_sure_of_gaps:
            return gaps
        certain = merged([span for span in self._certain if span.size > 0])
        return without(gaps, without(gaps, certain))

    def gaps(self) -> list[IngestSpan]:
        """Return what is not stored, in the numbers of the ingest, as far as it is kept."""
        return [self._shifted(one) for one in self._lacking()]

    def missing(self) -> int:
        """Return how many are not stored."""
        return _size(self._lacking()) + self._dark_missing

    def unknown(self) -> list[IngestSpan]:
        """Return what is not known, in the numbers of the ingest."""
        unsettled = IngestSpan(self.acked + 1, self.taken)
        told = [] if self.is_sure_of_gaps else self._gaps
        spans = [*self._doubtful, *told, *([unsettled] if unsettled.size > 0 else [])]
        return [self._shifted(one) for one in without(merged(spans), self._lacking())]

    def stored(self) -> int:
        """Return how many the stream has said that it has."""
        return self.taken - self.missing() - _size(self.unknown())

    def _shifted(self, span: IngestSpan) -> IngestSpan:
        return IngestSpan(self.base + span.first, self.base + span.last)

    @property
    def is_clean(self) -> bool:
        """True when it has ended and all of it is stored."""
        return self.has_ended and not self.missing() and not self.unknown()


class IngestState:
    """The state of all batches of an ingest.

    Attributes:
        current: The batch that messages go to.
    """

    def __init__(
        self,
        stream: str,
        after_seq: int,
        *,
        gaps_kept_max: int = GAPS_KEPT_MAX,
        is_sure_of_gaps: bool = True,
    ) -> None:
        self._gaps_kept_max = gaps_kept_max
        self._is_sure_of_gaps = is_sure_of_gaps
        # The report of the batches before the current one.
        self._past = IngestReport(stream, after_seq=after_seq)
        self.current: BatchState = self._batch(0)

    @property
    def sent(self) -> int:
        """Messages taken."""
        return self.current.base + self.current.taken

    def turn(self) -> None:
        """Begin another batch."""
        self._past = self.report()
        self.current = self._batch(self.sent)

    def restart(self) -> None:
        """Begin the current batch anew: nobody took its first message."""
        self.current = self._batch(self.current.base)

    def _batch(self, base: int) -> BatchState:
        return BatchState(base, self._gaps_kept_max, is_sure_of_gaps=self._is_sure_of_gaps)

    def report(self) -> IngestReport:
        """Return what is known now."""
        past, batch = self._past, self.current
        told = [last for last in (past.last_seq, batch.last_seq) if last is not None]
        return IngestReport(
            past.stream,
            sent=self.sent,
            stored=past.stored + batch.stored(),
            after_seq=past.after_seq,
            last_seq=max(told) if told else None,
            gaps=tuple(merged([*past.gaps, *batch.gaps()])[: self._gaps_kept_max]),
            missing=past.missing + batch.missing(),
            refused=(*past.refused, *batch.refused)[:REFUSALS_KEPT_MAX],
            refused_count=past.refused_count + batch.refused_count,
            unknown=tuple(merged([*past.unknown, *batch.unknown()])),
            batches=past.batches + bool(batch.taken),
        )


def merged(spans: Sequence[IngestSpan]) -> list[IngestSpan]:
    """Return spans in order, those that touch or overlap as one."""
    result: list[IngestSpan] = []
    for span in sorted(spans):
        if result and span.first <= result[-1].last + 1:
            result[-1] = IngestSpan(result[-1].first, max(result[-1].last, span.last))
        else:
            result.append(span)
    return result


def without(spans: Sequence[IngestSpan], holes: Sequence[IngestSpan]) -> list[IngestSpan]:
    """Return spans without what is in the holes; these are in order and apart."""
    result: list[IngestSpan] = []
    for span in spans:
        first = span.first
        nearest = bisect_left(holes, first, key=attrgetter("last"))
        for at in range(nearest, len(holes)):
            hole = holes[at]
            if hole.first > span.last:
                break
            if first < hole.first:
                result.append(IngestSpan(first, hole.first - 1))
            first = hole.last + 1
        if first <= span.last:
            result.append(IngestSpan(first, span.last))
    return result


def _size(spans: Sequence[IngestSpan]) -> int:
    return sum(span.size for span in spans)


def _within(spans: Sequence[IngestSpan], region: IngestSpan) -> list[IngestSpan]:
    """Return the parts of spans that lie in a region."""
    parts = (IngestSpan(max(s.first, region.first), min(s.last, region.last)) for s in spans)
    return [part for part in parts if part.size > 0]
