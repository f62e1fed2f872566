"""The ingest job: writes a stream into a table.

Law: exactly once. Ranges are fixed before they are read, the file sink commits a micro-batch as a
whole, and the start is kept beside the checkpoint. However often the job runs with the same
checkpoint and output, the table holds every message once.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from pyspark.errors import IllegalArgumentException

from natsstream.arguments import check_texts
from natsstream.errors import ConfigError
from pyspark_natsstream.checkpoint import (
    check_delta_folder,
    check_lake_table,
    check_table,
    pin_start,
)
from pyspark_natsstream.failures import typed_failures
from pyspark_natsstream.folder import check_apart
from pyspark_natsstream.kept_columns import check_as_before
from pyspark_natsstream.lake_tables import lake_table, lake_writer
from pyspark_natsstream.offsets import Offset, parse_offset_text
from pyspark_natsstream.read_options import ReadOptions
from pyspark_natsstream.registration import register
from pyspark_natsstream.schema import check_schema, default_schema
from pyspark_natsstream.source import FORMAT
from pyspark_natsstream.tables import DATE, json_fields, json_rows, table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

TableFormat: TypeAlias = Literal["parquet", "orc", "json", "delta", "iceberg"]

AVAILABLE_NOW = "available-now"
TRIGGERS = f"write {AVAILABLE_NOW}, or an interval such as 10 seconds or 5 minutes"
POLL_S = 1
"""Seconds between two reports of a running query; its end is noticed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """The progress of a run, or its result.

    Attributes:
        rows: Messages written.
        batches: Micro-batches that had messages.
        seconds: Time since the start of the query.
        end: The query's position in the stream; None before its first micro-batch.
    """

    rows: int
    batches: int
    seconds: float
    end: Offset | None

    def to_json(self) -> str:
        """Return the report as one line."""
        end = None if self.end is None else self.end.to_json()
        shown = {"rows": self.rows, "batches": self.batches, "seconds": round(self.seconds, 3)}
        return json.dumps({**shown, "end": end})


def ingest(
    spark: SparkSession,
    *,
    options: Mapping[str, str],
    out: str,
    checkpoint: str,
    partition_by: Sequence[str] | None = None,
    trigger: str = AVAILABLE_NOW,
    fmt: TableFormat = "parquet",
    json_schema: str | None = None,
    on_progress: Callable[[IngestReport], None] | None = None,
) -> IngestReport:
    """Write a stream's messages into a table of files, and return a report.

    Args:
        spark: A session with a driver in this process (not Spark Connect).
        options: The options of `format("nats")`; `startingOffsets` applies to the first run.
        out: Folder of the table, a path or URL that Spark can write to; for Iceberg its name,
            `catalog.namespace.table`.
        checkpoint: Folder of the checkpoint; one for each table, kept as long as the table.
        partition_by: Columns of the table, `date` (UTC day of `time`) or `token1`, `token2` and so
            on (tokens of the subject). None is `date`, and nothing for Iceberg, which has to be
            empty.
        trigger: `available-now` ends at the stream's last message now; an interval such as
            `10 seconds` runs until the query is stopped.
        fmt: Format of the files; "delta" and "iceberg" are tables of Parquet files that
            deltalake and pyiceberg commit to.
        json_schema: Columns of JSON messages, such as `origin string, distance int`, with the
            types and rules of `dataFormat=json`. They replace `stream` and `data`; they are null in
            a message that does not fit, which keeps its bytes in `_corrupt_record`.
        on_progress: Called about once a second while messages are written.

    Raises:
        ConfigError: An option, a column, the trigger or the format is illegal, or the table was
            written with another checkpoint, other columns, partitions or subjects; nothing was
            started.
        MissingExtraError: The library of the format is not installed.
        NatsStreamError: There is no server or no stream, or the stream cannot be read, at the
            start or later. The next run continues from the checkpoint.
        StreamingQueryException: The query failed for another reason, such as a full disk.
    """
    asked = ReadOptions.parse(options)
    asked.check_streaming()
    asked.check_as_stored()
    schema = default_schema(include_headers=asked.include_headers)
    if json_schema is not None:
        asked = replace(asked, data_format="json", mode="PERMISSIVE")
        schema = json_rows(schema, json_fields(json_schema))
        check_schema(schema, asked)
    if fmt not in get_args(TableFormat):
        hint = f"choose from {', '.join(get_args(TableFormat))}"
        raise ConfigError(f"{fmt!r} is not a format of the table", hint=hint)
    if partition_by is None:
        partition_by = () if fmt == "iceberg" else (DATE,)
    partition_by = check_texts(partition_by, "partition_by")
    check_trigger(spark, trigger)
    if fmt != "iceberg":  # There it is a name.
        check_apart(spark, {"out": out, "checkpoint": checkpoint})
    lake = None
    if fmt == "delta" or fmt == "iceberg":
        lake = lake_table(fmt, out, partition_by)
    # One broken pyspark_* package keeps Spark from finding this one by itself.
    register(spark)
    if lake is None:
        check_table(spark, out, checkpoint)
    else:
        if fmt == "delta":
            check_delta_folder(spark, out)
        check_lake_table(spark, lake, out, checkpoint, asked.stream)
    pinned = pin_start(spark, asked, checkpoint)
    messages = spark.readStream.format(FORMAT).options(**pinned.to_text()).schema(schema).load()
    rows = table_of(messages, partition_by=partition_by)
    check_as_before(
        spark, checkpoint, rows.schema, partition_by=partition_by, subjects=asked.subjects
    )
    writer = rows.writeStream.option("checkpointLocation", checkpoint)
    if lake is not None:
        writer = writer.foreachBatch(lake_writer(lake, asked.stream, partition_by))
    else:
        writer = writer.format(fmt).partitionBy(*partition_by).option("path", out)
    return follow(triggered(writer, trigger).start(), asked.stream, on_progress)


def check_trigger(spark: SparkSession, trigger: str) -> None:
    """Refuse a trigger that Spark does not know, before a job has begun.

    Raises:
        ConfigError: It is neither `available-now` nor an interval.
    """
    if trigger == AVAILABLE_NOW:
        return
    session: Any = spark
    try:
        # As Spark's writer does, which there is only after the start is kept.
        session._jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(trigger)  # noqa: SLF001
    except IllegalArgumentException as error:
        raise ConfigError(f"trigger is {trigger!r}", hint=TRIGGERS) from error


def triggered(writer: DataStreamWriter, trigger: str) -> DataStreamWriter:
    """Return a writer with a job's trigger: `available-now` or an interval."""
    if trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=trigger)


def follow(
    query: StreamingQuery, stream: str, on_progress: Callable[[IngestReport], None] | None
) -> IngestReport:
    """Wait for the end of a query and add up its progress; an interrupt stops it.

    Args:
        query: The query, which has one source.
        stream: The stream that it reads.
        on_progress: Called about once a second while there are rows.

    Raises:
        NatsStreamError: The query failed with an error of natsstream.
        PySparkException: The query failed for another reason.
    """
    began_s = time.monotonic()
    report = IngestReport(rows=0, batches=0, seconds=0.0, end=None)
    seen: set[str] = set()
    has_ended = False
    try:
        with typed_failures():
            while not has_ended:
                has_ended = bool(query.awaitTermination(POLL_S))
                # Read once: progress that arrives between two reads would never be counted.
                recent = query.recentProgress
                fresh = [each for each in recent if each.timestamp not in seen]
                seen = {each.timestamp for each in recent}
                seconds = time.monotonic() - began_s
                report = _added(report, fresh, stream=stream, seconds=seconds)
                if fresh and on_progress is not None:
                    on_progress(report)
    finally:
        query.stop()
    return report


def _added(
    report: IngestReport, fresh: Sequence[StreamingQueryProgress], *, stream: str, seconds: float
) -> IngestReport:
    # Idle progress has no rows, so it adds nothing.
    rows = [each.numInputRows or 0 for each in fresh]
    end = report.end
    for each in fresh:
        end = parse_offset_text(each.sources[0].endOffset, stream=stream)
    return IngestReport(
        rows=report.rows + sum(rows),
        batches=report.batches + sum(count > 0 for count in rows),
        seconds=seconds,
        end=end,
    )
