"""The verify job: compares a table with the stream that it was ingested from.

Law: nothing is changed. Messages are compared by their sequences. Rows whose messages are deleted
or expired are counted, and are no difference.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention.

from natsstream.errors import ConfigError, SequenceRangeError
from pyspark_natsstream.failures import typed_failures
from pyspark_natsstream.lake_tables import is_lake
from pyspark_natsstream.read_options import Position, ReadOptions
from pyspark_natsstream.registration import register
from pyspark_natsstream.source import FORMAT
from pyspark_natsstream.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

_COMPARED = ("subject", "time", "data")
_TYPES = {"subject": "string", "sequence": "bigint", "time": "timestamp", "data": "binary"}
_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in _TYPES.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """The result of a comparison.

    Attributes:
        messages: Messages of the stream in the range.
        rows: Rows of the table in the range.
        missing: Messages without a row.
        repeated: Rows beyond the first of a sequence.
        differing: Rows with another subject, time or data than their message.
        gone: Rows whose message the stream has no longer.
        first_seq: The first sequence that is missing, repeated or differing; None for none.
    """

    messages: int
    rows: int
    missing: int
    repeated: int
    differing: int
    gone: int
    first_seq: int | None

    @property
    def is_different(self) -> bool:
        """True if the table does not have each message once, as it is stored."""
        return bool(self.missing or self.repeated or self.differing)

    def to_json(self) -> str:
        """Return the report as one line."""
        return json.dumps(asdict(self))


def verify(
    spark: SparkSession, *, options: Mapping[str, str], table: str, fmt: str = "parquet"
) -> VerifyReport:
    """Compare a table with its stream, and return a report.

    Args:
        spark: A session.
        options: The options of `format("nats")`. The range begins at `startingOffsets`; its end is
            `endingOffsets`, or the table's last sequence without that option; `latest` also tells
            messages behind that one, which the table lacks.
        table: Folder of the table, for Iceberg its name `catalog.namespace.table`, with a column
            `sequence`. Those of `subject`, `time` and `data` that it has are compared, in JSON
            files all but `time`.
        fmt: Format of its files, or "delta" or "iceberg", of which the rows now are read.

    Raises:
        MissingExtraError: The library of the format is not installed.
        ConfigError: An option is illegal, or there is no table, or it has no sequences.
        SequenceRangeError: The range, or the table without `endingOffsets`, goes beyond the stream.
        NatsStreamError: There is no server or no stream, or the stream cannot be read.

    Cost: one read of the stream and of the table, and a shuffle of a hash for each message.
    """
    asked = ReadOptions.parse(options)
    asked.check_batch()
    asked.check_as_stored()
    register(spark)
    rows = _table(spark, table, fmt)
    table_end: int | None = None
    if not any(name.lower() == "endingoffsets" for name in options):
        last = rows.agg(F.max("sequence")).first()
        end_seq = 0 if last is None else last[0] or 0
        asked, table_end = _until(asked, end_seq), end_seq
    compared = [name for name in _COMPARED if name in rows.columns]
    try:
        with typed_failures():
            messages = spark.read.format(FORMAT).options(**asked.to_text()).schema(_SCHEMA).load()
            return _compared(messages, _in_range(rows, asked), compared)
    except SequenceRangeError as error:
        if table_end is None or error.last_seq >= table_end:
            raise
        other = _other_stream(read_table(spark, table, fmt), asked.stream)
        raise SequenceRangeError(
            f"table {table} goes to sequence {table_end}, and stream {asked.stream} only to "
            f"{error.last_seq}" + (f": it is a table of stream {other}" if other else ""),
            first_seq=error.first_seq,
            last_seq=error.last_seq,
            hint=f"compare it with {other or 'the stream that it was ingested from'}, "
            "or give endingOffsets",
        ) from error


def _other_stream(rows: DataFrame, stream: str) -> str | None:
    """Return the name of another stream that the rows of a table are of, if they tell."""
    if "stream" not in rows.columns:
        return None
    found = rows.where(F.col("stream") != stream).select("stream").first()
    return None if found is None else found[0]


def _table(spark: SparkSession, table: str, fmt: str) -> DataFrame:
    """Return the columns of a table that are compared, with the types of the stream's.

    Raises:
        ConfigError: There is no table, or it has no sequences.
    """
    rows = read_table(spark, table, fmt)
    if "sequence" not in rows.columns:
        raise ConfigError(f"table {table} has no column sequence", hint="ingest writes one")
    # Spark's JSON has only the milliseconds of a time.
    wanted = [
        name for name in rows.columns if name in _TYPES and not (fmt == "json" and name == "time")
    ]
    if is_lake(fmt):  # These have types of their own.
        return rows.select(*(F.col(name).cast(_TYPES[name]) for name in wanted))
    types = ", ".join(f"{name} {_TYPES[name]}" for name in wanted)
    return spark.read.format(fmt).schema(types).load(table)


def _until(options: ReadOptions, last_seq: int) -> ReadOptions:
    if not last_seq:
        raise ConfigError("the table is empty", hint="give endingOffsets=last_seq:N to compare it")
    start = options.starting_offsets
    if start.anchor == "first_seq" and start.value > last_seq:
        raise ConfigError(
            f"startingOffsets is {start}, and the table's last sequence is {last_seq}",
            hint="begin at a sequence of the table; endingOffsets=latest tells what it lacks",
        )
    given = options.to_text() | {"endingOffsets": str(Position("last_seq", last_seq))}
    return ReadOptions.parse(given)


def _in_range(rows: DataFrame, options: ReadOptions) -> DataFrame:
    """Return the rows whose messages the read has.

    Raises:
        ConfigError: The range is of another kind, or the table lacks the column that it needs.
    """
    start, end = options.starting_offsets, options.ending_offsets
    for position in (start, end):
        if position.anchor == "newest":
            raise ConfigError(f"{position} is no range of a table", hint="give first_seq:N")
        if position.anchor in ("start_time", "end_time") and "time" not in rows.columns:
            raise ConfigError("the table has no column time", hint="give the range by sequences")
    if start.anchor == "first_seq":
        rows = rows.where(F.col("sequence") >= start.value)
    if start.anchor == "start_time":
        rows = rows.where(F.unix_micros("time") >= start.value // 1_000)
    if end.anchor == "last_seq":
        rows = rows.where(F.col("sequence") <= end.value)
    if end.anchor == "end_time":
        rows = rows.where(F.unix_micros("time") < end.value // 1_000)
    return rows


def _compared(messages: DataFrame, rows: DataFrame, columns: list[str]) -> VerifyReport:
    """Return what differs, from a full outer join by sequence."""
    mine = messages.select("sequence", _hash(columns).alias("mine"))
    theirs = (
        rows.select("sequence", _hash(columns).alias("theirs"))
        .groupBy("sequence")
        .agg(
            F.count("*").alias("copies"),
            F.min("theirs").alias("least"),
            F.max("theirs").alias("most"),
        )
    )
    both = mine.join(theirs, "sequence", "full_outer")
    is_missing = F.col("copies").isNull()
    is_repeated = F.col("copies") > 1
    is_differing = F.col("mine").isNotNull() & (
        (F.col("mine") != F.col("least")) | (F.col("mine") != F.col("most"))
    )
    is_wrong = is_missing | is_repeated | is_differing
    found = both.agg(
        F.count("mine").alias("messages"),
        F.sum("copies").alias("rows"),
        F.count_if(is_missing).alias("missing"),
        F.sum(F.when(is_repeated, F.col("copies") - 1)).alias("repeated"),
        F.count_if(is_differing).alias("differing"),
        F.count_if(F.col("mine").isNull()).alias("gone"),
        F.min(F.when(is_wrong, F.col("sequence"))).alias("first_seq"),
    ).first()
    told = {} if found is None else found.asDict()
    counts = {name: told.get(name) or 0 for name in ("messages", "rows", "missing")}
    counts |= {name: told.get(name) or 0 for name in ("repeated", "differing", "gone")}
    return VerifyReport(**counts, first_seq=told.get("first_seq"))


def _hash(columns: list[str]) -> Column:
    return F.xxhash64(*columns) if columns else F.lit(0)
