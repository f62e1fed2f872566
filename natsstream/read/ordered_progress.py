"""How far an ordered consumer has come, and where the next consumer begins; pure rules.

Law: a message is handed over once, in the order of the stream, whatever consumers delivered it.

Beginning with the last message of each subject is the one start that cannot be repeated:
after a break other messages are the last ones. The rule for it, with the *horizon* as the stream's
last sequence when the read began:

1. While the read has not come to the horizon, a break makes another consumer of the last messages.
   Of these, what lies behind the horizon or was handed over already is left out.
2. From the horizon on, everything is read, in a consumer that begins behind it.

So every subject's last message at the beginning is handed over, or a newer one in its place, and
every message stored after the beginning is handed over once.
"""

from __future__ import annotations

from bisect import bisect_left

from natsstream.api.message import Message
from natsstream.read.missing import MissingSequences
from natsstream.read.progress import Gap, OutOfOrderError
from natsstream.read.read_events import OrderedReport
from natsstream.read.runs import Run
from natsstream.read.start_position import ConsumerStart


class OrderedProgress:
    """The state of one ordered read.

    Args:
        start: Where it begins.
        horizon: The stream's last sequence when it began; up to it, messages existed before.
        has_filters: True when filters hide some sequences, so that holes tell nothing.
        stops_at_loss: Hand nothing over behind the first lost message.
        missing: Tells why sequences are missing.
        report: Counts messages and gaps.

    Attributes:
        next_seq: Everything before it was handed over, or is not wanted.
        horizon: As given.
        seen_seq: The last sequence that the stream is known to have had.
        is_caught_up: True when what existed at the beginning has been passed.
        is_phase_over: True when what comes next is for another consumer.
        loss: The first gap with lost messages, None while nothing is lost.
        new_gaps: Gaps that were found; for the caller to empty.
    """

    def __init__(
        self,
        start: ConsumerStart,
        *,
        horizon: int,
        has_filters: bool,
        stops_at_loss: bool,
        missing: MissingSequences,
        report: OrderedReport,
    ) -> None:
        self.next_seq: int = start.sequence or 1
        self.horizon: int = horizon
        self.seen_seq: int = horizon
        self.is_caught_up: bool = self.next_seq > horizon
        self.is_phase_over: bool = False
        self.loss: Gap | None = None
        self.new_gaps: list[Gap] = []
        self._is_per_subject = start.is_last_per_subject
        self._is_repeat = False
        self._time_ns = start.time_ns
        self._counts_holes = not (has_filters or self._is_per_subject)
        self._stops_at_loss = stops_at_loss
        self._missing = missing
        self._report = report
        self._next_delivery = 1
        self._consumers = 0

    def begin(self) -> ConsumerStart:
        """Return where the next consumer begins; it numbers its deliveries from 1."""
        self._next_delivery = 1
        self._consumers += 1
        self.is_phase_over = self._is_repeat = False
        if self._is_per_subject and self.next_seq <= self.horizon:
            self._is_repeat = self._consumers > 1
            return ConsumerStart()
        return ConsumerStart(
            sequence=self.next_seq if self._time_ns is None else None, time_ns=self._time_ns
        )

    def crosses_horizon(self, run: Run[list[Message]]) -> bool:
        """Return True if a run has to be split at the horizon."""
        return not self.is_caught_up and run.first <= self.horizon < run.last

    def has_holes(self, run: Run[list[Message]]) -> bool:
        """Return True if sequences are missing, and the server can say why."""
        if not self._counts_holes or self._time_ns is not None:
            return False
        known = bisect_left(run.sequences(), self.next_seq) if run.first < self.next_seq else 0
        return run.last - self.next_seq + 1 > run.count - known

    def accept(self, run: Run[list[Message]]) -> list[Message]:
        """Take over deliveries, and return which of them are handed over.

        The others are left out: they were handed over before, or come before the start.

        Raises:
            OutOfOrderError: A delivery is missing or repeated; nothing was taken.
        """
        if run.first_delivery != self._next_delivery or run.last - run.first + 1 < run.count:
            raise OutOfOrderError
        self._next_delivery += run.count
        self.seen_seq = max(self.seen_seq, run.last)
        if run.first > self.horizon:
            self.catch_up()
            if self._is_repeat:
                self.is_phase_over = True
                return []
        start, stop, end = self._first_wanted(run), run.count, run.last + 1
        if start < stop:
            self._count_holes(run, start)
            if self.loss is not None and self._stops_at_loss:
                end = self.loss.first_seq
                stop = bisect_left(run.sequences(), end)
            self._report.messages += stop - start
        self.next_seq = max(self.next_seq, end)
        return run.items if stop - start == run.count else run.items[start:stop]

    def catch_up(self) -> None:
        """Note that nothing up to the horizon is left."""
        self.is_caught_up = True
        if self._is_per_subject:
            self.next_seq = max(self.next_seq, self.horizon + 1)

    def _first_wanted(self, run: Run[list[Message]]) -> int:
        """Return the index of the first delivery that is handed over; `count` when none is."""
        start = 0
        if run.first < self.next_seq:
            start = bisect_left(run.sequences(), self.next_seq)
        if self._time_ns is None or start == run.count:
            return start
        # A server whose last message is older than the moment begins behind it all the same.
        moment, items = self._time_ns, run.items
        late = (at for at in range(start, run.count) if items[at].time_ns >= moment)
        start = next(late, run.count)
        if start < run.count:
            # Sequences before the moment are not missing.
            self.next_seq, self._time_ns = items[start].sequence, None
        return start

    def _count_holes(self, run: Run[list[Message]], start: int) -> None:
        if not self.has_holes(run):
            return
        self._report.has_unnamed_loss = self._missing.has_unnamed_loss
        expected = self.next_seq
        for sequence in run.sequences()[start:]:
            for reason, stop in self._missing.reasons(expected, sequence):
                gap = Gap(expected, stop - 1, reason)
                self._report.add_gap(gap)
                self.new_gaps.append(gap)
                if reason == "lost" and self.loss is None:
                    self.loss = gap
                    if self._stops_at_loss:
                        return
                expected = stop
            expected = sequence + 1
