"""The options of a read of `format("nats")`, batch and streaming."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from natsstream.api.names import check_filters
from natsstream.arguments import check_choice
from natsstream.errors import ConfigError
from natsstream.units import format_rfc3339, parse_rfc3339
from pyspark_natsstream.options import (
    NatsOptions,
    filters,
    flag,
    lower,
    note,
    spark_name,
    times,
    upper,
    whole,
)
from pyspark_natsstream.payloads import DataFormat, Mode

if TYPE_CHECKING:
    from collections.abc import Iterable

Anchor: TypeAlias = Literal[
    "earliest", "latest", "first_seq", "last_seq", "start_time", "end_time", "newest"
]

NOT_AS_STORED = ("data_format", "mode", "filter_pushdown")
"""Fields that change or filter the messages; jobs that need them as stored have no such options."""

OF_QUERIES = ("job", "max_messages_per_trigger", "max_bytes_per_trigger", "restored_at")
"""Fields that only a streaming query has."""

PENDING_BYTES = 4 << 20
_NO_QUERY = {
    "job": "leave it out: it names a query, whose start is kept, and a batch has its own range",
    "restored_at": "leave it out: it is for a checkpoint, which a batch has not",
}
_SEQUENCE_MAX = 2**63 - 1  # Spark's bigint; the server's own limit is twice that.


class Position(NamedTuple):
    """A position in a stream, as the user writes it.

    Attributes:
        anchor: The word of `Stream.read`, or one of the stream's ends.
        value: The sequence, Unix nanoseconds of a time, or a count of messages (`newest`).
    """

    anchor: Anchor
    value: int = 0

    def __str__(self) -> str:
        if self.anchor in ("earliest", "latest"):
            return self.anchor
        shown = format_rfc3339(self.value) if self.anchor in _TIMES else str(self.value)
        return f"{self.anchor}:{shown}"


EARLIEST = Position("earliest")
LATEST = Position("latest")
_STARTS: tuple[Anchor, ...] = ("earliest", "latest", "first_seq", "start_time", "newest")
_ENDS: tuple[Anchor, ...] = ("latest", "last_seq", "end_time")
_TIMES: tuple[Anchor, ...] = ("start_time", "end_time")
_FORMS = {
    "first_seq": "first_seq:N",
    "last_seq": "last_seq:N",
    "start_time": "start_time:RFC3339",
    "end_time": "end_time:RFC3339",
    "newest": "newest:N",
}


def parse_position(text: str) -> Position:
    """Read `earliest`, `latest`, or a word of `Stream.read` with its value, such as `newest:10`.

    Raises:
        ConfigError: The text is none of these.
    """
    word, colon, rest = text.strip().partition(":")
    known = (*_STARTS, *_ENDS)
    anchor: Anchor | None = next((each for each in known if each == word.lower()), None)
    if anchor is None or bool(colon) != (anchor in _FORMS):
        hint = f"to start, write {_forms(_STARTS)}; to end, {_forms(_ENDS)}"
        raise ConfigError(f"{text!r} is not a position", hint=hint)
    if not colon:
        return Position(anchor)
    return Position(anchor, parse_rfc3339(rest) if anchor in _TIMES else whole(rest))


# Without repr=False it would not inherit the one that hides paths of secrets.
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReadOptions(NatsOptions):
    """The options of a read.

    Raises:
        ConfigError: A value is illegal; the message names the option, the hint what to give.
    """

    subjects: tuple[str, ...] = field(
        default=(),
        metadata=note(
            filters,
            "Subject filters such as `a.>,b.*.c`; the server sends only matching messages. "
            "Default: every subject.",
        ),
    )
    starting_offsets: Position = field(
        default=EARLIEST,
        metadata=note(
            parse_position,
            "First message of a batch read, or of a query without a checkpoint: `earliest`, "
            "`latest` (streaming only), `first_seq:N` (inclusive), `start_time:RFC3339` (messages "
            "at or after it), `newest:N` (the newest N messages of `subjects`). "
            "Default `earliest`.",
        ),
    )
    ending_offsets: Position = field(
        default=LATEST,
        metadata=note(
            parse_position,
            "Batch only. Last message: `latest` when Spark plans the read, `last_seq:N` "
            "(inclusive), `end_time:RFC3339` (messages before it). Default `latest`.",
        ),
    )
    job: str | None = field(
        default=None,
        metadata=note(
            str.strip,
            "Streaming only. Name of the query, one for each checkpoint. Its start is kept in the "
            "key-value bucket `natsstream_spark`, so a restart before the first batch has ended "
            "begins there again. Default: `startingOffsets` is resolved again.",
        ),
    )
    max_messages_per_trigger: int | None = field(
        default=None,
        metadata=note(
            whole,
            "Streaming only. Maximum sequences in one micro-batch, 1 or more. Default: no limit.",
        ),
    )
    max_bytes_per_trigger: int | None = field(
        default=None,
        metadata=note(
            whole,
            "Streaming only. Maximum bytes in one micro-batch, 1 or more, estimated from the "
            "mean size of the stored messages. Default: no limit.",
        ),
    )
    min_partitions: int = field(
        default=1,
        metadata=note(
            whole,
            "Minimum number of ranges in a read, 1 or more; each range has at least one sequence. "
            "Default 1.",
        ),
    )
    max_records_per_partition: int | None = field(
        default=None,
        metadata=note(whole, "Maximum sequences in one range, 1 or more. Default: no limit."),
    )
    max_pending_bytes: int = field(
        default=PENDING_BYTES,
        metadata=note(
            whole,
            "Maximum bytes that a task has asked the server for and not read, 1 or more. More is "
            "faster; a publisher of the stream waits longer for its acks. Default 4194304 (4 MiB).",
        ),
    )
    fail_on_data_loss: bool = field(
        default=True,
        metadata=note(
            flag,
            "Fail when messages were lost before they were read, or the stream was created anew; "
            "`false` logs a warning and continues. Default `true`.",
        ),
    )
    restored_at: tuple[str, ...] | None = field(
        default=None,
        metadata=note(
            times,
            "Creation times of streams that were restored from a backup, RFC 3339, separated by "
            "commas, as the error of the query says: it continues there at its sequence. Default: "
            "none.",
        ),
    )
    include_headers: bool = field(
        default=False,
        metadata=note(flag, "Add the column `headers` to the default schema. Default `false`."),
    )
    control: bool = field(
        default=False,
        metadata=note(
            flag,
            "Also read the control records of producers, which are left out otherwise. "
            "Default `false`.",
        ),
    )
    data_format: DataFormat = field(
        default="bytes",
        metadata=note(
            lower,
            "Format of the payloads, and with it the type of the column `data`: `bytes` (binary, "
            "as stored), `text` (string, from UTF-8), `json` and `msgpack` (the type that "
            "`.schema()` gives it). Default `bytes`.",
        ),
    )
    mode: Mode = field(
        default="FAILFAST",
        metadata=note(
            upper,
            "Where payloads are malformed: `FAILFAST` fails and names the message, "
            "`DROPMALFORMED` leaves them out and logs how many, `PERMISSIVE` leaves `data` null "
            "and keeps the payload in the column `_corrupt_record` (binary). Default `FAILFAST`.",
        ),
    )
    filter_pushdown: bool = field(
        default=False,
        metadata=note(
            flag,
            "Batch only. Read only what filters on `sequence`, `time` and `subject` can match; "
            "needs Spark's `spark.sql.python.filterPushdown.enabled`. Each filter needs a "
            "`load()` of its own: Spark reuses the narrowed read for other queries of the same "
            "DataFrame, and their rows are lost. Default `false`.",
        ),
    )

    def __post_init__(self) -> None:
        NatsOptions.__post_init__(self)  # super() fails in a dataclass with slots.
        # Here and not by the server, which only executors ask about them.
        object.__setattr__(self, "subjects", tuple(check_filters(self.subjects)))
        if self.job == "":
            raise ConfigError("job is empty", hint="name the query, or leave the option out")
        check_choice(self.data_format, "dataFormat", get_args(DataFormat))
        check_choice(self.mode, "mode", get_args(Mode))
        if self.data_format == "bytes" and self.mode != "FAILFAST":
            hint = "add dataFormat=text, json or msgpack, or leave mode out"
            raise ConfigError(f"mode={self.mode}, but bytes are never malformed", hint=hint)
        _check_position("startingOffsets", self.starting_offsets, _STARTS)
        _check_position("endingOffsets", self.ending_offsets, _ENDS)

    @property
    def eviction_is_loss(self) -> bool:
        """True if a read has lost messages when the stream begins behind it."""
        return True

    def is_restored(self, created_ns: int) -> bool:
        """Return True if a stream that was created at that time is a restored one."""
        return format_rfc3339(created_ns) in (self.restored_at or ())

    def check_batch(self) -> None:
        """Refuse options that only a streaming query has.

        Raises:
            ConfigError: An option is for streaming queries, or the read would be empty.
        """
        if self.starting_offsets == LATEST:
            hint = "use newest:N, first_seq:N or start_time:..., or spark.readStream"
            raise ConfigError("startingOffsets=latest reads nothing in a batch", hint=hint)
        start, end = self.starting_offsets, self.ending_offsets
        is_range = (start.anchor, end.anchor) in (("first_seq", "last_seq"), _TIMES)
        if is_range and start.value > end.value + 1:
            message = f"the read is empty: startingOffsets={start} is after endingOffsets={end}"
            raise ConfigError(message, hint="exchange them")
        for name in OF_QUERIES:
            if getattr(self, name) is not None:
                hint = _NO_QUERY.get(name, "bound a batch with endingOffsets")
                raise ConfigError(f"{spark_name(name)} is for streaming queries only", hint=hint)

    def check_as_stored(self) -> None:
        """Refuse options that change or filter messages, for jobs that take them as stored.

        Raises:
            ConfigError: `dataFormat` is not `bytes`, or `filterPushdown` could lose rows.
        """
        if self.filter_pushdown:
            hint = "leave it out; the job reads the range of startingOffsets and endingOffsets"
            raise ConfigError("this job reads all messages: filterPushdown is false", hint=hint)
        if self.data_format != "bytes":
            hint = "leave it out; ingest decodes JSON by json_schema"
            raise ConfigError("this job reads payloads as stored: dataFormat is bytes", hint=hint)

    def check_streaming(self) -> None:
        """Refuse options that only a batch read has.

        Raises:
            ConfigError: An option is for batch reads.
        """
        if self.ending_offsets != LATEST:
            hint = "a query that ends: trigger(availableNow=True), or spark.read with endingOffsets"
            raise ConfigError("endingOffsets is for batch reads only", hint=hint)
        if self.filter_pushdown:
            hint = "Spark hands no filters to a streaming source; narrow it with subjects"
            raise ConfigError("filterPushdown is for batch reads only", hint=hint)


def _forms(anchors: Iterable[Anchor]) -> str:
    return ", ".join(_FORMS.get(anchor, anchor) for anchor in anchors)


def _check_position(name: str, position: Position, legal: tuple[Anchor, ...]) -> None:
    if position.anchor not in legal:
        raise ConfigError(f"{name} cannot be {position}", hint=f"write {_forms(legal)}")
    if (
        position.anchor in ("first_seq", "last_seq", "newest")
        and not 0 < position.value <= _SEQUENCE_MAX
    ):
        raise ConfigError(f"{name} is {position}", hint="sequences and counts begin at 1")
