"""A producer's rules against a log that loses, delays and refuses, and against other instances."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from natsstream.api.control import past_of
from natsstream.errors import (
    ControlRecordError,
    NatsStreamError,
    ProducerConflictError,
    ProducerTimeoutError,
    RequestTimeoutError,
    SequenceGapError,
    StaleEpochError,
    StreamClosedError,
    StreamRecreatedError,
    WrongLastSequenceError,
)
from natsstream.producer.batches import Batches, Found, Outcome, Read, Stored, Write
from natsstream.producer.options import ProducerOptions
from natsstream.producer.queue import Group
from natsstream.producer.records import BatchMark, Instance, StateRecord
from natsstream.publish.outgoing import Prepared
from natsstream.streams.closing.end import EndOfStream

SEEDS = range(150)
STEPS = 400


@dataclass
class Log:
    """The stream: it takes a write only if the token is that of the newest state.

    Each record that it takes says what the stream has: how many messages, and the last checkpoint.
    """

    checkpoint: object = None
    data: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    record: StateRecord | None = None
    token: int = 0
    end: EndOfStream | None = None
    final_offset: int = 0
    last_seq: int = 0

    def write(self, write: Write) -> Stored:
        has_messages = write.batch is not None and bool(write.batch.count or write.batch.is_end)
        if write.token != self.token or (has_messages and self.end is not None):
            raise WrongLastSequenceError("wrong last sequence")
        for message in [] if write.batch is None else list(write.batch.messages()):
            self.last_seq += 1
            self.data.append((self.last_seq, message.data))
        if write.batch is not None and write.batch.checkpoint is not None:
            self.checkpoint = write.batch.checkpoint
        assert (write.record.count, write.record.checkpoint) == (len(self.data), self.checkpoint)
        assert write.record.epoch > self.epoch or not is_claim(write)
        last_seq = self.last_seq
        if write.end is not None:
            self.last_seq += 1
            last_seq = self.final_offset = self.data[-1][0] if self.data else 0
            self.end = write.end
        self.last_seq += 1
        self.record, self.token = write.record, self.last_seq
        return Stored(self.token, last_seq)

    @property
    def epoch(self) -> int:
        return -1 if self.record is None else self.record.epoch

    def read(self) -> Found:
        return Found(self.record, self.token, self.end, self.final_offset, self.last_seq)


def is_claim(write: Write) -> bool:
    return write.batch is None


class Writer:
    """One instance: what it appended, and how each group ended."""

    def __init__(
        self, name: str, rng: random.Random, *, replicas: int = 1, **options: object
    ) -> None:
        given = ProducerOptions(producer_id="p", linger=0.0, **options)  # pyright: ignore[reportArgumentType]
        self.name = name
        self.rules = Batches(given, name, rng, "S", replicas=replicas)
        self.appended: list[bytes] = []
        self.outcomes: dict[bytes, Outcome] = {}
        self.ended: list[bytes] = []

    def append(self, now: float, count: int = 1) -> None:
        messages: list[Prepared] = []
        for _ in range(count):
            data = f"{self.name}-{len(self.appended)}".encode()
            self.appended.append(data)
            messages.append(Prepared("s", data, b"", (), expects_last_id=False))
        # Some groups have a position: that of their last message.
        position = len(self.appended) if len(self.appended) % 3 else None
        self.rules.queue.append(Group(tuple(messages), 10 * count, position), lambda: now)

    def take(self) -> None:
        for ended in self.rules.take_ended():
            for outcome in ended.outcomes():
                for message in outcome.group.messages:
                    assert message.data not in self.outcomes, "a group ended twice"
                    self.outcomes[message.data] = outcome
                    self.ended.append(message.data)


class World:
    """Several instances of one producer, and what is on its way.

    With replicas, a leader that was cut off answers some reads with what it had.
    """

    def __init__(self, seed: int, *, losses: float = 0.3, replicas: int = 1) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - No secret.
        self.log = Log()
        self.now = 0.0
        self.losses = losses
        self.late: list[Write] = []
        self.replicas = replicas
        # What a leader has had, each as of half a second later.
        self.past: deque[Found] = deque(maxlen=20)

    def read(self) -> Found:
        is_stale = self.replicas > 1 and self.rng.random() < self.losses
        return self.rng.choice(self.past) if is_stale else self.log.read()

    def step(self, writer: Writer) -> bool:
        """Let an instance do one thing; return False if it has nothing to do."""
        self.now += 0.5
        self.past.append(self.log.read())
        action = writer.rules.next(self.now)
        if action is None:
            writer.take()
            return False
        is_lost = self.rng.random() < self.losses
        try:
            if isinstance(action, Read):
                if is_lost:
                    raise RequestTimeoutError("no answer", retryable=True)
                writer.rules.state_read(self.read(), self.now)
            else:
                self._write(writer, action, is_lost=is_lost)
        except NatsStreamError as error:
            writer.rules.refused(error, self.now, is_final=False)
        writer.take()
        self.arrive()
        return True

    def _write(self, writer: Writer, action: Write, *, is_lost: bool) -> None:
        if is_lost and self.rng.random() < 0.5:
            self.late.append(action)  # It may arrive much later, or never.
            raise RequestTimeoutError("no answer", retryable=True)
        stored = self.log.write(action)
        if is_lost:
            raise RequestTimeoutError("no answer", retryable=True)
        writer.rules.stored(action, stored)

    def arrive(self) -> None:
        while self.late and self.rng.random() < 0.3:
            write = self.late.pop(self.rng.randrange(len(self.late)))
            try:
                self.log.write(write)
            except WrongLastSequenceError:
                continue

    def settle(self, writer: Writer) -> None:
        """Let all that is left come to its end."""
        self.losses = 0.0
        for _ in range(2_000):
            self.now += 5.0
            if not self.step(writer) and writer.rules.queue.is_empty:
                break

    def check(self, *writers: Writer) -> None:
        stored = [data for _, data in self.log.data]
        sequences = {data: seq for seq, data in self.log.data}
        assert len(stored) == len(set(stored)), "stored twice"
        for writer in writers:
            mine = [data for data in stored if data in set(writer.appended)]
            assert mine == [data for data in writer.appended if data in set(mine)], "out of order"
            assert set(writer.outcomes) == set(writer.appended), "a group is left"
            for data, outcome in writer.outcomes.items():
                if outcome.error is None:
                    assert data in sequences, f"{data!r} was told as stored and is not"
                    last = outcome.group.messages[-1].data
                    assert outcome.offset in (None, sequences[last])
                elif isinstance(outcome.error, StaleEpochError | StreamClosedError):
                    assert data not in sequences, f"{data!r} was told as refused and is stored"


@pytest.mark.sampled
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_instance_stores_all_once_and_in_order(seed: int, replicas: int) -> None:
    world = World(seed, replicas=replicas)
    options: dict[str, object] = {"delivery_timeout": 1e6, "max_batch_messages": 4}
    writer = Writer("a", world.rng, replicas=replicas, **options)
    for _ in range(STEPS):
        if world.rng.random() < 0.3:
            writer.append(world.now, world.rng.randint(1, 3))
        world.step(writer)
    world.settle(writer)
    world.check(writer)
    assert [data for _, data in world.log.data] == writer.appended


@pytest.mark.sampled
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_zombies_are_refused_and_told_the_truth(seed: int, replicas: int) -> None:
    world = World(seed, replicas=replicas)
    options: dict[str, object] = {"delivery_timeout": 1e6, "max_batch_messages": 3}
    writers: list[Writer] = []
    for life in range(4):
        writers.append(Writer(f"w{life}", world.rng, replicas=replicas, **options))
        for _ in range(STEPS // 4):
            writer = world.rng.choice(writers)  # The earlier ones go on as well.
            if writer.rules.failure is None and world.rng.random() < 0.4:
                writer.append(world.now, world.rng.randint(1, 2))
            world.step(writer)
    for writer in writers:
        world.settle(writer)
        if writer.rules.failure is None:  # One that was not told yet finds out by writing.
            writer.append(world.now)
            world.settle(writer)
    world.check(*writers)
    assert world.log.record is not None
    alive = [w.rules.epoch for w in writers if w.rules.failure is None]
    assert alive in ([], [world.log.record.epoch])


@pytest.mark.sampled
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_claimed_anew_nothing_is_lost_or_twice(seed: int, replicas: int) -> None:
    """Two instances with auto_claim take turns; the reference loses four of five batches here."""
    world = World(seed, losses=0.1, replicas=replicas)
    options: dict[str, object] = {"delivery_timeout": 1e6, "max_batch_messages": 2}
    options |= {"auto_claim": True, "max_claims": 1_000_000}
    writers = [Writer(name, world.rng, replicas=replicas, **options) for name in ("a", "b")]
    for _ in range(STEPS):
        writer = world.rng.choice(writers)
        if world.rng.random() < 0.3:
            writer.append(world.now)
        world.step(writer)
    for writer in writers:
        world.settle(writer)
    world.check(*writers)
    for writer in writers:
        assert writer.rules.failure is None
        assert set(writer.appended) <= {data for _, data in world.log.data}


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_stored_behind_the_end(seed: int) -> None:
    world = World(seed)
    closer = Writer("a", world.rng, delivery_timeout=1e6)
    for _ in range(30):
        closer.append(world.now)
        world.step(closer)
    world.settle(closer)
    closer.rules.queue.end(None, world.now)
    world.losses = 0.4
    for _ in range(200):
        world.step(closer)
    world.settle(closer)
    assert closer.rules.final_offset == world.log.final_offset
    later = Writer("b", world.rng)
    world.step(later)
    assert isinstance(later.rules.failure, StreamClosedError)
    world.check(closer)


# Explicit epochs: the tuples of the protocol.


def opened(log: Log, name: str, *, replicas: int = 1, **options: object) -> tuple[World, Writer]:
    world = World(0, losses=0.0)
    world.log = log
    writer = Writer(name, world.rng, replicas=replicas, **options)
    world.step(writer)
    return world, writer


def flushed(world: World, writer: Writer, count: int = 1) -> list[Outcome]:
    before = len(writer.ended)
    for _ in range(count):
        writer.append(world.now)
        writer.rules.queue.push()
        world.settle(writer)
    return [writer.outcomes[data] for data in writer.ended[before:]]


def test_same_epoch_and_number_is_a_duplicate() -> None:
    log = Log()
    world, first = opened(log, "a", epoch=3)
    flushed(world, first, 3)
    world, second = opened(log, "b", epoch=3)
    outcomes = flushed(world, second, 4)
    assert [each.is_duplicate for each in outcomes] == [True, True, True, False]
    assert [each.last_seq for each in outcomes] == [2, 2, 2, 3]
    assert len(log.data) == 4


def test_two_live_instances_of_one_epoch_are_told_apart() -> None:
    log = Log()
    world, first = opened(log, "a", epoch=1)
    flushed(world, first)
    _, second = opened(log, "b", epoch=1)
    flushed(world, second, 2)
    assert isinstance(flushed(world, first)[0].error, ProducerConflictError)


def test_stale_epoch_names_the_current_one() -> None:
    log = Log()
    world, first = opened(log, "a", epoch=2_147_483_640)
    flushed(world, first)
    _, second = opened(log, "b", epoch=7)
    failure = second.rules.failure
    assert isinstance(failure, StaleEpochError)
    assert failure.current_epoch == 2_147_483_640


def test_end_is_answered_again_to_the_same_epoch_and_batches() -> None:
    log = Log()
    world, first = opened(log, "a", epoch=2)
    flushed(world, first, 2)
    first.rules.queue.end(None, world.now)
    world.settle(first)
    _, second = opened(log, "b", epoch=2)
    assert [each.is_duplicate for each in flushed(world, second, 2)] == [True, True]
    second.rules.queue.end(Group((), 0), world.now)
    world.settle(second)
    assert second.rules.final_offset == first.rules.final_offset == log.final_offset
    _, third = opened(log, "c", epoch=2)
    assert isinstance(flushed(world, third, 3)[-1].error, StreamClosedError)
    _, early = opened(log, "d", epoch=2)
    early.rules.queue.end(None, world.now)
    world.settle(early)
    assert isinstance(early.rules.failure, StreamClosedError)
    assert early.rules.final_offset is None


def test_close_of_an_instance_that_sent_less_than_is_stored_ends_the_stream() -> None:
    log = Log()
    world, first = opened(log, "a", epoch=2)
    flushed(world, first, 3)
    world, second = opened(log, "b", epoch=2)
    second.rules.queue.end(None, world.now)
    world.settle(second)
    assert log.end is not None
    assert second.rules.final_offset == log.final_offset


def test_new_epoch_begins_with_batch_0_whatever_older_ones_have_stored() -> None:
    log = Log()
    world, first = opened(log, "a", epoch=0)
    flushed(world, first, 3)
    world, second = opened(log, "b", epoch=5)
    assert [each.is_duplicate for each in flushed(world, second, 2)] == [False, False]
    assert len(log.data) == 5


@pytest.mark.parametrize("loses_claim", [False, True])
def test_opening_is_given_up_in_time(*, loses_claim: bool) -> None:
    world = World(0, losses=0.0 if loses_claim else 1.0)
    writer = Writer("a", world.rng, delivery_timeout=5.0)
    if loses_claim:
        world.step(writer)
        world.losses = 1.0
    for _ in range(60):
        world.step(writer)
    assert isinstance(writer.rules.failure, ProducerTimeoutError)
    assert not writer.rules.is_open


def test_claims_that_were_lost_do_not_count_as_claims_of_others() -> None:
    world = World(0, losses=1.0)
    writer = Writer("a", world.rng, delivery_timeout=1e6, max_claims=1)
    writer.rules.state_read(Found(), 0.0)
    for _ in range(20):
        world.now += 5
        assert isinstance(writer.rules.next(world.now), Write)
        writer.rules.refused(
            RequestTimeoutError("no answer", retryable=True), world.now, is_final=False
        )
        world.now += 5
        assert isinstance(writer.rules.next(world.now), Read)
        writer.rules.state_read(Found(), world.now)
    assert writer.rules.failure is None


def test_claim_recovers_what_was_stored_since_the_first_read() -> None:
    """The instance before stores another batch between the read and the claim."""
    log = Log()
    world, before = opened(log, "a")
    flushed(world, before, 2)
    world, heir = opened(log, "b")
    assert not heir.rules.is_open
    flushed(world, before)
    assert world.step(heir), "the claim"
    assert not heir.rules.is_open, "the claim was refused, so nothing is claimed"
    world.now += 5
    assert world.step(heir), "another read"
    assert not heir.rules.is_open
    assert world.step(heir), "another claim"
    assert heir.rules.is_open
    assert heir.rules.recovered is not None
    assert heir.rules.recovered.count == 3
    assert isinstance(flushed(world, before)[0].error, StaleEpochError)


def test_lost_state_is_a_gap() -> None:
    log = Log()
    world, writer = opened(log, "a")
    flushed(world, writer, 2)
    log.record, log.token = None, 0
    outcome = flushed(world, writer)[0]
    assert isinstance(outcome.error, SequenceGapError)
    assert (outcome.error.expected_seq, outcome.error.received_seq) == (0, 2)


def test_restart_after_a_lost_state_brings_no_old_checkpoint_back() -> None:
    log = Log(record=StateRecord(Instance(4, "before"), checkpoint=7), token=1, last_seq=1)
    log.checkpoint = 7
    world, writer = opened(log, "a")
    world.settle(writer)
    assert writer.rules.recovered is not None
    log.record, log.token, log.checkpoint = None, 0, None
    assert isinstance(flushed(world, writer)[0].error, SequenceGapError)

    writer.rules.restart()
    world.settle(writer)

    assert writer.rules.recovered is None
    assert log.record is not None
    assert log.record.checkpoint is None


def test_claim_that_nobody_asked_for_leaves_what_was_recovered() -> None:
    log = Log(record=StateRecord(Instance(4, "before"), checkpoint=7), token=1, last_seq=1)
    log.checkpoint = 7
    world, writer = opened(log, "a", auto_claim=True)
    world.settle(writer)
    recovered = writer.rules.recovered
    rival(log)
    assert flushed(world, writer)[0].error is None
    assert writer.rules.recovered is recovered


def in_doubt_about_a_claim(replicas: int) -> tuple[World, Writer]:
    """Return an instance whose claim of epoch 7 was not answered; it has read that 6 is claimed."""
    log = Log(record=StateRecord(Instance(4, "before")), token=1, last_seq=1)
    world, writer = opened(log, "a", auto_claim=True, replicas=replicas)
    world.settle(writer)
    rival(log)
    writer.append(world.now)
    assert world.step(writer), "the write, which is refused"
    world.now += 5
    assert world.step(writer), "the read"
    claim = writer.rules.next(world.now)
    assert isinstance(claim, Write)
    assert claim.batch is None
    error = RequestTimeoutError("no answer", retryable=True)
    writer.rules.refused(error, world.now, is_final=False)
    return world, writer


OLDER = [None, StateRecord(Instance(2, "before"))]


@pytest.mark.parametrize("has_end", [True, False])
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("back", OLDER)
def test_state_that_is_lost_during_a_claim_is_a_gap(
    back: StateRecord | None, replicas: int, *, has_end: bool
) -> None:
    """Another claim would begin in an earlier epoch, with no checkpoint or an old one.

    With replicas the lost end is believed in time; a state that was removed from a stream that has
    its end is gone.
    """
    world, writer = in_doubt_about_a_claim(replicas)
    began = world.now
    world.log.record, world.log.token = back, 0
    if not has_end:
        world.log.last_seq = 0
    while world.step(writer) or writer.rules.failure is None:
        assert world.now < began + 30
    assert isinstance(writer.rules.failure, SequenceGapError)
    assert "state of the producer, of epoch 6, is gone" in writer.rules.failure.message
    is_doubted = replicas > 1 and not has_end
    assert (world.now - began >= 12) is is_doubted


@pytest.mark.parametrize("back", OLDER)
def test_older_state_is_no_gap_where_a_leader_that_was_cut_off_answers(
    back: StateRecord | None,
) -> None:
    world, writer = in_doubt_about_a_claim(replicas=3)
    log = world.log
    found = (log.record, log.token, log.last_seq)
    log.record, log.token, log.last_seq = back, 0, 0
    for _ in range(20):  # For ten seconds.
        world.step(writer)
    log.record, log.token, log.last_seq = found
    world.settle(writer)
    assert writer.rules.epoch == 7
    assert [data for _, data in log.data] == writer.appended


def test_state_of_one_leader_and_the_end_of_another_are_no_gap() -> None:
    """The connection may go to the leader that was cut off between two questions."""
    world, writer = in_doubt_about_a_claim(replicas=3)
    world.now += 5
    assert isinstance(writer.rules.next(world.now), Read)
    writer.rules.state_read(Found(last_seq=world.log.last_seq), world.now)
    assert writer.rules.failure is None
    world.settle(writer)
    assert [data for _, data in world.log.data] == writer.appended


def test_restart_takes_the_stream_as_it_is() -> None:
    """The error before has told that it lost its end."""
    world, writer = opened(Log(), "a", replicas=3)
    world.settle(writer)
    world.log = Log()
    writer.rules.restart()
    began = world.now
    while not writer.rules.is_open:
        assert world.step(writer)
    assert world.now - began < 12
    assert writer.rules.recovered is None


def test_lost_end_of_a_replicated_stream_is_told_once_it_is_believed() -> None:
    world, writer = opened(Log(), "a", replicas=3, delivery_timeout=60)
    world.settle(writer)
    began, lost = world.now, StreamRecreatedError("stream S ends at 1, before 2")
    writer.append(world.now)
    assert isinstance(writer.rules.next(world.now), Write)
    error = RequestTimeoutError("no answer", retryable=True)
    writer.rules.refused(error, world.now, is_final=False)
    while writer.rules.failure is None:
        world.now += 0.5
        if isinstance(writer.rules.next(world.now), Read):
            writer.rules.state_read(Found(lost=lost), world.now)
    assert writer.rules.failure is lost
    assert 12 <= world.now - began < 15


def test_lost_state_is_a_gap_also_before_the_first_batch() -> None:
    log = Log()
    world, writer = opened(log, "a")
    world.settle(writer)
    log.record, log.token = None, 0
    error = flushed(world, writer)[0].error
    assert isinstance(error, SequenceGapError)
    assert (error.expected_seq, error.received_seq) == (0, 0)


def test_lost_state_is_a_gap_also_after_duplicates_alone() -> None:
    log = Log()
    world, first = opened(log, "a", epoch=1)
    flushed(world, first, 3)
    world, second = opened(log, "b", epoch=1)
    flushed(world, second, 3)
    log.record, log.token = None, 0
    error = flushed(world, second)[0].error
    assert isinstance(error, SequenceGapError)
    assert (error.expected_seq, error.received_seq) == (0, 3)


@pytest.mark.parametrize(("owner", "error"), [("a", SequenceGapError), ("z", StaleEpochError)])
def test_older_record_that_is_back_is_a_gap_or_a_conflict(
    owner: str, error: type[NatsStreamError]
) -> None:
    """As a restored backup has it: of this instance, or of the one before it in the epoch."""
    log = Log(record=StateRecord(Instance(1, "z")), token=1, last_seq=1)
    world, writer = opened(log, "a", epoch=1)
    flushed(world, writer)
    assert log.record is not None
    old = replace(log.record, instance=replace(log.record.instance, owner=owner))
    flushed(world, writer)
    log.last_seq += 1
    log.record, log.token = old, log.last_seq
    outcome = flushed(world, writer)[0]
    assert isinstance(outcome.error, error)
    if isinstance(outcome.error, SequenceGapError):
        assert (outcome.error.expected_seq, outcome.error.received_seq) == (1, 2)


def test_each_claim_takes_the_epoch_after_the_stored_one() -> None:
    log = Log()
    assert [opened_fully(log, name).rules.epoch for name in "abc"] == [0, 1, 2]


def opened_fully(log: Log, name: str, **options: Any) -> Writer:
    world, writer = opened(log, name, **options)
    world.settle(writer)
    return writer


def test_restart_takes_a_later_epoch_than_its_own_though_the_stream_knows_none() -> None:
    world, writer = opened(Log(), "a", epoch=5)
    writer.rules.restart()
    world.settle(writer)
    assert writer.rules.epoch == 6


def test_lost_ack_of_a_claim_is_no_second_claim() -> None:
    writer = Writer("a", random.Random(0))  # noqa: S311 - No secret.
    writer.rules.next(0.0)
    writer.rules.state_read(Found(), 0.0)
    claim = writer.rules.next(0.0)
    assert isinstance(claim, Write)
    writer.rules.refused(RequestTimeoutError("no answer", retryable=True), 0.0, is_final=False)
    writer.rules.state_read(Found(claim.record, 4), 5.0)
    assert (writer.rules.is_open, writer.rules.epoch) == (True, 0)
    assert writer.rules.next(5.0) is None


@pytest.mark.parametrize("is_stored", [False, True])
def test_restart_whose_claim_had_no_answer_claims_its_epoch(*, is_stored: bool) -> None:
    world, writer = opened(Log(), "a")
    flushed(world, writer)
    writer.rules.restart()
    assert world.step(writer), "the read"
    claim = writer.rules.next(world.now)
    assert isinstance(claim, Write)
    if is_stored:
        world.log.write(claim)
    error = RequestTimeoutError("no answer", retryable=True)
    writer.rules.refused(error, world.now, is_final=False)
    assert flushed(world, writer)[0].error is None
    assert (writer.rules.epoch, world.log.epoch) == (1, 1)


def test_claims_of_a_minute_are_counted_and_others_forgotten() -> None:
    world, writer = opened(Log(), "a", auto_claim=True, max_claims=2)
    world.settle(writer)
    for _ in range(2):  # Of each, one claim is long ago.
        rival(world.log)
        assert flushed(world, writer)[0].error is None
        world.now += 61
    rival(world.log)
    assert flushed(world, writer)[0].error is None
    world.now += 1
    rival(world.log)
    assert flushed(world, writer)[0].error is None
    rival(world.log)
    assert isinstance(flushed(world, writer)[0].error, StaleEpochError)


def test_claims_beyond_the_limit_name_it_and_restart_claims_in_any_case() -> None:
    log = Log(record=StateRecord(Instance(4, "before")), token=1, last_seq=1)
    world, writer = opened(log, "a", auto_claim=True, max_claims=1)
    world.settle(writer)
    rival(log)
    error = flushed(world, writer)[0].error
    assert isinstance(error, StaleEpochError)
    assert "epoch 5 is over" in error.message
    assert "this one has made 1 claim within a minute, which is max_claims" in error.message
    assert "auto_claim" not in error.hint
    writer.rules.restart()
    assert writer.rules.epoch == 5  # Until the next one is claimed.
    assert flushed(world, writer)[0].error is None
    assert writer.rules.epoch == 7


def test_instance_in_the_same_epoch_is_a_conflict_where_no_claim_is_left() -> None:
    log = Log()
    world, writer = opened(log, "a", epoch=5, auto_claim=True, max_claims=1)
    flushed(world, writer)
    rival(log)
    assert flushed(world, writer)[0].error is None
    assert writer.rules.epoch == 7
    rival(log, epoch=7)
    error = flushed(world, writer)[0].error
    assert isinstance(error, ProducerConflictError)
    assert error.message == "another instance of the producer writes in the same epoch 7"


def test_claim_that_another_instance_was_faster_with_names_one_epoch() -> None:
    log = Log(record=StateRecord(Instance(4, "before")), token=1, last_seq=1)
    world, writer = opened(log, "a", max_claims=1)
    rival(log)
    world.settle(writer)
    assert writer.rules.failure is not None
    assert writer.rules.failure.message.startswith(
        "another instance of the producer has claimed epoch 5, and this one has made 1 claim"
    )


def rival(log: Log, epoch: int | None = None) -> None:
    """Let another instance claim the next epoch."""
    assert log.record is not None
    log.last_seq += 1
    log.record = log.record.followed_by(
        Instance(log.epoch + 1 if epoch is None else epoch, "rival")
    )
    log.token = log.last_seq


def test_stream_that_another_producer_has_ended_takes_nothing() -> None:
    end = EndOfStream(producer_id="q", epoch=0, seq=1)
    for options in ({"epoch": 0}, {}, {"auto_claim": True, "epoch": 0}):
        _, late = opened(Log(end=end, final_offset=6, last_seq=8), "a", **options)
        assert isinstance(late.rules.failure, StreamClosedError)
        late.rules.restart()
        assert isinstance(late.rules.failure, StreamClosedError)
    log = Log()
    world, writer = opened(log, "a", epoch=0)
    flushed(world, writer)
    log.end, log.final_offset = end, 6
    writer.rules.queue.end(None, world.now)  # Its number is 1, as that of the other's end.
    world.settle(writer)
    assert isinstance(writer.rules.failure, StreamClosedError)
    assert writer.rules.failure.final_offset == 6
    assert writer.rules.final_offset is None


def test_end_of_an_earlier_epoch_is_no_answer_to_this_one() -> None:
    writer = Writer("a", random.Random(0), epoch=2)  # noqa: S311 - No secret.
    end = EndOfStream(producer_id="p", epoch=1, seq=0)
    writer.rules.state_read(Found(StateRecord(Instance(2, "a")), 9, end=end, final_offset=4), 0.0)
    assert isinstance(writer.rules.failure, StreamClosedError)


def test_zombie_of_the_producer_that_ended_the_stream_is_told_of_the_end() -> None:
    log = Log()
    world, zombie = opened(log, "a", epoch=0)
    flushed(world, zombie)
    _, closer = opened(log, "b", epoch=1)
    closer.rules.queue.end(None, world.now)
    world.settle(closer)
    assert isinstance(flushed(world, zombie)[0].error, StreamClosedError)


def test_close_that_timed_out_is_the_same_close_when_it_is_tried_again() -> None:
    log = Log()
    world, writer = opened(log, "a", delivery_timeout=3.0)
    world.settle(writer)
    flushed(world, writer)
    writer.rules.queue.end(None, world.now)
    write = writer.rules.next(world.now)
    assert isinstance(write, Write)
    log.write(write)
    world.losses = 1.0
    writer.rules.refused(RequestTimeoutError("no answer", retryable=True), 0.0, is_final=False)
    while writer.rules.failure is None:
        world.step(writer)
    assert isinstance(writer.rules.failure, ProducerTimeoutError)
    writer.rules.end_again(None, world.now)
    world.settle(writer)
    assert (writer.rules.failure, writer.rules.final_offset) == (None, log.final_offset)


def test_batch_is_given_up_in_time_though_reads_succeed() -> None:
    world, writer = opened(Log(), "a", delivery_timeout=5.0)
    world.settle(writer)
    writer.append(world.now)
    for _ in range(60):
        if isinstance(writer.rules.next(world.now), Read):
            writer.rules.state_read(world.log.read(), world.now)
        else:
            error = RequestTimeoutError("no answer", retryable=True)
            writer.rules.refused(error, world.now, is_final=False)
        world.now += 0.5
        writer.take()
    assert isinstance(writer.outcomes[b"a-0"].error, ProducerTimeoutError)


def test_final_refusal_ends_all_groups_with_its_error() -> None:
    world, writer = opened(Log(), "a", max_batch_messages=1)
    world.settle(writer)
    for _ in range(3):
        writer.append(world.now)
    assert isinstance(writer.rules.next(world.now), Write)
    error = RequestTimeoutError("never")
    writer.rules.refused(error, world.now, is_final=True)
    writer.take()
    assert [writer.outcomes[data].error for data in writer.appended] == [error] * 3


def test_attempts_that_fail_wait_longer_and_longer() -> None:
    writer = Writer("a", random.Random(0), delivery_timeout=1e6)  # noqa: S311 - No secret.
    waits: list[float] = []
    for _ in range(12):
        wake_at = writer.rules.wake_at
        assert wake_at is not None
        assert isinstance(writer.rules.next(wake_at), Read)
        writer.rules.refused(RequestTimeoutError("no", retryable=True), wake_at, is_final=False)
        waits.append((writer.rules.wake_at or 0.0) - wake_at)
    assert waits[0] <= 0.005
    assert 0.5 <= waits[-1] <= 1.0


def test_batches_that_one_record_settles_have_no_offset_but_the_last() -> None:
    writer = Writer("a", random.Random(0), epoch=1, max_batch_messages=2)  # noqa: S311 - No secret.
    writer.rules.state_read(Found(StateRecord(Instance(1, "a")), 1), 0.0)
    for _ in range(4):
        writer.append(0.0)
    record = StateRecord(Instance(1, "a", 1), 4)
    writer.rules.state_read(Found(record, 12, record_seq=10), 0.0)
    writer.take()
    assert [writer.outcomes[data].offset for data in writer.appended] == [None, None, 8, 9]


def test_record_of_another_number_settles_neither_an_end_nor_a_batch_in_its_place() -> None:
    closing = Writer("a", random.Random(0), epoch=1)  # noqa: S311 - No secret.
    closing.rules.queue.end(None, 0.0)
    closing.rules.state_read(Found(StateRecord(Instance(1, "z", 3), 4), 9), 0.0)
    assert closing.rules.queue.batches[0].is_end
    late = Writer("b", random.Random(0), epoch=1, max_batch_messages=1)  # noqa: S311 - No secret.
    for _ in range(2):
        late.append(0.0)
    ended = StateRecord(Instance(1, "z", 1), 1, is_closed=True)
    end = EndOfStream(producer_id="p", epoch=1, seq=1)
    late.rules.state_read(Found(ended, 9, end=end, final_offset=7), 0.0)
    late.take()
    assert late.ended == [b"b-0"]
    assert late.rules.next(0.0) is None
    late.take()
    assert isinstance(late.outcomes[b"b-1"].error, StreamClosedError)


def test_write_expects_the_last_sequence_of_record_and_messages() -> None:
    writer = Writer("a", random.Random(0), mode="exclusive")  # noqa: S311 - No secret.
    writer.rules.state_read(Found(last_seq=3), 0.0)
    claim = writer.rules.next(0.0)
    assert isinstance(claim, Write)
    assert claim.last_seq == 3
    writer.rules.stored(claim, Stored(4, 3))
    for token, last_seq in ((4, 5), (7, 6)):  # Without a record behind the batch, and with one.
        writer.append(0.0)
        write = writer.rules.next(1.0)
        assert isinstance(write, Write)
        assert write.last_seq == max(4, token - 2 if token > 4 else 4)
        writer.rules.stored(write, Stored(token, last_seq))
    writer.append(0.0)
    write = writer.rules.next(1.0)
    assert isinstance(write, Write)
    assert write.last_seq == 7


def test_record_tells_of_the_marks_that_it_replaces() -> None:
    """Marks without a batch behind them, the mark of the last batch, and the record."""
    writer = Writer("a", random.Random(0))  # noqa: S311 - No secret.
    writer.rules.state_read(Found(marks=(2,)), 0.0)
    claim = writer.rules.next(0.0)
    assert isinstance(claim, Write)
    assert (claim.marks, claim.record.past) == ((2,), ((2, 2),))
    writer.rules.stored(claim, Stored(6, 5, mark=5))
    writer.append(0.0)
    write = writer.rules.next(1.0)
    assert isinstance(write, Write)
    assert (write.marks, write.record.past) == ((5,), ((2, 2), (5, 6)))
    writer.rules.refused(RequestTimeoutError("no answer", retryable=True), 1.0, is_final=False)
    assert isinstance(writer.rules.next(2.0), Read)
    writer.rules.state_read(Found(claim.record, 6, marks=(5, 9)), 2.0)
    again = writer.rules.next(3.0)
    assert isinstance(again, Write)
    assert (again.marks, again.record.past) == ((5, 9), ((2, 2), (5, 6), (9, 9)))


def test_mark_survives_json() -> None:
    mark = BatchMark(7, (3, 4))
    assert BatchMark.from_json(mark.to_json()) == mark
    assert past_of(mark.to_json()) == ((3, 3), (4, 4))


@pytest.mark.parametrize("data", [b"", b"[]", b'{"n": -1}', b'{"n": "x"}', b"\xff"])
def test_bytes_that_are_no_mark_are_refused(data: bytes) -> None:
    with pytest.raises(ControlRecordError):
        BatchMark.from_json(data)


def test_record_survives_json() -> None:
    record = StateRecord(
        Instance(5, "owner", -1, 6),
        7,
        {"file": "ä", "line": 3},
        is_closed=True,
        previous=(Instance(4, "x", 2),),
        past=((1, 3), (9, 9)),
    )
    assert StateRecord.from_json(record.to_json()) == record


def test_record_knows_who_replaced_an_instance_and_how_much_was_stored_by_then() -> None:
    first = StateRecord(Instance(0, "a", 3), 10)
    second = replace(first.followed_by(Instance(1, "b")), count=12)
    third = second.followed_by(Instance(2, "c"))
    fourth = third.followed_by(Instance(2, "c", 7))
    assert [each.first for each in (fourth.instance, *fourth.previous)] == [12, 10, 0]
    heirs = [fourth.heir_of(Instance(*each)) for each in ((0, "a"), (1, "b"), (2, "c"), (0, "b"))]
    assert [None if heir is None else heir.first for heir in heirs] == [10, 12, None, None]


# Messages that are stored one by one.


def test_batches_in_flight_of_an_exclusive_producer_are_one_run() -> None:
    writer = Writer(
        "a",
        random.Random(0),  # noqa: S311 - No secret.
        mode="exclusive",
        max_batch_messages=2,
        max_in_flight=3,
    )
    for _ in range(19):
        writer.append(0.0)
    assert [batch.count for batch in writer.rules.queue.batches] == [6, 6, 6]
    assert writer.rules.queue.is_full
    assert writer.rules.queue.pending_count == 1


def half_stored(writer: Writer) -> Write:
    """Let an instance send a batch of four, of which nobody knows how many are stored."""
    writer.rules.state_read(Found(), 0.0)
    claim = writer.rules.next(0.0)
    assert isinstance(claim, Write)
    writer.rules.stored(claim, Stored(1, 0))
    for _ in range(4):
        writer.append(0.0)
    write = writer.rules.next(1.0)
    assert isinstance(write, Write)
    writer.rules.refused(RequestTimeoutError("no answer", retryable=True), 1.0, is_final=False)
    assert isinstance(writer.rules.next(10.0), Read)
    return write


def test_rest_of_a_batch_is_sent_again() -> None:
    writer = Writer("a", random.Random(0), mode="exclusive")  # noqa: S311 - No secret.
    write = half_stored(writer)
    record = replace(write.record, instance=replace(write.record.instance, seq=-1), count=3)
    writer.rules.state_read(
        Found(record, 1, last_seq=4, batch=write.batch, stored=3, stored_seq=4), 10.0
    )
    writer.take()
    assert [writer.outcomes[data].offset for data in writer.ended] == [2, 3, 4]
    rest = writer.rules.next(10.0)
    assert isinstance(rest, Write)
    assert rest.batch is not None
    assert [message.data for message in rest.batch.messages()] == [b"a-3"]
    assert (rest.record.count, rest.last_seq) == (4, 4)


def test_answer_about_an_earlier_batch_settles_no_later_one() -> None:
    writer = Writer("a", random.Random(0), mode="exclusive")  # noqa: S311 - No secret.
    write = half_stored(writer)
    writer.rules.refused(RequestTimeoutError("gave up"), 10.0, is_final=True)
    writer.rules.restart()
    writer.take()
    writer.append(11.0)
    assert isinstance(writer.rules.next(11.0), Read)
    writer.rules.state_read(Found(write.record, 1, last_seq=5, batch=write.batch, stored=4), 11.0)
    writer.take()
    assert b"a-4" not in writer.outcomes
    assert writer.rules.failure is None


def test_removed_place_of_a_message_is_an_open_question() -> None:
    writer = Writer("a", random.Random(0), mode="exclusive")  # noqa: S311 - No secret.
    write = half_stored(writer)
    writer.rules.state_read(Found(write.record, 1, batch=write.batch, stored=None), 10.0)
    assert isinstance(writer.rules.failure, ProducerTimeoutError)
