"""Unit tests of the ordered consumer's rules, against a model of what a server delivers.

The model's server delivers as nats-server does: in the order of the stream, from a sequence, from a
moment, or the last of each subject as its replica knows it, and after that everything. A replica
may lag behind. Consumers break at any point, and the tail says how to go on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.message import Message
from natsstream.read.missing import MissingSequences
from natsstream.read.ordered_progress import OrderedProgress
from natsstream.read.progress import Gap, OutOfOrderError
from natsstream.read.read_events import OrderedReport
from natsstream.read.runs import Run, run_of, split_run
from natsstream.read.start_position import ConsumerStart


def message(sequence: int, *, subject: str = "s", time_ns: int | None = None) -> Message:
    """Return a stored message; its time is its sequence when none is given."""
    frame = (subject.encode(), b"", b"", b"")
    return Message(frame, (sequence, sequence if time_ns is None else time_ns))


def run(*sequences: int, first_delivery: int = 1) -> Run[list[Message]]:
    """Return messages that arrive together."""
    messages = [message(each) for each in sequences]
    return run_of(messages, size=len(messages), first_delivery=first_delivery, pending=0)


def new_tail(
    start: ConsumerStart,
    *,
    horizon: int = 0,
    has_filters: bool = False,
    stops_at_loss: bool = False,
    missing: MissingSequences | None = None,
    report: OrderedReport | None = None,
) -> OrderedProgress:
    """Return a tail that has made its first consumer."""
    tail = OrderedProgress(
        start,
        horizon=horizon,
        has_filters=has_filters,
        stops_at_loss=stops_at_loss,
        missing=missing or MissingSequences(),
        report=report or OrderedReport(),
    )
    tail.begin()
    return tail


def sequences_of(messages: list[Message]) -> list[int]:
    return [each.sequence for each in messages]


# The model.


@dataclass
class ModelStream:
    """A stream and how far the replica of the consumer lags behind it."""

    messages: list[Message] = field(default_factory=list[Message])

    def store(self, subject: str) -> None:
        sequence = len(self.messages) + 1
        self.messages.append(message(sequence, subject=subject))

    def last_of_subjects(self, until: int) -> list[Message]:
        last = {each.subject: each for each in self.messages[:until]}
        return sorted(last.values(), key=lambda each: each.sequence)


class ModelConsumer:
    """Delivers what a consumer of nats-server would, from a replica."""

    def __init__(self, stream: ModelStream, start: ConsumerStart, replica_last: int) -> None:
        self._stream = stream
        self._delivered = 0
        self._listed: list[Message] = []
        self._next = replica_last + 1
        if start.is_last_per_subject:
            self._listed = stream.last_of_subjects(replica_last)
        elif start.sequence is not None:
            self._next = min(start.sequence, replica_last + 1)
        elif start.time_ns is not None:
            held = stream.messages[:replica_last]
            late = (each.sequence for each in held if each.time_ns >= (start.time_ns or 0))
            self._next = next(late, replica_last + 1)

    def deliver(self, count: int) -> Run[list[Message]] | None:
        """Return the next messages; None when there are none."""
        messages: list[Message] = []
        while len(messages) < count:
            if self._listed:
                messages.append(self._listed.pop(0))
            elif self._next <= len(self._stream.messages):
                messages.append(self._stream.messages[self._next - 1])
                self._next += 1
            else:
                break
        if not messages:
            return None
        first_delivery = self._delivered + 1
        self._delivered += len(messages)
        pending = len(self._listed) + len(self._stream.messages) - self._next + 1
        return run_of(messages, size=0, first_delivery=first_delivery, pending=pending)


def follow(
    stream: ModelStream, tail: OrderedProgress, steps: list[tuple[str, int]]
) -> tuple[list[Message], int]:
    """Drive a tail through stores, deliveries and breaks; return what it handed over.

    The last consumer delivers all that is left. The second value is how many were initial.
    """
    consumer = ModelConsumer(stream, tail.begin(), len(stream.messages))
    found: list[Message] = []
    initial: list[Message] = []

    def take(count: int) -> bool:
        nonlocal consumer
        arrived = consumer.deliver(count)
        if arrived is None:
            return False
        parts = split_run(arrived, tail.horizon) if tail.crosses_horizon(arrived) else (arrived,)
        for part in parts:
            handed = tail.accept(part)
            found.extend(handed)
            if not tail.is_caught_up:
                initial.extend(handed)
            if tail.is_phase_over:
                consumer = ModelConsumer(stream, tail.begin(), len(stream.messages))
                break
        return True

    for action, number in steps:
        if action == "store":
            stream.store(f"s{number % 4}")
        elif action == "deliver":
            take(number + 1)
        else:
            lag = number % 3 if action == "lag" else 0
            replica_last = max(len(stream.messages) - lag, 0)
            consumer = ModelConsumer(stream, tail.begin(), replica_last)
    while take(5):
        pass
    return found, len(initial)


steps = st.lists(
    st.tuples(st.sampled_from(["store", "deliver", "break", "lag"]), st.integers(0, 7)),
    max_size=40,
)
subjects = st.lists(st.integers(0, 3), max_size=12)


@given(subjects, steps)
def test_last_per_subject_loses_and_repeats_nothing_across_breaks(
    before: list[int], steps: list[tuple[str, int]]
) -> None:
    stream = ModelStream()
    for number in before:
        stream.store(f"s{number}")
    horizon = len(stream.messages)
    tail = OrderedProgress(
        ConsumerStart(),
        horizon=horizon,
        has_filters=False,
        stops_at_loss=True,
        missing=MissingSequences(),
        report=OrderedReport(),
    )

    found, _ = follow(stream, tail, steps)

    sequences = sequences_of(found)
    assert sequences == sorted(set(sequences))
    stored_after = range(horizon + 1, len(stream.messages) + 1)
    assert [each for each in sequences if each > horizon] == list(stored_after)
    for last in stream.last_of_subjects(horizon):
        newer = [each for each in found if each.subject == last.subject]
        assert newer[-1].sequence >= last.sequence
        is_overwritten = any(
            each.subject == last.subject for each in stream.messages[last.sequence :]
        )
        assert last.sequence in sequences or is_overwritten


@given(subjects, steps, st.integers(1, 20))
def test_reading_from_a_sequence_hands_over_each_from_there_once(
    before: list[int], steps: list[tuple[str, int]], first: int
) -> None:
    stream = ModelStream()
    for number in before:
        stream.store(f"s{number}")
    report = OrderedReport()
    tail = OrderedProgress(
        ConsumerStart(sequence=first),
        horizon=len(before),
        has_filters=False,
        stops_at_loss=True,
        missing=MissingSequences(),
        report=report,
    )

    found, initial = follow(stream, tail, steps)

    assert sequences_of(found) == list(range(first, len(stream.messages) + 1))
    assert initial == max(len(before) - first + 1, 0)
    assert report.messages == len(found)
    assert report.gaps == []


@given(subjects, steps, st.integers(0, 20))
def test_reading_from_a_moment_hands_over_each_from_there_once(
    before: list[int], steps: list[tuple[str, int]], moment: int
) -> None:
    """Also when it lies behind the last message of the replica that is asked."""
    stream = ModelStream()
    for number in before:
        stream.store(f"s{number}")
    tail = OrderedProgress(
        ConsumerStart(time_ns=moment),
        horizon=len(before),
        has_filters=False,
        stops_at_loss=True,
        missing=MissingSequences(),
        report=OrderedReport(),
    )

    found, _ = follow(stream, tail, steps)

    assert sequences_of(found) == list(range(max(moment, 1), len(stream.messages) + 1))


# Single rules.


def test_missing_delivery_is_refused_and_nothing_is_taken() -> None:
    tail = new_tail(ConsumerStart(sequence=1), horizon=9)
    tail.accept(run(1, 2))

    with pytest.raises(OutOfOrderError):
        tail.accept(run(4, 5, first_delivery=4))

    assert tail.next_seq == 3
    assert tail.begin() == ConsumerStart(sequence=3)


def test_repeated_sequence_is_refused() -> None:
    tail = new_tail(ConsumerStart(sequence=1), horizon=9)

    with pytest.raises(OutOfOrderError):
        tail.accept(run(2, 2))


def test_break_before_the_first_delivery_begins_with_the_last_of_each_subject_again() -> None:
    tail = new_tail(ConsumerStart(), horizon=9)

    assert tail.begin().is_last_per_subject


def test_subjects_that_were_caught_up_with_are_not_listed_again() -> None:
    tail = new_tail(ConsumerStart(), horizon=9)
    tail.accept(run(4))
    tail.catch_up()

    assert tail.begin() == ConsumerStart(sequence=10)


def test_new_messages_of_a_repeated_list_are_left_to_the_next_consumer() -> None:
    """The list is of last messages only: between 9 and 12 others may lie."""
    tail = new_tail(ConsumerStart(), horizon=9)
    tail.begin()
    assert sequences_of(tail.accept(run(4, 9))) == [4, 9]

    assert tail.accept(run(12, first_delivery=3)) == []

    assert tail.is_phase_over
    assert tail.begin() == ConsumerStart(sequence=10)
    assert not tail.is_phase_over


def test_run_is_split_where_the_messages_end_that_existed_before() -> None:
    tail = new_tail(ConsumerStart(sequence=1), horizon=3)
    arrived = run(2, 3, 4, 6)

    assert tail.crosses_horizon(arrived)
    before, after = split_run(arrived, tail.horizon)

    assert (sequences_of(before.items), before.first_delivery, before.pending) == ([2, 3], 1, 2)
    assert (sequences_of(after.items), after.first_delivery, after.pending) == ([4, 6], 3, 0)
    tail.accept(before)
    assert not tail.is_caught_up
    tail.accept(after)
    assert tail.is_caught_up


def test_start_behind_the_last_message_is_caught_up_at_once() -> None:
    assert new_tail(ConsumerStart(sequence=10), horizon=9).is_caught_up
    assert not new_tail(ConsumerStart(sequence=9), horizon=9).is_caught_up
    assert not new_tail(ConsumerStart(time_ns=1), horizon=9).is_caught_up


def test_deleted_and_lost_sequences_are_counted() -> None:
    report = OrderedReport()
    holes = MissingSequences()
    holes.learn(first_held=1, deleted=[2])
    tail = new_tail(ConsumerStart(sequence=1), horizon=9, missing=holes, report=report)

    assert sequences_of(tail.accept(run(1, 4))) == [1, 4]

    assert report.gaps == tail.new_gaps == [Gap(2, 2, "deleted"), Gap(3, 3, "lost")]
    assert tail.loss == Gap(3, 3, "lost")


def test_nothing_is_handed_over_behind_a_loss_that_ends_the_read() -> None:
    report = OrderedReport()
    holes = MissingSequences()
    holes.learn(first_held=1, deleted=[])
    tail = new_tail(
        ConsumerStart(sequence=1), horizon=9, stops_at_loss=True, missing=holes, report=report
    )

    assert sequences_of(tail.accept(run(1, 2, 4, 6))) == [1, 2]

    assert tail.loss == Gap(3, 3, "lost")
    assert tail.next_seq == 3
    assert report.messages == 2


@pytest.mark.parametrize(
    ("start", "has_filters"),
    [(ConsumerStart(sequence=1), True), (ConsumerStart(), False)],
    ids=["filters", "last_per_subject"],
)
def test_holes_mean_nothing_where_sequences_are_hidden(
    start: ConsumerStart, *, has_filters: bool
) -> None:
    report = OrderedReport()
    tail = new_tail(start, horizon=2, has_filters=has_filters, report=report)

    assert not tail.has_holes(run(5, 9))
    tail.accept(run(5, 9))

    assert report.gaps == []


def test_hole_behind_deliveries_that_come_twice_is_seen() -> None:
    tail = new_tail(ConsumerStart(sequence=10), horizon=20)

    assert tail.has_holes(run(8, 9, 10, 13))
    assert not tail.has_holes(run(8, 9, 10, 11))
