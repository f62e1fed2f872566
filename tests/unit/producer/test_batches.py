"""A producer's rules against a log that loses, delays and refuses, and against other instances."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from natsstream.errors import (
    NatsStreamError,
    ProducerConflictError,
    ProducerTimeoutError,
    RequestTimeoutError,
    SequenceGapError,
    StaleEpochError,
    StreamClosedError,
    WrongLastSequenceError,
)
from natsstream.producer.batches import Batches, Found, Outcome, Read, Write
from natsstream.producer.options import ProducerOptions
from natsstream.producer.queue import Group
from natsstream.producer.records import Instance, StateRecord
from natsstream.publish.outgoing import Prepared
from natsstream.streams.closing.end import EndOfStream

SEEDS = range(150)
STEPS = 400


@dataclass
class Log:
    """The stream: it takes a write only if the token is that of the newest state."""

    data: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    record: StateRecord | None = None
    token: int = 0
    end: EndOfStream | None = None
    final_offset: int = 0
    last_seq: int = 0

    def write(self, write: Write) -> tuple[int, int]:
        has_messages = write.batch is not None and bool(write.batch.count or write.batch.is_end)
        if write.token != self.token or (has_messages and self.end is not None):
            raise WrongLastSequenceError("wrong last sequence")
        for message in [] if write.batch is None else list(write.batch.messages()):
            self.last_seq += 1
            self.data.append((self.last_seq, message.data))
        last_seq = self.last_seq
        if write.end is not None:
            self.last_seq += 1
            last_seq = self.final_offset = self.data[-1][0] if self.data else 0
            self.end = write.end
        self.last_seq += 1
        self.record, self.token = write.record, self.last_seq
        return self.token, last_seq

    def read(self) -> Found:
        return Found(self.record, self.token, self.end, self.final_offset, self.last_seq)


class Writer:
    """One instance: what it appended, and how each group ended."""

    def __init__(self, name: str, rng: random.Random, **options: object) -> None:
        given = ProducerOptions(producer_id="p", linger=0.0, **options)  # pyright: ignore[reportArgumentType]
        self.name = name
        self.rules = Batches(given, name, rng)
        self.appended: list[bytes] = []
        self.outcomes: dict[bytes, Outcome] = {}
        self.ended: list[bytes] = []

    def append(self, now: float, count: int = 1) -> None:
        messages: list[Prepared] = []
        for _ in range(count):
            data = f"{self.name}-{len(self.appended)}".encode()
            self.appended.append(data)
            messages.append(Prepared("s", data, b"", (), expects_last_id=False))
        self.rules.queue.append(Group(tuple(messages), 10 * count), now)

    def take(self) -> None:
        for outcome in self.rules.take_outcomes():
            for message in outcome.group.messages:
                assert message.data not in self.outcomes, "a group ended twice"
                self.outcomes[message.data] = outcome
                self.ended.append(message.data)


class World:
    """Several instances of one producer, and what is on its way."""

    def __init__(self, seed: int, *, losses: float = 0.3) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - No secret.
        self.log = Log()
        self.now = 0.0
        self.losses = losses
        self.late: list[Write] = []

    def step(self, writer: Writer) -> bool:
        """Let an instance do one thing; return False if it has nothing to do."""
        self.now += 0.5
        action = writer.rules.next(self.now)
        if action is None:
            writer.take()
            return False
        is_lost = self.rng.random() < self.losses
        try:
            if isinstance(action, Read):
                if is_lost:
                    raise RequestTimeoutError("no answer", retryable=True)
                writer.rules.state_read(self.log.read(), self.now)
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
        token, last_seq = self.log.write(action)
        if is_lost:
            raise RequestTimeoutError("no answer", retryable=True)
        writer.rules.stored(action, token, last_seq)

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
@pytest.mark.parametrize("seed", SEEDS)
def test_one_instance_stores_all_once_and_in_order(seed: int) -> None:
    world = World(seed)
    writer = Writer("a", world.rng, delivery_timeout=1e6, max_batch_messages=4)
    for _ in range(STEPS):
        if world.rng.random() < 0.3:
            writer.append(world.now, world.rng.randint(1, 3))
        world.step(writer)
    world.settle(writer)
    world.check(writer)
    assert [data for _, data in world.log.data] == writer.appended


@pytest.mark.sampled
@pytest.mark.parametrize("seed", SEEDS)
def test_zombies_are_refused_and_told_the_truth(seed: int) -> None:
    world = World(seed)
    writers: list[Writer] = []
    for life in range(4):
        writers.append(Writer(f"w{life}", world.rng, delivery_timeout=1e6, max_batch_messages=3))
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
@pytest.mark.parametrize("seed", SEEDS)
def test_claimed_anew_nothing_is_lost_or_twice(seed: int) -> None:
    """Two instances with auto_claim take turns; the reference loses four of five batches here."""
    world = World(seed, losses=0.1)
    options = {"delivery_timeout": 1e6, "max_batch_messages": 2, "auto_claim": True}
    writers = [Writer(n, world.rng, max_claims=1_000_000, **options) for n in ("a", "b")]
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


def opened(log: Log, name: str, **options: object) -> tuple[World, Writer]:
    world = World(0, losses=0.0)
    world.log = log
    writer = Writer(name, world.rng, **options)
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
    for _ in range(13):
        writer.append(0.0)
    assert [batch.count for batch in writer.rules.queue.batches] == [6, 6]
    assert writer.rules.queue.pending_count == 1


def half_stored(writer: Writer) -> Write:
    """Let an instance send a batch of four, of which nobody knows how many are stored."""
    writer.rules.state_read(Found(), 0.0)
    claim = writer.rules.next(0.0)
    assert isinstance(claim, Write)
    writer.rules.stored(claim, 1, 0)
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
