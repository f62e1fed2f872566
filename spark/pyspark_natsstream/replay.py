"""The replay job: writes a table into a stream again, at the pace at which its messages came.

Law: each row is stored once and in the order of `time`, however often the job runs under the same
name. A run that continues an earlier one keeps the pace from its first row on.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow  # noqa: ICN001 - `pa` is its untyped form.
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention.

from natsstream.errors import ConfigError
from pyspark_natsstream.backfill import messages_of
from pyspark_natsstream.driver import connected
from pyspark_natsstream.rows import check_columns, rows_of
from pyspark_natsstream.stored_rows import RowCheck, StoredRows
from pyspark_natsstream.tables import read_table
from pyspark_natsstream.write_options import WriteOptions
from pyspark_natsstream.writing import GROUP_BYTES_MAX, GROUP_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from natsstream import PublishMessage
    from natsstream.blocking import IdempotentProducer, JetStream
    from pyspark_natsstream.rows import Row

# Its types lack most of it.
pa: Any = pyarrow
_MICROS = "_natsstream_micros"
# Rows that are due within this time are stored together.
_TOGETHER_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """The result of a replay.

    Attributes:
        rows: Rows of the table; all of them are stored.
        earlier: How many of them earlier runs had stored.
        seconds: Time that the run took.
    """

    rows: int
    earlier: int
    seconds: float

    def to_json(self) -> str:
        """Return the report as one line."""
        return json.dumps(asdict(self))


class Pace:
    """When each row is due.

    Args:
        speed: How much faster than at first; 0 is as fast as possible.
        clock: The time in seconds.
    """

    def __init__(self, speed: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._speed = speed
        self._clock = clock
        self._began: tuple[float, int] | None = None

    def wait_s(self, micros: int) -> float:
        """Return the seconds until a row is due; below 0 for one that is late.

        Args:
            micros: When its message came, in Unix microseconds.
        """
        now = self._clock()
        if self._began is None or not self._speed:
            self._began = (now, micros)
        began, first = self._began
        return began + (micros - first) / 1e6 / (self._speed or 1.0) - now


def replay(
    spark: SparkSession,
    *,
    options: Mapping[str, str],
    table: str,
    fmt: str = "parquet",
    where: str | None = None,
    speed: float = 1.0,
) -> ReplayReport:
    """Write the rows of a table into a stream at their pace, and return a report.

    Args:
        spark: A session; the driver does the writing.
        options: The options of `format("nats")`, with a `job`; a second run of the same job
            continues the first.
        table: Folder of the table, with a column `time`; other columns as for `backfill`.
        fmt: Format of its files, or "delta" or "iceberg", of which the rows now are read.
            An Iceberg table is named `catalog.namespace.table`.
        where: An SQL condition for the rows.
        speed: How much faster than at first: 2 takes half of the time, 0 none.

    Raises:
        ConfigError: An option, a column or `where` is illegal, or there is no `job` or no table.
        MissingExtraError: The library of the format is not installed.
        InputChangedError: The job ran before, and the rows are not the same.
        NatsStreamError: There is no server or no stream, or the stream refused a message.
    """
    asked = WriteOptions.parse(options)
    job = asked.job
    if job is None:
        raise ConfigError("a replay needs the option job", hint="job=replay-2026-11")
    if asked.guarantee != "exactly-once":
        raise ConfigError("a replay is exactly-once", hint="leave the option guarantee out")
    check_speed(speed)
    rows = read_table(spark, table, fmt, where)
    if "time" not in rows.columns:
        raise ConfigError(f"table {table} has no column time", hint="use backfill without a pace")
    timed = rows.withColumn(_MICROS, F.unix_micros("time"))
    # Rows of one time are in the same order each time.
    order = [name for name in ("time", "sequence", "subject", "data") if name in rows.columns]
    messages = messages_of(timed.orderBy(*order), asked, keep=[_MICROS])
    check_columns(messages.drop(_MICROS).schema, asked)
    began = time.monotonic()
    opening = connected(asked, lambda js: _opened(js, asked), wait_s=asked.reconnect_timeout)
    with opening as opened, opened as producer:
        recovered = producer.recovered
        stored = StoredRows.of(None if recovered is None else recovered.checkpoint, 0)
        check = RowCheck(stored, job)
        for group in _due(_rows(messages, asked), check, Pace(speed)):
            producer.append_many(group, checkpoint=check.so_far().to_json())
            producer.drain()
        check.end()
    seconds = round(time.monotonic() - began, 3)
    return ReplayReport(rows=check.rows, earlier=stored.rows, seconds=seconds)


def check_speed(speed: float) -> None:
    """Refuse a speed below 0.

    Raises:
        ConfigError: It is negative, or not a number.
    """
    if not speed >= 0:  # Nan is refused too.
        raise ConfigError(f"speed is {speed:g}", hint="give 1 for the original pace, 0 for none")


def _opened(js: JetStream, options: WriteOptions) -> IdempotentProducer:
    return js.producer(
        options.stream,
        f"spark/{options.job}/replay",
        update_stream=options.update_stream,
        delivery_timeout=options.reconnect_timeout,
    )


def _rows(messages: DataFrame, options: WriteOptions) -> Iterator[tuple[int, Row]]:
    """Yield each row, and the microseconds of its time."""
    local = messages.toLocalIterator(prefetchPartitions=True)
    while chunk := [each.asDict(recursive=True) for each in islice(local, GROUP_MAX)]:
        times: list[int | None] = [each.pop(_MICROS) for each in chunk]
        rows = rows_of(pa.RecordBatch.from_pylist(chunk), options)
        for micros, row in zip(times, rows, strict=True):
            if micros is None:
                raise ConfigError("a row has no time", hint="--where 'time is not null'")
            yield micros, row


def _due(
    rows: Iterator[tuple[int, Row]], check: RowCheck, pace: Pace
) -> Iterator[list[PublishMessage]]:
    """Yield the messages of rows that are not stored, each when it is due."""
    group: list[PublishMessage] = []
    size = 0
    for micros, row in rows:
        is_full = len(group) >= GROUP_MAX or size >= GROUP_BYTES_MAX
        if group and (is_full or pace.wait_s(micros) > _TOGETHER_S):
            yield group
            group, size = [], 0
        if check.is_stored(row):
            continue
        if not group:
            time.sleep(max(pace.wait_s(micros), 0.0))
        group.append(row.message)
        size += len(row.identity)
    if group:
        yield group
