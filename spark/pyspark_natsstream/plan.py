"""Plans a read: options, an offset and the stream's state become ranges of sequences.

Law: a range is fixed before its messages are read, so a second read returns the same rows. Gaps
inside a range are legal (deletes, TTL, `max_msgs_per_subject`). Loss is one of three: the stream
was created anew (`created` differs), it begins after the offset, or it ends before the offset. Each
is an error, or a warning when `failOnDataLoss` is false.

`first_seq` and `last_seq` are inclusive. `next_seq` is the next sequence to read,
`stop_seq` the one after the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pyspark.sql.datasource import InputPartition

from natsstream.errors import (
    ConfigError,
    MessagesLostError,
    SequenceRangeError,
    StreamRecreatedError,
)
from natsstream.units import format_rfc3339
from pyspark_natsstream.offsets import Offset

if TYPE_CHECKING:
    from pyspark_natsstream.read_options import Position, ReadOptions


class Lookups(Protocol):
    """Answers about the stream that its state does not have."""

    def sequence_at(self, time_ns: int) -> int | None:
        """Return the sequence of the first message at or after Unix nanoseconds, or None."""
        ...

    def first_of_newest(self, count: int, last_seq: int) -> int:
        """Return the first sequence of the newest messages of the read up to a sequence."""
        ...


PARTITIONS_MAX = 10_000
"""Ranges of one read at most: Spark keeps a task for each on the driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """The state of a stream at one moment.

    Attributes:
        stream: Name of the stream.
        created_ns: When it was created, in Unix nanoseconds.
        messages: Number of messages.
        stored_bytes: Their stored size.
        first_seq: The server's first sequence; 0 in a stream that never had a message.
        last_seq: The server's last sequence; 0 in a stream that never had a message.
    """

    stream: str
    created_ns: int
    messages: int
    stored_bytes: int
    first_seq: int
    last_seq: int

    @property
    def earliest_seq(self) -> int:
        """The first sequence to read: 1 in a stream that never had a message."""
        return max(self.first_seq, 1)

    @property
    def stop_seq(self) -> int:
        """The sequence that the next message will get."""
        return self.last_seq + 1

    def offset(self, next_seq: int) -> Offset:
        """Return an offset in this stream."""
        return Offset(stream=self.stream, next_seq=next_seq, created_ns=self.created_ns)


@dataclass(frozen=True)
class Partition(InputPartition):
    """A range of sequences for one Spark task.

    Attributes:
        stream: Name of the stream.
        first_seq: First sequence.
        last_seq: Last sequence, inclusive; below the first one if nothing is left of the range.
        created_ns: When the stream was created, in Unix nanoseconds; identifies it.
        subjects: Subject filters narrower than those of the options; empty for the options'.
    """

    stream: str
    first_seq: int
    last_seq: int
    created_ns: int
    subjects: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The range in words, for messages."""
        return f"sequences {self.first_seq} to {self.last_seq} of stream {self.stream}"


class Resumed(NamedTuple):
    """The position at which a read continues.

    Attributes:
        next_seq: Sequence to read next.
        warning: The loss in words; empty without one.
    """

    next_seq: int
    warning: str = ""


class Limit(NamedTuple):
    """The size of one micro-batch; None is no limit.

    Attributes:
        sequences_max: Sequences at most.
        bytes_max: Bytes at most, by the mean size of the stored messages.
        sequences_min: Sequences at least; with fewer the micro-batch waits.
    """

    sequences_max: int | None = None
    bytes_max: int | None = None
    sequences_min: int = 1


def check_retention(stream: str, retention: str) -> None:
    """Refuse streams that a reader without acks cannot read, or would change.

    Args:
        stream: Name of the stream.
        retention: `limits`, `interest` or `workqueue`.

    Raises:
        ConfigError: The retention is not `limits`.
    """
    if retention == "limits":
        return
    why = {
        "workqueue": "its server delivers only to consumers that acknowledge [10098]",
        "interest": "one more consumer changes which messages it keeps",
    }.get(retention, "this source reads only limits")
    raise ConfigError(
        f"stream {stream} has retention {retention}: {why}",
        hint=f"create a stream with mirror={stream} and limits retention, and read the mirror",
    )


def start_of(
    options: ReadOptions, state: StreamState, lookups: Lookups, *, stop_seq: int | None = None
) -> Offset:
    """Return the offset of `startingOffsets` in the stream.

    Args:
        options: The options of the read.
        state: The stream now.
        lookups: Asked when the option is a time, or `newest`.
        stop_seq: The sequence after the last to read; None is the stream's end.

    Raises:
        SequenceRangeError: It is beyond the next message, and `failOnDataLoss` is true.
    """
    stop_seq = state.stop_seq if stop_seq is None else stop_seq
    next_seq = _place(options.starting_offsets, state, lookups, stop_seq)
    if next_seq > state.stop_seq and options.fail_on_data_loss:
        raise _beyond("startingOffsets", options.starting_offsets, state)
    return state.offset(next_seq)


def stop_of(options: ReadOptions, state: StreamState, lookups: Lookups) -> Offset:
    """Return the offset after `endingOffsets`: the sequence after the last to read.

    Args:
        options: The options of the read.
        state: The stream now.
        lookups: Asked when the option is a time.

    Raises:
        SequenceRangeError: It is beyond the last message, and `failOnDataLoss` is true.
    """
    position = options.ending_offsets
    stop_seq = _place(position, state, lookups, state.stop_seq)
    if stop_seq > state.stop_seq and options.fail_on_data_loss:
        raise _beyond("endingOffsets", position, state)
    return state.offset(min(stop_seq, state.stop_seq))


def resume(start: Offset, state: StreamState, *, fail_on_data_loss: bool) -> Resumed:
    """Return the position at which a read continues after an offset, by the rules of loss.

    A stream that was created anew is read from its first message. One that lost its head is read
    from the first message left. One that lost its tail is read from its end.

    Raises:
        StreamRecreatedError: The offset is from an earlier stream of this name.
        MessagesLostError: Messages after or before the offset are gone.
    """
    if start.created_ns != state.created_ns:
        resumed = _recreated(start, state)
        created = format_rfc3339(state.created_ns)
        error: Exception = StreamRecreatedError(
            resumed.warning,
            hint=f"if it was restored from a backup, set restoredAt={created} to continue at "
            f"sequence {start.next_seq}, with commas between several; if not, {_hint(resumed)}",
        )
    elif start.next_seq > state.stop_seq:
        resumed = _tail_lost(start, state)
        error = _lost(resumed, state.stop_seq, start.next_seq - 1)
    elif start.next_seq < state.earliest_seq:
        resumed = _head_lost(start, state)
        error = _lost(resumed, start.next_seq, state.earliest_seq - 1)
    else:
        return Resumed(start.next_seq)
    if fail_on_data_loss:
        raise error
    return resumed


def admit(next_seq: int, stop_seq: int, limit: Limit, state: StreamState) -> int:
    """Return the end of a micro-batch: the sequence after its last.

    Args:
        next_seq: First sequence of the micro-batch.
        stop_seq: The sequence after the last that may be read.
        limit: The size of the micro-batch.
        state: The stream now; its mean message size turns bytes into sequences.

    Returns:
        More than `next_seq`, or `next_seq` itself when there are too few messages yet.
    """
    available = stop_seq - next_seq
    if available < limit.sequences_min:
        return next_seq
    take = available
    if limit.sequences_max is not None:
        take = min(take, limit.sequences_max)
    if limit.bytes_max is not None and state.stored_bytes > 0:
        take = min(take, max(1, limit.bytes_max * state.messages // state.stored_bytes))
    return next_seq + take


def advance(
    start: Offset,
    state: StreamState,
    limit: Limit,
    *,
    target: Offset | None,
    fail_on_data_loss: bool,
) -> tuple[Offset, str]:
    """Return the end of the next micro-batch, and a warning (empty without a loss).

    Args:
        start: The query's offset.
        state: The stream now.
        limit: The size of the micro-batch.
        target: End of an AvailableNow query, else None.
        fail_on_data_loss: Raise on a loss.

    Returns:
        `start` itself when there is nothing to read.

    Raises:
        IntegrityError: As `resume` does.
    """
    resumed = resume(start, state, fail_on_data_loss=fail_on_data_loss)
    stop_seq = state.stop_seq
    if target is not None and target.created_ns == state.created_ns:
        stop_seq = min(stop_seq, target.next_seq)
    end_seq = admit(resumed.next_seq, stop_seq, limit, state)
    if not resumed.warning:
        return replace(start, next_seq=end_seq), ""
    return state.offset(end_seq), resumed.warning


def ranges_between(
    start: Offset,
    end: Offset,
    state: StreamState,
    options: ReadOptions,
    *,
    planned_seq: int | None = None,
) -> tuple[list[Partition], str]:
    """Return the ranges between two offsets, and a warning (empty without a loss).

    Args:
        start: Where the read begins.
        end: Where it ends.
        state: The stream's state.
        options: The options of the read.
        planned_seq: Where the read began when it was planned first; None for `start`. A range whose
            messages are all gone stays, empty, so that each range keeps its number.

    Raises:
        IntegrityError: The stream was created anew, or has lost messages of the range.
        ConfigError: More than `PARTITIONS_MAX` ranges.
    """
    fail = options.fail_on_data_loss
    if start.created_ns == end.created_ns and start.next_seq >= end.next_seq:
        return [], ""
    warning = ""
    if end.created_ns != state.created_ns or end.next_seq > state.stop_seq:
        warning = resume(end, state, fail_on_data_loss=fail).warning
    if end.created_ns != state.created_ns:
        return [], warning  # Nothing of the range is left.
    resumed = resume(start, state, fail_on_data_loss=fail)
    first, last = resumed.next_seq, min(end.next_seq, state.stop_seq) - 1
    if first > last:
        return [], resumed.warning or warning
    if planned_seq is None or start.created_ns != end.created_ns:
        planned_seq = first
    ranges = split(
        planned_seq,
        end.next_seq - 1,
        partitions_min=options.min_partitions,
        sequences_max=options.max_records_per_partition,
    )
    found = [
        Partition(
            stream=state.stream,
            first_seq=max(begin, first),
            last_seq=min(stop, last),
            created_ns=state.created_ns,
        )
        for begin, stop in ranges
    ]
    return found, resumed.warning or warning


def split(
    first: int, last: int, *, partitions_min: int = 1, sequences_max: int | None = None
) -> list[tuple[int, int]]:
    """Split a range into pieces whose sizes differ by at most 1, the larger ones first.

    Args:
        first: First sequence.
        last: Last sequence; less than `first` is an empty range.
        partitions_min: Pieces at least, if there are enough sequences.
        sequences_max: Sequences in a piece at most.

    Raises:
        ConfigError: More than `PARTITIONS_MAX` pieces.
    """
    total = last - first + 1
    if total <= 0:
        return []
    count = partitions_min if sequences_max is None else -(-total // sequences_max)
    count = min(total, max(count, partitions_min))
    if count > PARTITIONS_MAX:
        message = f"sequences {first} to {last} would become {count} partitions"
        hint = f"at most {PARTITIONS_MAX}: lower minPartitions or raise maxRecordsPerPartition"
        raise ConfigError(message, hint=hint)
    size, longer = divmod(total, count)
    starts = [first + index * size + min(index, longer) for index in range(count + 1)]
    return [(start, stop - 1) for start, stop in pairwise(starts)]


def _place(position: Position, state: StreamState, lookups: Lookups, stop_seq: int) -> int:
    match position.anchor:
        case "earliest":
            return state.earliest_seq
        case "latest":
            return state.stop_seq
        case "first_seq":
            return position.value
        case "last_seq":
            return position.value + 1
        case "newest":
            return lookups.first_of_newest(position.value, stop_seq - 1)
        case "start_time" | "end_time":
            return lookups.sequence_at(position.value) or state.stop_seq


def _beyond(option: str, position: Position, state: StreamState) -> SequenceRangeError:
    held = f"holds {state.earliest_seq} to {state.last_seq}"
    if state.earliest_seq > state.last_seq:
        held = f"is empty and ends at {state.last_seq}"
    return SequenceRangeError(
        f"{option} is {position}, but stream {state.stream} {held}",
        first_seq=state.first_seq,
        last_seq=state.last_seq,
        hint=_within(option, state),
    )


def _within(option: str, state: StreamState) -> str:
    """Return what to give in place of a position that the stream does not hold."""
    if state.earliest_seq > state.last_seq:
        return f"leave {option} out until the stream has messages"
    if option == "endingOffsets":
        return f"leave it out for all, or give last_seq:{state.last_seq} or less"
    return f"give first_seq:{state.earliest_seq} to first_seq:{state.last_seq + 1}, or newest:N"


def _recreated(start: Offset, state: StreamState) -> Resumed:
    return Resumed(
        state.earliest_seq,
        f"stream {state.stream} was created anew at {format_rfc3339(state.created_ns)}; "
        f"messages up to sequence {start.next_seq - 1} were read from the stream created at "
        f"{format_rfc3339(start.created_ns)}",
    )


def replaced(start: Offset, state: StreamState, new_seq: int) -> MessagesLostError:
    """Return the error of a stream that was restored from a backup older than an offset.

    Args:
        start: The offset.
        state: The stream.
        new_seq: The first sequence that was stored since the restore.
    """
    resumed = Resumed(
        new_seq,
        f"stream {state.stream} was restored from an older backup: sequences {new_seq} to "
        f"{start.next_seq - 1} are gone, and are other messages now",
    )
    return _lost(resumed, new_seq, start.next_seq - 1)


def _tail_lost(start: Offset, state: StreamState) -> Resumed:
    return Resumed(
        state.stop_seq,
        f"stream {state.stream} ends at {state.last_seq}, but sequences up to "
        f"{start.next_seq - 1} were read or requested: {state.stop_seq} to {start.next_seq - 1} "
        "are gone, as after a restore from an older backup",
    )


def _head_lost(start: Offset, state: StreamState) -> Resumed:
    return Resumed(
        state.earliest_seq,
        f"stream {state.stream} begins at {state.earliest_seq}, but the read is at "
        f"{start.next_seq}: sequences {start.next_seq} to {state.earliest_seq - 1} are gone "
        "(limits of the stream, a purge, or newer messages of their subjects)",
    )


def _lost(resumed: Resumed, first: int, last: int) -> MessagesLostError:
    return MessagesLostError(resumed.warning, first_seq=first, last_seq=last, hint=_hint(resumed))


def _hint(resumed: Resumed) -> str:
    return (
        "use a new checkpoint with the startingOffsets that you want, "
        f"or set failOnDataLoss=false to continue at sequence {resumed.next_seq} with a warning"
    )
