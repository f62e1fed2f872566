"""What the hands of a consumer were given, and what they said about it; pure rules.

Law: what is wrong is written down as a finding and never raised. An excuse is as narrow as the
fact about the server that it stands for, and every use of it is counted.

Times are milliseconds since the run began, by the clock that the servers share with this process.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scripts.chaos_runs.ledger import Findings

FORGETS_MS = 150
"""A consumer with one replica answers first, and writes its state at most 0.1 s later: what it has
answered just before a SIGKILL it has forgotten. Seen: up to 87 ms; the rest is for a busy host."""
HELD_MS_MAX = 12_000
"""How long a message may be on its way to a hand: the longest fault of a proxy, and a fetch."""
STALE_MS = 60_000
"""What comes later than this was not on its way for so long: no fault, no buffer and no deadline of
a run lasts half of it."""
FORGOTTEN = "ms before a kill, the oldest of these"
COUNTED = "letters that reports count"
EXAMPLES = 5
_SUSPECTS_MAX = 100_000

_SETTLED = 1
_CONFIRMED = 2


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery as it came.

    Attributes:
        sequence: Sequence in the stream.
        consumer_seq: The delivery's sequence in the consumer.
        delivered: How often it was delivered, as it says.
        stored_ms: When the stream stored the message.
        now_ms: When it came.
    """

    sequence: int
    consumer_seq: int
    delivered: int
    stored_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class _Again:
    """A delivery that should not be, or should say more."""

    delivery: Delivery
    asked_ms: int
    since_ms: int


class HandBook:
    """What the hands of one consumer were given.

    Args:
        name: The consumer, for findings.
        capacity: Largest sequence.
        findings: Where a broken promise is written down.
        is_replicated: Its state is on several servers; else a killed server forgets a little.
        kills: When servers were killed; the list grows during the run.

    Attributes:
        name: As given.
        handled: Messages that were settled at least once.
        counts: Deliveries, redeliveries, verdicts and used excuses.
    """

    def __init__(
        self,
        name: str,
        capacity: int,
        findings: Findings,
        *,
        is_replicated: bool,
        kills: Sequence[int] = (),
    ) -> None:
        self.name: str = name
        self.handled: int = 0
        self.counts: Counter[str] = Counter()
        self._findings = findings
        self._is_replicated = is_replicated
        self._kills = kills
        self._states = bytearray(capacity + 1)
        self._seen_ms = array("I", bytes(4 * (capacity + 1)))
        self._places = array("I", bytes(4 * (capacity + 1)))
        self._asked_ms = array("I", bytes(4 * (capacity + 1)))
        self._confirmed_ms = array("I", bytes(4 * (capacity + 1)))
        # By sequence in the consumer: when what was delivered there had been stored.
        self._stored_ms = array("I", bytes(8 * (capacity + 1)))
        self._confirmed_again: list[_Again] = []
        self._unsaid: list[_Again] = []

    def deliver(self, delivery: Delivery) -> None:
        """Take down one delivery, before it is handled."""
        sequence = delivery.sequence
        self.counts["delivered"] += 1
        if not 0 < sequence < len(self._states):
            self._findings.add("delivery", f"{self.name}: sequence {sequence} can not be")
            return
        self._note_stored(delivery)
        since_ms, self._seen_ms[sequence] = self._seen_ms[sequence], max(delivery.now_ms, 1)
        if delivery.delivered > 1:
            self.counts["redelivered"] += 1
        elif since_ms and delivery.consumer_seq < self._places[sequence]:
            # On another connection the redelivery was faster.
            self.counts["came later than its own redelivery"] += 1
        elif since_ms:
            self._suspect(self._unsaid, _Again(delivery, 0, since_ms))
        self._places[sequence] = max(self._places[sequence], delivery.consumer_seq)
        if self._states[sequence] & _CONFIRMED:
            asked_ms, confirmed_ms = self._asked_ms[sequence], self._confirmed_ms[sequence]
            self._suspect(self._confirmed_again, _Again(delivery, asked_ms, confirmed_ms))

    def _note_stored(self, delivery: Delivery) -> None:
        place = delivery.consumer_seq
        if 0 < place < len(self._stored_ms):
            # A new leader may give a number out again: the earlier time accuses nobody wrongly.
            known = self._stored_ms[place]
            stored_ms = max(delivery.stored_ms, 1)
            self._stored_ms[place] = min(known, stored_ms) if known else stored_ms

    def _suspect(self, suspects: list[_Again], again: _Again) -> None:
        if len(suspects) < _SUSPECTS_MAX:
            suspects.append(again)

    def settle(self, sequence: int, verdict: str) -> None:
        """Take down that a message is done: acked or terminated, whether that arrives or not."""
        self.counts[verdict] += 1
        if not self._states[sequence] & _SETTLED:
            self._states[sequence] |= _SETTLED
            self.handled += 1

    def confirm(self, sequence: int, asked_ms: int, confirmed_ms: int) -> None:
        """Take down that the server has confirmed a final verdict; the first one counts.

        Args:
            sequence: Of the message.
            asked_ms: When the server was asked, at first.
            confirmed_ms: When its answer was here.
        """
        self.counts["confirmed"] += 1
        if not self._states[sequence] & _CONFIRMED:
            self._states[sequence] |= _CONFIRMED
            self._asked_ms[sequence], self._confirmed_ms[sequence] = asked_ms, confirmed_ms

    def is_settled(self, sequence: int) -> bool:
        """Tell whether a message was settled in some delivery."""
        return bool(self._states[sequence] & _SETTLED)

    def missing(self, wanted: Iterable[int]) -> list[int]:
        """Return which of some sequences were never settled."""
        return [sequence for sequence in wanted if not self._states[sequence] & _SETTLED]

    # At the end.

    def begin_again(self) -> None:
        """Judge what was, and begin anew with a new consumer of the same kind."""
        self.judge()
        capacity = len(self._states) - 1
        self._confirmed_again, self._unsaid = [], []
        self._states = bytearray(capacity + 1)
        for each in (
            self._seen_ms,
            self._places,
            self._asked_ms,
            self._confirmed_ms,
            self._stored_ms,
        ):
            each[:] = array("I", bytes(4 * len(each)))

    def judge(self, wanted: Iterable[int] = ()) -> None:
        """Compare all with what is promised.

        Args:
            wanted: Sequences that it must have handled: what writers were acknowledged.
        """
        self._judge_handled(wanted)
        self._judge_confirmed()
        self._judge_unsaid()

    def _judge_handled(self, wanted: Iterable[int]) -> None:
        missing = self.missing(wanted)
        if missing:
            never = sum(not self._seen_ms[sequence] for sequence in missing)
            self._findings.add(
                "handled",
                f"{self.name}: {len(missing)} messages were not handled, {never} of them never "
                f"delivered: {', '.join(map(str, missing[:10]))}",
            )

    def _judge_confirmed(self) -> None:
        """What the server has sent after its own confirmation breaks the promise.

        When it was sent tells the order of its deliveries: it came after one of a message that was
        not even stored when the confirmation was here.
        """
        if not self._confirmed_again:
            return
        newest = array("I", self._stored_ms)
        for place in range(1, len(newest)):
            newest[place] = max(newest[place], newest[place - 1])
        told = 0
        for again in self._confirmed_again:
            each = again.delivery
            if self._is_forgotten(again.asked_ms, again.since_ms):
                self.counts["excused: confirmed just before a kill"] += 1
                self._note_forgotten(again.since_ms)
                continue
            before = newest[min(each.consumer_seq, len(newest)) - 1]
            if before <= again.since_ms and each.now_ms <= again.since_ms + STALE_MS:
                self.counts["was on its way when it was confirmed"] += 1
                continue
            told += 1
            if told <= EXAMPLES:
                self._findings.add(
                    "confirmed",
                    f"{self.name}: sequence {each.sequence} was confirmed at {again.since_ms} ms, "
                    f"asked for at {again.asked_ms}, and came again at {each.now_ms} as delivery "
                    f"{each.consumer_seq}, its {each.delivered}., behind a message of {before}",
                )

    def _judge_unsaid(self) -> None:
        told = 0
        for again in self._unsaid:
            each = again.delivery
            if self._is_replicated:
                self.counts["excused: a new leader did not know the number of deliveries"] += 1
                continue
            # A fetch hands a message out when it ends, some time after it was sent.
            from_ms = max(each.stored_ms, again.since_ms - HELD_MS_MAX)
            if self._is_forgotten(from_ms, again.since_ms):
                self.counts["excused: delivered just before a kill"] += 1
                continue
            told += 1
            if told <= EXAMPLES:
                self._findings.add(
                    "says so",
                    f"{self.name}: sequence {each.sequence} came at {again.since_ms} ms and again "
                    f"at {each.now_ms} as delivery {each.consumer_seq}, and calls itself the first",
                )

    def _note_forgotten(self, confirmed_ms: int) -> None:
        """Take down how long before a kill the oldest confirmation was that it has forgotten."""
        before_ms = min(
            (kill - confirmed_ms for kill in self._kills if kill >= confirmed_ms), default=0
        )
        self.counts[FORGOTTEN] = max(self.counts[FORGOTTEN], before_ms)

    def _is_forgotten(self, from_ms: int, to_ms: int) -> bool:
        """Tell whether a server that was killed may have forgotten what it said in some time."""
        if self._is_replicated:
            return False
        return any(from_ms <= kill and to_ms >= kill - FORGETS_MS for kill in self._kills)


@dataclass(frozen=True, slots=True)
class LetterSeen:
    """One dead letter as it was found at the end.

    Attributes:
        sequence: Of its message.
        reason: Why it is dead.
        is_whole: Subject, header and payload are those of the message.
    """

    sequence: int
    reason: str
    is_whole: bool


def judge_letters(
    letters: Iterable[LetterSeen],
    book: HandBook,
    wanted: Iterable[int],
    doomed: frozenset[int],
    findings: Findings,
) -> None:
    """Compare a dead-letter stream with the book of the hands that fill it.

    Args:
        letters: What is in it.
        book: Of the consumer; settled means handled without an error.
        wanted: Sequences that must be handled or stand in a letter.
        doomed: Those that no handler takes: each has one letter.
        findings: Where a broken promise is written down.
    """
    found: Counter[int] = Counter()
    wrong: list[str] = []
    for letter in letters:
        found[letter.sequence] += 1
        book.counts[f"letters: {letter.reason}"] += 1
        if not letter.is_whole:
            wrong.append(f"the letter of {letter.sequence} does not hold its message")
        if letter.reason == "rejected" and letter.sequence not in doomed:
            wrong.append(f"{letter.sequence} has a letter, and nobody has rejected it")
    wrong += [f"{sequence} has {count} letters" for sequence, count in found.items() if count > 1]
    for sequence in wanted:
        if sequence in doomed:
            if book.is_settled(sequence):
                wrong.append(f"{sequence} was taken, which no handler does")
            if not found[sequence]:
                wrong.append(f"{sequence} was not taken, and has no letter")
        elif not found[sequence] and not book.is_settled(sequence):
            wrong.append(f"{sequence} was neither handled nor has it a letter")
    for text in wrong[:EXAMPLES]:
        findings.add("dead letters", f"{book.name}: {text}")


def judge_kept(
    letters: Sequence[LetterSeen],
    book: HandBook,
    wanted: Iterable[int],
    doomed: frozenset[int],
    n_held: int,
    findings: Findings,
) -> None:
    """Compare all letters that a small dead-letter stream ever had with the book of its hands.

    A message whose letter was dropped may come again, where a verdict was lost, and have another.

    Args:
        letters: All that were ever in it.
        book: Of the consumer; settled means handled without an error.
        wanted: Sequences that must be handled, stand in a letter, or be with the consumer.
        doomed: Those that no handler takes.
        n_held: Messages that are with the consumer: out, or to be delivered.
        findings: Where a broken promise is written down.
    """
    found = {letter.sequence for letter in letters}
    wrong = [
        f"the letter of {each.sequence} does not hold its message"
        for each in letters
        if not each.is_whole
    ]
    wrong += [
        f"{each.sequence} has a letter, and nobody has rejected it"
        for each in letters
        if each.reason == "rejected" and each.sequence not in doomed
    ]
    asked = set(wanted)
    wrong += [
        f"{each} was taken, which no handler does"
        for each in sorted(asked & doomed)
        if book.is_settled(each)
    ]
    missing = [each for each in sorted(asked - found) if not book.is_settled(each)]
    if len(missing) > n_held:
        wrong.append(
            f"{len(missing)} messages were neither handled nor have they a letter, and {n_held} "
            f"are with the consumer: {', '.join(map(str, missing[:10]))}"
        )
    # What was stored just before a worker was cancelled is in no report, and none counts more.
    if book.counts[COUNTED] > len(letters):
        wrong.append(f"reports count {book.counts[COUNTED]} letters, {len(letters)} were stored")
    book.counts["letters"] += len(letters)
    for text in wrong[:EXAMPLES]:
        findings.add("kept letters", f"{book.name}: {text}")
