"""The messages of a producer that are not stored yet: groups, batches, and when a batch is cut.

Law: a group leaves once, stored or failed. Batches are numbered in the order of `append`, and a
group is never divided.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from natsstream.producer.options import ProducerOptions
from natsstream.publish.outgoing import Prepared

# One that is in flight, one that is sent when that is stored, and one that is filled meanwhile.
_RUNS_WAITING_MAX = 3


@dataclass(slots=True, eq=False)
class Group:
    """Messages that were appended together.

    Attributes:
        messages: The messages; none for a checkpoint alone.
        size: Their bytes.
        checkpoint: The application's position that is stored with them; None keeps the last one.
    """

    messages: tuple[Prepared, ...]
    size: int
    checkpoint: object = None


@dataclass(slots=True, eq=False)
class Batch:
    """Groups that are stored together.

    Attributes:
        begun_at: When its first group was appended, in seconds of any one clock.
        groups: The groups.
        count: Their messages.
        size: Their bytes.
        seq: Its number in the epoch.
        is_end: True if it ends the stream.
        deadline: When it is given up; None before the first attempt.
    """

    begun_at: float
    groups: list[Group] = field(default_factory=list[Group])
    count: int = 0
    size: int = 0
    seq: int = 0
    is_end: bool = False
    deadline: float | None = None

    def add(self, group: Group) -> None:
        """Add a group."""
        self.groups.append(group)
        self.count += len(group.messages)
        self.size += group.size

    @property
    def checkpoint(self) -> object:
        """The last checkpoint of its groups; None for none."""
        return next((g.checkpoint for g in reversed(self.groups) if g.checkpoint is not None), None)

    def messages(self) -> Iterator[Prepared]:
        """Yield its messages."""
        for group in self.groups:
            yield from group.messages


class Queue:
    """The groups that wait, as numbered batches and one that is being filled.

    Attributes:
        batches: The cut batches, the oldest first.
        next_seq: The number of the next batch.
        size: Bytes of all groups.
    """

    def __init__(self, options: ProducerOptions) -> None:
        self.batches: deque[Batch] = deque()
        self.next_seq: int = 0
        self.size: int = 0
        self._open: Batch | None = None
        self._is_pushed = False
        # An exclusive producer's batches in flight are one run, so they are one batch here.
        is_exclusive = options.mode == "exclusive"
        parts = options.max_in_flight if is_exclusive else 1
        self._waiting_max = _RUNS_WAITING_MAX if is_exclusive else options.max_in_flight
        self._bytes_max = options.max_batch_bytes * parts
        self._messages_max = options.max_batch_messages * parts
        self._linger_s = options.linger

    @property
    def pending_count(self) -> int:
        """Messages in the batch that is being filled."""
        return 0 if self._open is None else self._open.count

    @property
    def count(self) -> int:
        """Messages of all groups."""
        return sum(batch.count for batch in self.batches) + self.pending_count

    @property
    def is_full(self) -> bool:
        """True when so many cut batches wait that more would not be sent sooner."""
        return len(self.batches) >= self._waiting_max

    @property
    def is_empty(self) -> bool:
        """True when no group waits."""
        return self._open is None and not self.batches

    def append(self, group: Group, clock: Callable[[], float]) -> None:
        """Take a group; a checkpoint alone is a batch of its own."""
        count = len(group.messages)
        if not count:
            if self._open is not None:
                self._cut(self._open)
            self._open = Batch(clock(), [group])
            self._cut(self._open)
            return
        batch = self._open
        if batch is not None and batch.count + count > self._messages_max:
            self._cut(batch)
            batch = None
        if batch is None:
            batch = self._open = Batch(clock())
        # Not by `add`: a call less is 5 % of what a message costs.
        batch.groups.append(group)
        batch.count += count
        batch.size += group.size
        self.size += group.size
        if batch.size >= self._bytes_max or batch.count >= self._messages_max:
            self._cut(batch)

    def push(self) -> None:
        """Have the batch that is being filled cut as soon as it can be sent."""
        self._is_pushed = self._open is not None

    def end(self, final: Group | None, now: float) -> Batch:
        """Add the batch that ends the stream, and return it."""
        if self._open is not None:
            self._cut(self._open)
        batch = Batch(now, is_end=True)
        if final is not None:
            batch.add(final)
            self.size += final.size
        self._cut(batch)
        return batch

    def first(self, now: float) -> Batch | None:
        """Return the batch to send next, cut now if it is time; None for none."""
        if self.batches:
            return self.batches[0]
        if self._open is None or (
            not self._is_pushed and now < self._open.begun_at + self._linger_s
        ):
            return None
        self._cut(self._open)
        return self.batches[0]

    @property
    def due_at(self) -> float | None:
        """When the batch that is being filled has waited long enough; None without one."""
        return None if self._open is None else self._open.begun_at + self._linger_s

    def pop(self) -> Batch:
        """Remove the oldest batch."""
        batch = self.batches.popleft()
        self.size -= batch.size
        return batch

    def take(self, count: int) -> Batch:
        """Remove the first messages of the oldest batch, and return them; each is a group."""
        batch = self.batches[0]
        part = Batch(batch.begun_at, seq=batch.seq)
        for group in batch.groups[:count]:
            part.add(group)
        del batch.groups[:count]
        batch.count -= part.count
        batch.size -= part.size
        self.size -= part.size
        return part

    def renumber(self) -> None:
        """Number the batches from 0, as the first of a new epoch."""
        for seq, batch in enumerate(self.batches):
            batch.seq = seq
        self.next_seq = len(self.batches)

    def clear(self) -> list[Group]:
        """Remove all groups, and return them."""
        if self._open is not None:
            self._cut(self._open)
        groups = [group for batch in self.batches for group in batch.groups]
        self.batches.clear()
        self.size = 0
        return groups

    def _cut(self, batch: Batch) -> None:
        batch.seq = self.next_seq
        self.next_seq += 1
        self.batches.append(batch)
        self._open, self._is_pushed = None, False
