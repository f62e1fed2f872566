"""What to read: from options, an offset and the stream's state to ranges of sequences.

Law: a range is fixed before a message of it is read, so reading it again gives the same rows. Gaps
inside a range are legal (deletes, TTL, `max_msgs_per_subject`). Loss is: another stream under the
name (`created` differs), a start that lies before the stream's first message, a stream that ends
before what was read already. Each is an error, or a warning when `failOnDataLoss` is false.

Sequences `first` and `last` are inclusive; `next_seq` and `stop_seq` are the sequence to read next
and the one after the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

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
    from pyspark_natsstream.options import NatsOptions, Position

SequenceAt: TypeAlias = Callable[[int], int | None]
"""Returns the sequence of the first message at or after Unix nanoseconds, None when none is."""

PARTITIONS_MAX = 10_000
"""Most ranges of one read: Spark keeps each as a task on the driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """What a stream holds, as the server said it once.

    Attributes:
        stream: Name of the stream.
        created_ns: When it was created, in Unix nanoseconds.
        messages: Number of messages.
        stored_bytes: Their size as stored.
        first_seq: As the server says; 0 in a stream that never had a message.
        last_seq: As the server says; 0 in a stream that never had a message.
    """

    stream: str
    created_ns: int
    messages: int
    stored_bytes: int
    first_seq: int
    last_seq: int

    @property
    def earliest_seq(self) -> int:
        """Where a read of everything begins: 1 in a stream that never had a message."""
        return max(self.first_seq, 1)

    @property
    def stop_seq(self) -> int:
        """The sequence that the next message will get."""
        return self.last_seq + 1

    def offset(self, next_seq: int) -> Offset:
        """Return a place in this stream."""
        return Offset(stream=self.stream, next_seq=next_seq, created_ns=self.created_ns)


@dataclass(frozen=True)
class Partition(InputPartition):
    """A range of sequences for one Spark task.

    Attributes:
        stream: Name of the stream.
        first: First sequence.
        last: Last sequence; it is in the range.
        created_ns: The stream's identity: when it was created, in Unix nanoseconds.
    """

    stream: str
    first: int
    last: int
    created_ns: int

    @property
    def label(self) -> str:
        """The range in words, for messages."""
        return f"sequences {self.first} to {self.last} of stream {self.stream}"


class Resumed(NamedTuple):
    """Where a read goes on.

    Attributes:
        next_seq: Sequence to read next.
        warning: What was lost on the way; empty when nothing was.
    """

    next_seq: int
    warning: str = ""


class Limit(NamedTuple):
    """How much one micro-batch takes; None is no limit.

    Attributes:
        sequences_max: Most sequences.
        bytes_max: Most bytes, by the mean size of the stored messages.
        sequences_min: Fewest sequences; with fewer there is no micro-batch yet.
    """

    sequences_max: int | None = None
    bytes_max: int | None = None
    sequences_min: int = 1


def check_retention(stream: str, retention: str) -> None:
    """Refuse streams that a reader without acks can not read, or would change.

    Args:
        stream: Name of the stream.
        retention: `limits`, `interest` or `workqueue`.

    Raises:
        ConfigError: Another retention than limits.
    """
    if retention == "limits":
        return
    why = {
        "workqueue": "its server gives messages only to consumers that acknowledge [10098]",
        "interest": "one more consumer changes which messages it keeps",
    }.get(retention, "this source knows only limits")
    raise ConfigError(
        f"stream {stream} has retention {retention}: {why}",
        hint=f"mirror it: make a stream with mirror={stream} and limits retention, and read that",
    )


def start_of(options: NatsOptions, state: StreamState, sequence_at: SequenceAt) -> Offset:
    """Return where `startingOffsets` lies in the stream.

    Args:
        options: The options of the read.
        state: The stream now.
        sequence_at: Asked when the option is a time.

    Raises:
        SequenceRangeError: It lies beyond the next message, and `failOnDataLoss` is true.
    """
    next_seq = _place(options.starting_offsets, state, sequence_at)
    if next_seq > state.stop_seq and options.fail_on_data_loss:
        raise _beyond("startingOffsets", options.starting_offsets, state)
    return state.offset(next_seq)


def stop_of(options: NatsOptions, state: StreamState, sequence_at: SequenceAt) -> Offset:
    """Return where `endingOffsets` lies in the stream: the sequence after the last to read.

    Args:
        options: The options of the read.
        state: The stream now.
        sequence_at: Asked when the option is a time.

    Raises:
        SequenceRangeError: It lies beyond the last message, and `failOnDataLoss` is true.
    """
    position = options.ending_offsets
    if position.anchor != "seq":
        return state.offset(_place(position, state, sequence_at))
    if position.value > state.last_seq and options.fail_on_data_loss:
        raise _beyond("endingOffsets", position, state)
    return state.offset(min(position.value + 1, state.stop_seq))


def resume(start: Offset, state: StreamState, *, fail_on_data_loss: bool) -> Resumed:
    """Return where a read that stands at an offset goes on, by the rules of loss.

    A stream that was created anew is read from its first message, one that lost its head from the
    first message that is left, one that lost its tail from its end: below that is nothing unread.

    Raises:
        StreamRecreatedError: The offset is of another stream of this name.
        MessagesLostError: Messages from the offset on, or before it, are gone.
    """
    if start.created_ns != state.created_ns:
        resumed = _recreated(start, state)
        error: Exception = StreamRecreatedError(resumed.warning, hint=_hint(resumed))
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
    """Return where a micro-batch ends: the sequence after its last.

    Args:
        next_seq: First sequence of the micro-batch.
        stop_seq: The sequence after the last that may be read.
        limit: How much to take.
        state: The stream now; its mean message size turns bytes into sequences.

    Returns:
        At least one sequence more than `next_seq`, or `next_seq` when there is nothing or too
        little to read yet.
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
    """Return where the next micro-batch ends, and a warning (empty when nothing was lost).

    Args:
        start: Where the query stands.
        state: The stream now.
        limit: How much to take.
        target: End of a query that ends (AvailableNow); None when there is none.
        fail_on_data_loss: Whether loss is an error.

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
    start: Offset, end: Offset, state: StreamState, options: NatsOptions
) -> tuple[list[Partition], str]:
    """Return the ranges from one offset to the next, and a warning (empty when nothing was lost).

    Raises:
        IntegrityError: The stream is another one now, or does not hold the range any more.
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
    ranges = split(
        resumed.next_seq,
        min(end.next_seq, state.stop_seq) - 1,
        partitions_min=options.min_partitions,
        sequences_max=options.max_records_per_partition,
    )
    found = [
        Partition(stream=state.stream, first=first, last=last, created_ns=state.created_ns)
        for first, last in ranges
    ]
    return found, resumed.warning or warning


def split(
    first: int, last: int, *, partitions_min: int = 1, sequences_max: int | None = None
) -> list[tuple[int, int]]:
    """Split a range into pieces of equal size, the larger ones first.

    Args:
        first: First sequence.
        last: Last sequence; less than `first` is an empty range.
        partitions_min: Fewest pieces, as far as there are sequences.
        sequences_max: Most sequences in a piece.

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


def _place(position: Position, state: StreamState, sequence_at: SequenceAt) -> int:
    match position.anchor:
        case "earliest":
            return state.earliest_seq
        case "latest":
            return state.stop_seq
        case "seq":
            return position.value
        case "last":
            return max(state.earliest_seq, state.stop_seq - position.value)
        case "time":
            return sequence_at(position.value) or state.stop_seq


def _beyond(option: str, position: Position, state: StreamState) -> SequenceRangeError:
    return SequenceRangeError(
        f"{option} is {position}, but stream {state.stream} ends at {state.last_seq}",
        first_seq=state.first_seq,
        last_seq=state.last_seq,
        hint="give a sequence that the stream holds, or latest",
    )


def _recreated(start: Offset, state: StreamState) -> Resumed:
    return Resumed(
        state.earliest_seq,
        f"stream {state.stream} was created anew at {format_rfc3339(state.created_ns)}; "
        f"what was read up to sequence {start.next_seq - 1} is of the stream created at "
        f"{format_rfc3339(start.created_ns)}",
    )


def _tail_lost(start: Offset, state: StreamState) -> Resumed:
    return Resumed(
        state.stop_seq,
        f"stream {state.stream} ends at {state.last_seq}, but sequences up to "
        f"{start.next_seq - 1} were read or asked for: {state.stop_seq} to {start.next_seq - 1} "
        "are gone, as after a restore from an older backup",
    )


def _head_lost(start: Offset, state: StreamState) -> Resumed:
    return Resumed(
        state.earliest_seq,
        f"stream {state.stream} begins at {state.earliest_seq}, but the read stands at "
        f"{start.next_seq}: sequences {start.next_seq} to {state.earliest_seq - 1} are gone "
        "(limits of the stream, a purge, or newer messages of their subjects)",
    )


def _lost(resumed: Resumed, first: int, last: int) -> MessagesLostError:
    return MessagesLostError(resumed.warning, first_seq=first, last_seq=last, hint=_hint(resumed))


def _hint(resumed: Resumed) -> str:
    return (
        "use a new checkpoint with the startingOffsets that you want, "
        f"or set failOnDataLoss=false to go on at sequence {resumed.next_seq} with a warning"
    )
