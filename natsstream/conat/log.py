"""The messages of a core stream in memory, ascending by sequence, in compact columns.

Law: sequences are unique and ascend. A position counts the messages that are held, from 0.

The columns are cut into blocks: adding or removing a message anywhere moves one block, not all
messages. A block holds sequences and times as machine integers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from natsstream.conat.record import Record

# Messages of a full block; larger ones are cut in two. Moving 1,000 entries costs a microsecond.
_BLOCK = 1_000

_NOT_DECODED = object()


class _Block:
    """A run of messages in columns.

    Attributes:
        values: The values decoded so far, by position; None until the first one.
    """

    __slots__ = ("data", "headers", "key_subjects", "seqs", "times_ns", "values")

    def __init__(self) -> None:
        self.seqs: array[int] = array("q")
        self.times_ns: array[int] = array("q")
        self.key_subjects: list[str] = []
        self.headers: list[bytes] = []
        self.data: list[bytes] = []
        self.values: list[object] | None = None

    def append(self, record: Record) -> None:
        seq, time_ns, key_subject, headers, data = record
        self.seqs.append(seq)
        self.times_ns.append(time_ns)
        self.key_subjects.append(key_subject)
        self.headers.append(headers)
        self.data.append(data)
        if self.values is not None:
            self.values.append(_NOT_DECODED)

    def insert(self, at: int, record: Record) -> None:
        self.seqs.insert(at, record.seq)
        self.times_ns.insert(at, record.time_ns)
        self.key_subjects.insert(at, record.key_subject)
        self.headers.insert(at, record.headers)
        self.data.insert(at, record.data)
        if self.values is not None:
            self.values.insert(at, _NOT_DECODED)

    def record(self, at: int) -> Record:
        return Record(
            self.seqs[at],
            self.times_ns[at],
            self.key_subjects[at],
            self.headers[at],
            self.data[at],
        )

    def remove(self, start: int, stop: int) -> None:
        for column in (self.seqs, self.times_ns, self.key_subjects, self.headers, self.data):
            del column[start:stop]
        if self.values is not None:
            del self.values[start:stop]

    def split(self) -> _Block:
        """Move the later half into a new block."""
        half, later = len(self.seqs) // 2, _Block()
        later.seqs, later.times_ns = self.seqs[half:], self.times_ns[half:]
        later.key_subjects, later.headers = self.key_subjects[half:], self.headers[half:]
        later.data = self.data[half:]
        later.values = None if self.values is None else self.values[half:]
        self.remove(half, len(self.seqs))
        return later


class MessageLog:
    """Messages by sequence and by position.

    Cost: finding a message is two bisections; a position also needs the blocks' lengths, which are
    added up again after a change before the end.

    Args:
        block: Messages of a full block.

    Attributes:
        observer: Called with each message that is added (1) or removed (-1).
    """

    def __init__(self, block: int = _BLOCK) -> None:
        self.observer: Callable[[Record, int], None] | None = None
        self._block = block
        self._blocks: list[_Block] = []
        # A lower bound of each block's sequences.
        self._firsts: list[int] = []
        self._length = 0
        # The position of each block's first message; None after a change.
        self._starts: list[int] | None = None

    def __len__(self) -> int:
        return self._length

    @property
    def first_seq(self) -> int | None:
        """The first sequence that is held; None for none."""
        return self._blocks[0].seqs[0] if self._blocks else None

    @property
    def last_seq(self) -> int | None:
        """The last sequence that is held; None for none."""
        return self._blocks[-1].seqs[-1] if self._blocks else None

    @property
    def last_record(self) -> Record | None:
        """The last message that is held; None for none."""
        return self._blocks[-1].record(-1) if self._blocks else None

    # Reading.

    def find(self, seq: int) -> Record | None:
        """Return the message of a sequence; None if it is not held."""
        found = self._find(seq)
        return None if found is None else found[0].record(found[1])

    def record(self, position: int) -> Record:
        """Return the message at a position, which must be held."""
        block, at = self._locate(position)
        return block.record(at)

    def seq(self, position: int) -> int:
        """Return the sequence at a position, which must be held."""
        block, at = self._locate(position)
        return block.seqs[at]

    def position(self, seq: int) -> int:
        """Return how many messages have a lower sequence."""
        if not self._blocks:
            return 0
        number = max(bisect_right(self._firsts, seq) - 1, 0)
        return self._positions()[number] + bisect_left(self._blocks[number].seqs, seq)

    def records(self, first_seq: int = 0, last_seq: int | None = None) -> Iterator[Record]:
        """Yield the messages of a range, both ends included; the log must not change meanwhile."""
        for block in self._blocks[max(bisect_right(self._firsts, first_seq) - 1, 0) :]:
            start = bisect_left(block.seqs, first_seq)
            stop = len(block.seqs) if last_seq is None else bisect_right(block.seqs, last_seq)
            for at in range(start, stop):
                yield block.record(at)
            if stop < len(block.seqs):
                return

    def sequences(self) -> list[int]:
        """Return all sequences, ascending."""
        return [seq for block in self._blocks for seq in block.seqs]

    def times_ns(self) -> list[int]:
        """Return when each message was stored, in Unix nanoseconds."""
        return [time_ns for block in self._blocks for time_ns in block.times_ns]

    def data_bytes(self, first_seq: int = 0) -> tuple[int, int]:
        """Return how many messages there are from a sequence on, and the bytes of their data."""
        count = size = 0
        for block in self._blocks:
            start = bisect_left(block.seqs, first_seq)
            count += len(block.seqs) - start
            size += sum(map(len, block.data[start:] if start else block.data))
        return count, size

    def value(self, position: int, decode: Callable[[Record], object]) -> object:
        """Return the decoded value at a position; each message is decoded once."""
        block, at = self._locate(position)
        if block.values is None:
            block.values = [_NOT_DECODED] * len(block.seqs)
        value = block.values[at]
        if value is _NOT_DECODED:
            value = block.values[at] = decode(block.record(at))
        return value

    # Changing.

    def append_columns(
        self,
        seqs: Sequence[int],
        times_ns: Sequence[int],
        key_subjects: Sequence[str],
        headers: Sequence[bytes],
        data: Sequence[bytes],
    ) -> None:
        """Add messages behind the last one; the columns have one length and ascend."""
        done, count = 0, len(seqs)
        if self.observer is not None:
            for record in map(Record, seqs, times_ns, key_subjects, headers, data):
                self.observer(record, 1)
        while done < count:
            block = self._last_block(seqs[done])
            stop = done + min(count - done, self._block - len(block.seqs))
            block.seqs.extend(seqs[done:stop])
            block.times_ns.extend(times_ns[done:stop])
            block.key_subjects.extend(key_subjects[done:stop])
            block.headers.extend(headers[done:stop])
            block.data.extend(data[done:stop])
            if block.values is not None:
                block.values.extend([_NOT_DECODED] * (stop - done))
            self._length += stop - done
            done = stop

    def insert(self, record: Record) -> bool:
        """Add a message at its place; False if its sequence is held already."""
        last = self.last_seq
        if last is None or record.seq > last:
            self._last_block(record.seq).append(record)
            self._length += 1
            if self.observer is not None:
                self.observer(record, 1)
            return True
        number = max(bisect_right(self._firsts, record.seq) - 1, 0)
        block = self._blocks[number]
        at = bisect_left(block.seqs, record.seq)
        if at < len(block.seqs) and block.seqs[at] == record.seq:
            return False
        block.insert(at, record)
        self._firsts[number] = min(self._firsts[number], record.seq)
        if len(block.seqs) > 2 * self._block:
            later = block.split()
            self._blocks.insert(number + 1, later)
            self._firsts.insert(number + 1, later.seqs[0])
        self._length += 1
        self._starts = None
        if self.observer is not None:
            self.observer(record, 1)
        return True

    def remove(self, seq: int) -> Record | None:
        """Remove a message and return it; None if it is not held."""
        found = self._find(seq)
        if found is None:
            return None
        block, at = found
        record = block.record(at)
        self._remove(self._block_of(seq), at, at + 1)
        if self.observer is not None:
            self.observer(record, -1)
        return record

    # Internals.

    def _last_block(self, seq: int) -> _Block:
        """Return the last block, or a new one for a sequence if that is full."""
        if not self._blocks or len(self._blocks[-1].seqs) >= self._block:
            self._blocks.append(_Block())
            self._firsts.append(seq)
            if self._starts is not None:
                self._starts.append(self._length)
        return self._blocks[-1]

    def _block_of(self, seq: int) -> int:
        return bisect_right(self._firsts, seq) - 1

    def _find(self, seq: int) -> tuple[_Block, int] | None:
        number = self._block_of(seq)
        if number < 0:
            return None
        block = self._blocks[number]
        at = bisect_left(block.seqs, seq)
        return (block, at) if at < len(block.seqs) and block.seqs[at] == seq else None

    def _locate(self, position: int) -> tuple[_Block, int]:
        if position == 0:  # Each removal of the oldest message would add up all blocks.
            return self._blocks[0], 0
        starts = self._positions()
        number = bisect_right(starts, position) - 1
        return self._blocks[number], position - starts[number]

    def _positions(self) -> list[int]:
        if self._starts is None:
            lengths = (len(block.seqs) for block in self._blocks)
            self._starts = [0, *accumulate(lengths)][:-1]
        return self._starts

    def _remove(self, number: int, start: int, stop: int) -> None:
        block = self._blocks[number]
        block.remove(start, stop)
        self._length -= stop - start
        if not block.seqs:
            del self._blocks[number], self._firsts[number]
        self._starts = None
