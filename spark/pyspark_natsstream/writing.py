"""The work of a Spark task that writes: stores the rows of one partition.

Law: a task keeps no state but in the stream. Spark may run it again, elsewhere, or twice at once.
One idempotent producer for each query and partition stores the rows together with their number, so
an attempt skips those of earlier attempts, and stops the attempts before it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from pyspark import TaskContext

from natsstream import Expect
from natsstream.errors import ConfigError
from natsstream.units import duration_ns
from pyspark_natsstream.driver import connected
from pyspark_natsstream.rows import rows_of
from pyspark_natsstream.stored_rows import RowCheck, StoredRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from natsstream import PublishMessage
    from natsstream.blocking import IdempotentProducer, JetStream, Stream
    from pyspark_natsstream.rows import Row
    from pyspark_natsstream.write_options import WriteOptions

# As many as the producer stores together, and about as many bytes.
GROUP_MAX = 997
GROUP_BYTES_MAX = 1 << 20


class Written(NamedTuple):
    """The rows of a partition that are stored.

    Attributes:
        rows: Its rows.
        earlier: How many of them earlier attempts had stored.
    """

    rows: int = 0
    earlier: int = 0


class Task(NamedTuple):
    """The identity of a task's rows, the same for all its attempts.

    Attributes:
        job: The write; all its attempts have the same.
        batch: The number of the micro-batch; 0 in a batch write.
        partition: The partition.
        is_first: True at the first attempt.
    """

    job: str
    batch: int
    partition: int
    is_first: bool

    @property
    def producer_id(self) -> str:
        """The producer of this partition in every micro-batch."""
        return f"spark/{self.job}/{self.partition}"


def write_partition(options: WriteOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    """Store the rows of a partition.

    Args:
        options: The options of the write; a batch write has a `job`.
        batches: The rows; an empty partition opens no connection at its first attempt, unless the
            write has a job name.

    Raises:
        ConfigError: The DataFrame has more partitions than the options say.
        NatsStreamError: As for `NatsWriter.write`.
    """
    task = _task(options)
    if options.partitions is not None and task.partition >= options.partitions:
        raise ConfigError(
            f"partitions is {options.partitions}, and the DataFrame has more",
            hint="give df.rdd.getNumPartitions(), or leave the option out",
        )
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None and task.is_first and not options.is_repeatable:
        return Written()
    given = batches if first is None else chain([first], batches)
    rows = (row for batch in given for row in rows_of(batch, options))
    if options.guarantee == "exactly-once":
        return _write_once(options, task, rows)
    return _write_with_ids(options, task, rows)


def _task(options: WriteOptions) -> Task:
    context = TaskContext.get()
    if context is None:
        raise ConfigError("the write runs outside of a Spark task")
    batch = context.getLocalProperty("streaming.sql.batchId")
    job = options.job or context.getLocalProperty("sql.streaming.queryId")
    if job is None:
        raise ConfigError("Spark does not tell the query's id", hint="use PySpark 4.2 or newer")
    return Task(job, int(batch or 0), context.partitionId(), context.attemptNumber() == 0)


def _write_once(options: WriteOptions, task: Task, rows: Iterable[Row]) -> Written:
    def open_producer(js: JetStream) -> IdempotentProducer:
        return js.producer(
            options.stream,
            task.producer_id,
            update_stream=options.update_stream,
            delivery_timeout=options.reconnect_timeout,
            # With it, the batches of all tasks would expect the same of one subject, which refuses
            # some of them on a replicated stream. A stream that has ended is refused at first.
            eof_guard=False,
        )

    with connected(options, open_producer, wait_s=options.reconnect_timeout) as opened:
        with opened as producer:
            recovered = producer.recovered
            checkpoint = None if recovered is None else recovered.checkpoint
            stored = StoredRows.of(checkpoint, task.batch, options.partitions or 0)
            check = RowCheck(stored, task.job)
            for group in _groups(rows, check):
                producer.append_many(group, checkpoint=check.so_far().to_json())
                producer.drain()
            check.end()
        return Written(check.rows, stored.rows)


def _groups(rows: Iterable[Row], check: RowCheck) -> Iterator[list[PublishMessage]]:
    """Yield the messages of rows that are not stored, so many as are stored together."""
    group: list[PublishMessage] = []
    size = 0
    for row in rows:
        if check.is_stored(row):
            continue
        group.append(row.message)
        size += len(row.identity)
        if len(group) >= GROUP_MAX or size >= GROUP_BYTES_MAX:
            yield group
            group, size = [], 0
    if group:
        yield group


def _write_with_ids(options: WriteOptions, task: Task, rows: Iterable[Row]) -> Written:
    """Store rows under message ids; retries within the duplicate window store nothing twice."""

    def open_stream(js: JetStream) -> tuple[JetStream, Stream]:
        return js, js.streams.get(options.stream)

    with connected(options, open_stream, wait_s=options.reconnect_timeout) as (js, stream):
        config = stream.cached.config
        window_s = duration_ns(config.duplicate_window or 0.0) / 1e9
        if window_s < options.min_duplicate_window:
            raise ConfigError(
                f"stream {options.stream} has a duplicate window of {window_s:g} s, "
                f"minDuplicateWindow is {options.min_duplicate_window:g}",
                hint=f"js.streams.update({options.stream!r}, "
                f"duplicate_window={options.min_duplicate_window:g}); it must be longer than the "
                "longest outage",
            )
        ids = f"{task.job}/{task.batch}/{task.partition}"
        expect = Expect(stream=options.stream)
        named = (
            replace(row.message, msg_id=row.id or f"{ids}/{number}", expect=expect)
            for number, row in enumerate(rows)
        )
        count = 0
        with js.publisher(retry_for=options.reconnect_timeout) as publisher:
            while group := [*islice(named, GROUP_MAX)]:
                publisher.send_many(group)
                count += len(group)
        return Written(count)
