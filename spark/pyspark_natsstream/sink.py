"""A write: `df.write.format("nats")` and `df.writeStream.format("nats")`.

Law: the tasks store the rows, so `commit` has nothing left to do. Rows of a batch that has not
ended, or of a task that runs again, can be seen earlier; each is stored once.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from natsstream.arguments import counted
from pyspark_natsstream.write_options import UNNAMED
from pyspark_natsstream.writing import Written, write_partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from pyspark_natsstream.write_options import WriteOptions

_log = logging.getLogger("pyspark_natsstream")


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """The result of a task."""

    written: Written


class NatsWriter(DataSourceArrowWriter):
    """Writes a DataFrame once."""

    def __init__(self, options: WriteOptions) -> None:
        # All tasks of this write share its name.
        self._options = replace(options, job=options.job or f"{UNNAMED}{uuid4().hex}")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        """Store the rows of a partition; runs on an executor.

        Raises:
            ConfigError: A row is no message, or the stream lacks a setting.
            InputChangedError: The task ran before, and its rows are not the same.
            StaleEpochError: Another attempt of the task has taken over.
            NatsStreamError: No server within `reconnectTimeout`, or it refused.
        """
        return TaskDone(write_partition(self._options, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log what was stored, and warn where `partitions` is another number than the real one."""
        _log_done(self._options, messages)
        given = self._options.partitions
        if given is not None and given != len(messages):
            _log.warning(
                "write to stream %s: the option partitions is %d, and the DataFrame has %s; give "
                "the same option again if you repeat this write",
                self._options.stream,
                given,
                counted(len(messages), "partition"),
            )

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log what was stored before the write failed; it stays."""
        _log_done(self._options, messages, "failed; ")


class NatsStreamWriter(DataSourceStreamArrowWriter):
    """Writes each micro-batch of a query; Spark makes one for each of them."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        """Store the rows of a partition; errors as for `NatsWriter.write`."""
        return TaskDone(write_partition(self._options, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's.
        """Log what was stored."""
        _log_done(self._options, messages, f"batch {batchId}: ")

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Log what was stored before the batch failed; it stays."""
        _log_done(self._options, messages, f"batch {batchId} failed; ")


def _log_done(
    options: WriteOptions, messages: Sequence[WriterCommitMessage | None], what: str = ""
) -> None:
    done = [each.written for each in messages if isinstance(each, TaskDone)]
    _log.info(
        "write to stream %s: %sstored %s, %d of them by earlier attempts",
        options.stream,
        what,
        counted(sum(each.rows for each in done), "row"),
        sum(each.earlier for each in done),
    )
