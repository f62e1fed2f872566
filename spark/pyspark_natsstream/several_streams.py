"""Reads several streams in one query: each with a reader of its own.

Law: an offset has a place for each stream, and the streams of a query never change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pyspark_natsstream.batch import NatsReader
from pyspark_natsstream.offsets import merged, parse_offset, parts_of
from pyspark_natsstream.plan import Partition
from pyspark_natsstream.streaming import NatsStreamReader
from pyspark_natsstream.streams_options import shares

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from pyspark_natsstream.streams_options import StreamsOptions


class StreamsReader(DataSourceReader):
    """Reads several streams, or parts of them, once."""

    def __init__(self, options: StreamsOptions, schema: StructType) -> None:
        self._readers = {each.stream: NatsReader(each, schema) for each in options.each}

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges of all streams; errors as for one."""
        return [found for each in self._readers.values() for found in each.partitions()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range in order, as Arrow batches."""
        if isinstance(partition, Partition):
            yield from self._readers[partition.stream].read(partition)


class StreamsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads several streams in micro-batches; method names and errors as for one."""

    def __init__(self, options: StreamsOptions, schema: StructType) -> None:
        self._readers = {each.stream: NatsStreamReader(each, schema) for each in options.each}

    def initialOffset(self) -> dict[str, object]:  # noqa: N802
        """Return the start of a query without a checkpoint; every call returns the same."""
        return merged(each.initialOffset() for each in self._readers.values())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the options' limit: rows of all streams together, or bytes of each."""
        return next(iter(self._readers.values())).getDefaultReadLimit()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of an AvailableNow query: the streams' ends now."""
        for each in self._readers.values():
            each.prepareForTriggerAvailableNow()

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:  # noqa: N802
        """Return the end of the next micro-batch; `start` when there is nothing to read."""
        parts = parts_of(start, list(self._readers))
        limits = self._limits(parts, limit)
        return merged(
            # Without a share of the rows a stream stays where it is.
            part if name not in limits else self._readers[name].latestOffset(part, limits[name])
            for name, part in parts.items()
        )

    def reportLatestOffset(self) -> dict[str, object]:  # noqa: N802
        """Return the ends of the streams, for the query's progress."""
        return merged(each.reportLatestOffset() for each in self._readers.values())

    def partitions(
        self, start: dict[str, object], end: dict[str, object]
    ) -> Sequence[InputPartition]:
        """Return the ranges of a micro-batch."""
        names = list(self._readers)
        starts, ends = parts_of(start, names), parts_of(end, names)
        return [
            found
            for name, each in self._readers.items()
            for found in each.partitions(starts[name], ends[name])
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range in order, as Arrow batches; runs on an executor."""
        if isinstance(partition, Partition):
            yield from self._readers[partition.stream].read(partition)

    def stop(self) -> None:
        """Close the connections."""
        for each in self._readers.values():
            each.stop()

    def _limits(
        self, parts: dict[str, dict[str, object]], limit: ReadLimit
    ) -> dict[str, ReadLimit]:
        """Return the limit of each stream that takes part in a micro-batch.

        Rows are divided by what waits. Bytes, which are estimates, are divided in the options.
        """
        if not isinstance(limit, ReadMaxRows):
            return dict.fromkeys(parts, limit)
        backlogs = {name: self._backlog(name, part) for name, part in parts.items()}
        found = shares(limit.max_rows, backlogs)
        return {name: ReadMaxRows(rows) for name, rows in found.items() if rows}

    def _backlog(self, name: str, part: dict[str, object]) -> int:
        now = parse_offset(self._readers[name].reportLatestOffset(), stream=name)
        place = parse_offset(part, stream=name)
        waiting = now.next_seq - place.next_seq
        is_same = now.created_ns == place.created_ns and waiting >= 0
        # Of a stream that was created anew or cut off its reader says what is wrong.
        return waiting if is_same else max(waiting, 1)
