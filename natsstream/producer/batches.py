"""Decides what a producer does next: read its state, claim an epoch, store a batch; pure rules.

Law: a batch counts as stored only if an ack or a state record says so, and as not stored only where
the epoch is over. Each group ends once, in `take_ended`. A write names the token of the state
before it, so of all copies of a batch the stream takes one at most, in any order of arrival:
reading decides only which write to try.

Every doubt has one way out: the state is read again (`Read`), and `state_read` decides.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from natsstream.api.control import Span, with_past
from natsstream.api.short_answers import ShortAnswers
from natsstream.arguments import counted
from natsstream.errors import (
    NatsStreamError,
    ProducerConflictError,
    ProducerTimeoutError,
    SequenceGapError,
    StaleEpochError,
    StreamClosedError,
    TransportError,
)
from natsstream.producer.options import ProducerOptions
from natsstream.producer.queue import Batch, Group, Queue
from natsstream.producer.records import Instance, StateRecord
from natsstream.streams.closing.end import EndOfStream

_CLAIMS_WITHIN_S = 60.0
_WAIT_MIN_S = 0.005
_WAIT_MAX_S = 1.0


class Outcome(NamedTuple):
    """How a group ended.

    Attributes:
        group: The group.
        offset: The sequence of its last message; None if it is not known.
        is_duplicate: True if an earlier attempt or instance had stored it.
        last_seq: The number of the last stored batch of the epoch.
        error: Why it is not stored, or may not be; None if it is.
    """

    group: Group
    offset: int | None = None
    is_duplicate: bool = False
    last_seq: int = -1
    error: NatsStreamError | None = None


class Ended(NamedTuple):
    """Groups that ended together.

    Attributes:
        groups: The groups.
        offset: The sequence of the last message of the last one; None if it is not known.
        is_duplicate: As of each outcome.
        last_seq: As of each outcome.
        error: As of each outcome.
    """

    groups: Sequence[Group]
    offset: int | None = None
    is_duplicate: bool = False
    last_seq: int = -1
    error: NatsStreamError | None = None

    def outcomes(self) -> Iterator[Outcome]:
        """Yield how each of them ended; not made before, as most have nobody who asks."""
        left = sum(len(group.messages) for group in self.groups)
        for group in self.groups:
            left -= len(group.messages)
            is_known = self.offset is not None and group.messages
            offset = (self.offset or 0) - left if is_known else None
            yield Outcome(group, offset, self.is_duplicate, self.last_seq, self.error)


@dataclass(frozen=True, slots=True)
class Found:
    """The producer's state, as the stream's leader has it.

    Attributes:
        record: The state record; None for none.
        token: The last sequence on the record's subject, which the next record expects; 0 for none.
        record_seq: The sequence of the record; None where it is the token.
        marks: Sequences of the marks that the next record replaces, the newest last.
        lost: Why the stream lacks what this instance has stored; None if it does not. Nothing else
            was read then.
        end: The end of the stream; None while it is open.
        final_offset: The sequence of the last message before the end; 0 for none.
        last_seq: The stream's last sequence, read before the state.
        batch: The batch that was sent last, if its messages are stored one by one.
        stored: How many of its messages are stored; None if that cannot be told.
        stored_seq: The sequence of the last of them; None if it is not known.
    """

    record: StateRecord | None = None
    token: int = 0
    end: EndOfStream | None = None
    final_offset: int = 0
    last_seq: int = 0
    batch: Batch | None = None
    stored: int | None = 0
    stored_seq: int | None = None
    record_seq: int | None = None
    marks: Sequence[int] = ()
    lost: NatsStreamError | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Read the state of the producer."""


@dataclass(frozen=True, slots=True)
class Write:
    """Store a batch with the state after it, or a claim.

    Attributes:
        record: The state.
        token: The sequence of the state record before it; 0 for none.
        last_seq: The last sequence that was read of the stream.
        batch: The batch; None for a claim.
        end: The end of the stream, after the batch.
        marks: As found.
    """

    record: StateRecord
    token: int
    last_seq: int
    batch: Batch | None = None
    end: EndOfStream | None = None
    marks: Sequence[int] = ()


class Stored(NamedTuple):
    """Where a write stands in the stream.

    Attributes:
        token: The sequence of the newest state record.
        last_seq: The sequence of the last message before the end and the state; where the write
            ended the stream without one, that of the stream's last message.
        mark: The sequence of the mark in front of the batch; 0 for none.
    """

    token: int
    last_seq: int
    mark: int = 0


Action = Read | Write
_Phase = Literal["unread", "unclaimed", "ready", "over"]


class Batches:
    """The decisions of one producer.

    Args:
        options: The options.
        owner: A random text that no other instance has.
        rng: Spreads the waits between attempts.
        stream: The stream's name, for errors.
        replicas: Those of the stream.

    Attributes:
        stream: The stream's name.
        queue: The groups that are not stored yet.
        epoch: The epoch; None before the first claim.
        failure: The error that stopped the producer.
        recovered: The state before the first epoch, or that of the last restart; None for none.
        last_offset: The sequence of the last message that was stored; None for none.
        final_offset: The sequence of the last message, once this producer has ended the stream.
    """

    def __init__(
        self,
        options: ProducerOptions,
        owner: str,
        rng: random.Random,
        stream: str,
        *,
        replicas: int | None,
    ) -> None:
        self.stream: str = stream
        self.queue: Queue = Queue(options)
        self.epoch: int | None = options.epoch
        self.failure: NatsStreamError | None = None
        self.recovered: StateRecord | None = None
        self.last_offset: int | None = None
        self.final_offset: int | None = None
        self._options = options
        self._owner = owner
        self._rng = rng
        self._replicas = replicas
        self._short = ShortAnswers()
        # Whether the last answer lacked the state that this instance knows.
        self._was_gone = False
        self._phase: _Phase = "unread"
        self._has_read = False
        self._has_to_claim = options.epoch is None
        # Whether this instance has written a record in its epoch.
        self._has_written = False
        # The owner of the epoch's record when this instance began.
        self._owner_before = owner
        self._is_claiming = False
        self._was_open = False
        self._epoch_min = 0
        self._record: StateRecord | None = None
        self._token = 0
        self._marks: Sequence[int] = ()
        self._last_seq = 0
        # The end of the stream, where it was found in the producer's own epoch.
        self._end: Found | None = None
        self._checkpoint: object = None
        self._claims: deque[float] = deque()
        # The stored epoch that the last claim was to follow.
        self._claimed_over: int | None = None
        self._is_flying = False
        self._attempts = 0
        self._not_before = 0.0
        # Until when a claim or the first read may take.
        self._deadline: float | None = None
        self._ended: list[Ended] = []

    # For the producer.

    @property
    def in_flight_count(self) -> int:
        """Batches that were sent and are not settled."""
        return int(self._is_flying and self._phase == "ready")

    @property
    def is_open(self) -> bool:
        """True once the state was read and the epoch is known."""
        # After a refused claim the state is read again, and the epoch is another's until then.
        is_claimed = not (self._has_to_claim or self._is_claiming)
        return self._has_read and is_claimed and self.failure is None

    def take_ended(self) -> list[Ended]:
        """Return the groups that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def restart(self) -> None:
        """Claim the next epoch, after a failure too.

        `max_claims` is for those that nobody has asked for, and begins anew.
        """
        if isinstance(self.failure, StreamClosedError) or self.final_offset is not None:
            return
        self.failure = None
        self._was_open = False
        self._epoch_min = 0 if self.epoch is None else self.epoch + 1
        self._has_to_claim = True
        self._claims.clear()
        self._begin_again()

    def end_again(self, final: Group | None, now: float) -> None:
        """Try once more to end the stream, after an attempt whose outcome is not known."""
        self.failure = None
        self.queue.next_seq -= 1
        self.queue.end(final, now)
        self._begin_again()

    # The next action.

    def next(self, now: float) -> Action | None:
        """Return what to do now; None to wait until `wake_at` or for another group."""
        if self._is_flying or self._phase == "over" or now < self._not_before:
            return None
        if self._phase == "unread":
            self._is_flying = True
            self._deadline = self._deadline or now + self._options.delivery_timeout
            return Read()
        if self._phase == "unclaimed":
            self._is_flying = True
            record = self._next_record(None)
            return Write(record, self._token, self._last_seq, marks=self._marks)
        batch = self.queue.first(now)
        while batch is not None and self._is_answered(batch):
            batch = self.queue.first(now)
        if batch is None:
            return None
        self._is_flying = True
        batch.deadline = batch.deadline or now + self._options.delivery_timeout
        end = None
        if batch.is_end and self.epoch is not None:
            end = EndOfStream(
                producer_id=self._options.producer_id, epoch=self.epoch, seq=batch.seq
            )
        record = self._next_record(batch)
        return Write(record, self._token, self._last_seq, batch, end, self._marks)

    def _is_answered(self, batch: Batch) -> bool:
        """Settle a batch of which the state says already how it ends; return True if it does."""
        record, end = self._record, self._end
        known_seq = _data_seq(record) if record is not None and record.epoch == self.epoch else -1
        if batch.seq <= known_seq and not batch.is_end:
            # An earlier instance of the same epoch has stored it.
            self._settle(self.queue.pop(), None, is_duplicate=True)
            return True
        if end is None or end.end is None:
            return False
        if batch.is_end and batch.seq == end.end.seq:
            self.final_offset = end.final_offset
            self._phase = "over"
            self._settle(self.queue.pop(), self.final_offset, is_duplicate=True)
        else:
            self.fail(_closed(self.stream, end))
        return True

    @property
    def wake_at(self) -> float | None:
        """When to ask `next` again, if nothing happens before."""
        if self._is_flying or self._phase == "over":
            return None
        if self._phase != "ready":
            return self._not_before
        due_at = self._not_before if self.queue.batches else self.queue.due_at
        return None if due_at is None else max(due_at, self._not_before)

    def _next_record(self, batch: Batch | None) -> StateRecord:
        epoch = self.epoch or 0
        before = self._record
        count = 0 if before is None else before.count
        checkpoint = self._checkpoint
        seq, is_end = -1, False
        if batch is not None:
            seq, count, is_end = batch.seq, count + batch.count, batch.is_end
            if batch.checkpoint is not None:
                checkpoint = batch.checkpoint
        follows = (before or StateRecord(Instance(epoch, self._owner))).followed_by(
            Instance(epoch, self._owner, seq)
        )
        past: tuple[Span, ...] = () if before is None else before.past
        replaced = self._marks if before is None else (*self._marks, self._token)
        for sequence in sorted(replaced):
            past = with_past(past, sequence)
        return replace(follows, count=count, checkpoint=checkpoint, is_closed=is_end, past=past)

    # Answers.

    def stored(self, write: Write, stored: Stored) -> None:
        """Take the ack of a write."""
        token, last_seq, mark = stored
        self._is_flying = False
        self._settled()
        self._take_record(write.record, token)
        self._marks = (mark,) if mark else ()
        self._last_seq = max(token, last_seq)
        self._has_written = True
        if write.batch is None:
            self._is_claiming = False
            self._go_on()
            return
        if write.end is not None:
            self.final_offset = last_seq
            self._phase = "over"
        self._settle(self.queue.pop(), last_seq, is_duplicate=False)

    def _take_part(self, count: int, last_seq: int | None) -> None:
        """Settle the next messages of the first batch, which an earlier attempt has stored."""
        if not count or self._record is None:
            return
        self._settled()
        self._settle(self.queue.take(count), last_seq, is_duplicate=True)

    def refused(self, error: NatsStreamError, now: float, *, is_final: bool) -> None:
        """Take a failed write or read.

        Args:
            error: The error.
            now: The time.
            is_final: True if no further attempt can succeed.
        """
        self._is_flying = False
        if is_final:
            self.fail(error)
            return
        self._phase = "unread"
        batch = self.queue.batches[0] if self.queue.batches else None
        deadline = self._deadline if batch is None else batch.deadline or self._deadline
        if deadline is not None and now >= deadline:
            self.fail(self._overdue(error))
            return
        wait_s = min(_WAIT_MIN_S * 2**self._attempts, _WAIT_MAX_S)
        self._attempts = min(self._attempts + 1, 16)
        self._not_before = now + wait_s * self._rng.uniform(0.5, 1.0)

    def state_read(self, found: Found, now: float) -> None:
        """Take the state: settle what is stored, and decide how to go on."""
        self._is_flying = False
        if self._is_doubted(found, now):
            lacks = f"stream {self.stream} has not told the producer's state at {self._token}"
            self.refused(found.lost or TransportError(lacks), now, is_final=False)
            return
        if found.lost is not None:
            self.fail(found.lost)
            return
        if not self._has_read:
            self._has_read = True
            self.recovered = found.record
            if found.record is not None:
                self._checkpoint = found.record.checkpoint
                if found.record.epoch == self.epoch:
                    self._owner_before = found.record.instance.owner
        self._last_seq, self._marks = found.last_seq, found.marks
        record = found.record
        # After a restart other batches wait than the one that was sent.
        if found.batch is not None and found.batch in self.queue.batches:
            if found.stored is None:
                self.fail(_untold(found.batch))
                return
            self._take_part(found.stored, found.stored_seq)
        # After a restart whose claim was lost, the record is of this instance's earlier epoch.
        mine = (self._owner, self.epoch)
        is_mine = record is not None and (record.instance.owner, record.epoch) == mine
        if self._has_to_claim or (self._is_claiming and not is_mine):
            self._claim(found, now)
        elif record is None or record.epoch < (self.epoch or 0):
            self._read_older(found)
        elif record.epoch == self.epoch and record.instance.owner in self._owners():
            self._read_own(found, record)
        else:
            self._read_newer(found, record, now)

    def fail(self, error: NatsStreamError) -> None:
        """Stop with an error; all groups end with it."""
        self.failure = error
        self._phase = "over"
        if groups := self.queue.clear():
            self._ended.append(Ended(groups, error=error))

    # The decisions.

    def _is_doubted(self, found: Found, now: float) -> bool:
        """Return True for an answer that a leader that was cut off may have given.

        Where the stream is as long as before, a state that is gone was removed from it. But two
        leaders may have told its end and the state: it has to be told twice.
        """
        is_gone = self._was_open and found.token < self._token
        is_short = found.lost is not None or (is_gone and found.last_seq < self._token)
        was_gone, self._was_gone = self._was_gone, is_gone
        if not self._short.is_believed(is_short=is_short, replicas=self._replicas, now=now):
            return True
        return is_gone and not was_gone and (self._replicas or 1) > 1

    def _owners(self) -> tuple[str, ...]:
        # An earlier life of the same epoch is gone on from; another one that writes beside is not.
        return (self._owner,) if self._has_written else (self._owner, self._owner_before)

    def _claim(self, found: Found, now: float) -> None:
        """Claim the epoch after the stored one, unless the stream has ended."""
        stored_epoch = -1 if found.record is None else found.record.epoch
        if found.end is not None:
            self.fail(_closed(self.stream, found))
        elif self._was_open and stored_epoch < (self._claimed_over or 0):
            self.fail(_set_back(self._claimed_over or 0))
        elif stored_epoch != self._claimed_over and not self._may_claim(now):
            self.fail(_spent(stored_epoch, self.epoch or 0, len(self._claims)))
        else:
            if stored_epoch != self._claimed_over:  # Else this is one more attempt.
                self._claims.append(now)
            self._claimed_over = stored_epoch
            if not self._was_open:  # An earlier instance may have stored more since the first read.
                self.recovered = found.record
            self._take_found(found)
            self.epoch = max(stored_epoch + 1, self._epoch_min)
            self._is_claiming, self._has_to_claim = True, False
            self.queue.renumber()
            self._phase = "unclaimed"

    def _read_older(self, found: Found) -> None:
        """Go on where the stream knows nothing of the epoch yet, or lost what it knew."""
        first = self.queue.batches[0].seq if self.queue.batches else 0
        if found.end is not None:
            self.fail(_closed(self.stream, found))
        elif self._has_written or first > 0:
            self.fail(_lost(0, first))  # Every epoch begins with batch 0.
        else:
            self._take_found(found)
            self._go_on()

    def _read_own(self, found: Found, record: StateRecord) -> None:
        self._take_record(record, found.token)
        self._has_written = self._has_written or record.instance.owner == self._owner
        self._is_claiming = False
        # The record stands behind the messages of its batch.
        stands_at = found.token if found.record_seq is None else found.record_seq
        self._settle_to(_data_seq(record), stands_at - 1)
        batches = self.queue.batches
        is_ours = found.end is not None and found.end.producer_id == self._options.producer_id
        if found.end is not None and not (is_ours and found.end.epoch == self.epoch):
            self.fail(_closed(self.stream, found))
        elif batches and batches[0].seq > record.seq + 1:
            self.fail(_lost(record.seq + 1, batches[0].seq))
        else:
            self._end = found if is_ours else None
            self._go_on()

    def _read_newer(self, found: Found, record: StateRecord, now: float) -> None:
        """Another instance has taken over: settle what it left of this one's, then claim or end."""
        epoch = self.epoch or 0
        mine = record.find(epoch, self._owner)
        if mine is not None:
            self._settle_to(mine.seq, None)
        if found.end is not None:
            self.fail(_closed(self.stream, found))
        elif self._options.auto_claim and (record.epoch != epoch or self._may_claim(now)):
            self._claim(found, now)
        elif record.epoch == epoch:
            self.fail(_conflict(record.epoch))
        else:
            self.fail(_stale(record.epoch, epoch))

    def _settle_to(self, seq: int, last_seq: int | None) -> None:
        """Settle the batches that are stored, up to a number.

        Args:
            seq: The number of the last one.
            last_seq: The sequence of its last message; None if it is not known.
        """
        batches = self.queue.batches
        while batches and batches[0].seq <= seq and not batches[0].is_end:
            last = last_seq if batches[0].seq == seq else None
            self._settle(self.queue.pop(), last, is_duplicate=True)
            self._settled()

    def _settle(self, batch: Batch, last: int | None, *, is_duplicate: bool) -> None:
        """End the groups of a stored batch, whose last message has this sequence."""
        last_batch = -1 if self._record is None else self._record.seq
        self._ended.append(Ended(batch.groups, last, is_duplicate, last_batch))
        if last is not None and batch.count:
            self.last_offset = last

    def _go_on(self) -> None:
        self._phase, self._was_open = "ready", True
        self._deadline = None

    def _begin_again(self) -> None:
        self._phase, self._attempts, self._not_before, self._deadline = "unread", 0, 0.0, None

    def _settled(self) -> None:
        """Note progress: the next attempt waits for nothing."""
        self._attempts, self._not_before, self._deadline = 0, 0.0, None

    def _take_record(self, record: StateRecord, token: int) -> None:
        self._record, self._token = record, token
        self._checkpoint = record.checkpoint

    def _take_found(self, found: Found) -> None:
        self._record, self._token = found.record, found.token
        # Where the record is gone, so is the checkpoint.
        self._checkpoint = None if found.record is None else found.record.checkpoint

    def _may_claim(self, now: float) -> bool:
        while self._claims and self._claims[0] <= now - _CLAIMS_WITHIN_S:
            self._claims.popleft()
        return len(self._claims) < self._options.max_claims

    def _overdue(self, cause: NatsStreamError) -> ProducerTimeoutError:
        error = ProducerTimeoutError(
            f"producer {self._options.producer_id!r}: a batch was not acknowledged within "
            f"{self._options.delivery_timeout:g} s; it may be stored or not",
            detail=cause.message,
            hint="await producer.restart() when the stream has a leader, or open it again: "
            "producer.recovered tells what is stored",
        )
        error.__cause__ = cause
        return error


def _data_seq(record: StateRecord) -> int:
    """Return the number of the last stored batch that did not end the stream."""
    return record.seq - record.is_closed


def _closed(stream: str, found: Found) -> StreamClosedError:
    by = "" if found.end is None else f", by producer {found.end.producer_id!r}"
    error = StreamClosedError(
        f"stream {stream} was ended after sequence {found.final_offset}{by}",
        hint="nothing can be appended any more: write to another stream",
    )
    error.final_offset = found.final_offset
    return error


def _untold(batch: Batch) -> ProducerTimeoutError:
    return ProducerTimeoutError(
        f"whether the messages of batch {batch.seq} are stored cannot be told",
        detail="the sequence where the first of them would stand was removed from the stream",
        hint="raise the stream's limits; await producer.restart() begins a new epoch",
    )


def _stale(current: int, epoch: int) -> StaleEpochError:
    return StaleEpochError(
        f"epoch {epoch} is over: another instance of the producer has claimed epoch {current}",
        current_epoch=current,
        hint="stop this instance, and the other one continues from the last checkpoint; without "
        "checkpoints, await producer.restart() or auto_claim=True claims the next epoch",
    )


def _spent(current: int, epoch: int, claims: int) -> StaleEpochError:
    # Of two instances that claim one epoch at the same time, one is refused.
    over = "" if current == epoch else f"epoch {epoch} is over: "
    return StaleEpochError(
        f"{over}another instance of the producer has claimed epoch {current}, and "
        f"this one has made {counted(claims, 'claim')} within a minute, which is max_claims",
        current_epoch=current,
        hint="stop the other instance, or give a larger max_claims; in any case "
        "await producer.restart() claims the next epoch",
    )


def _conflict(epoch: int) -> ProducerConflictError:
    return ProducerConflictError(
        f"another instance of the producer writes in the same epoch {epoch}",
        current_epoch=epoch,
        hint="leave epoch out, so that each instance claims an epoch of its own",
    )


def _lost(expected: int, received: int) -> SequenceGapError:
    what = f"expects batch {expected}, this is batch {received}"
    return _gap(f"the stream's state of the producer {what}", expected, received)


def _set_back(epoch: int) -> SequenceGapError:
    return _gap(f"the stream's state of the producer, of epoch {epoch}, is gone", 0, 0)


def _gap(message: str, expected: int, received: int) -> SequenceGapError:
    return SequenceGapError(
        message,
        expected_seq=expected,
        received_seq=received,
        detail="the state record was evicted, purged or restored, or the stream was made anew",
        hint="await producer.restart() or open it again, and begin behind "
        "producer.recovered.checkpoint; if recovered is None, look what the stream holds",
    )
