"""A batch read: `spark.read.format("nats")`.

Law: Spark keeps the plan, so the first action on a DataFrame fixes `endingOffsets=latest`. A second
action reads the same ranges, even if the stream has grown.
"""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader

from pyspark_natsstream.driver import StreamWatch
from pyspark_natsstream.executor import read_partition
from pyspark_natsstream.plan import ranges_between, start_of, stop_of
from pyspark_natsstream.predicates import Bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import Filter, InputPartition
    from pyspark.sql.types import StructType

    from pyspark_natsstream.read_options import ReadOptions

_log = logging.getLogger("pyspark_natsstream")


class NatsReader(DataSourceReader):
    """Reads a stream, or a part of it, once."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._bounds = Bounds()

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges to read.

        Raises:
            IntegrityError: Messages from `startingOffsets` on are gone.
            NatsStreamError: There is no server or no stream, or the stream cannot be read.
        """
        with closing(StreamWatch(self._options)) as watch:
            state = watch.state()
            stop = stop_of(self._options, state, watch)
            start = start_of(self._options, state, watch, stop_seq=stop.next_seq)
            start, stop = self._bounds.narrowed(start, stop, state, watch)
            start = watch.past_records(start, state)
            subjects: tuple[str, ...] | None = self._options.subjects
            if self._bounds.subjects:
                subjects = self._bounds.filtered(subjects, watch.hidden_subjects())
        if subjects is None:
            return []
        found, warning = ranges_between(start, stop, state, self._options)
        if warning:
            _log.warning("%s", warning)
        return [replace(each, subjects=subjects) for each in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range in order, as Arrow batches."""
        return read_partition(self._options, self._schema, partition)


class PushdownReader(NatsReader):
    """Reads only what the filters of the query can match."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's.
        """Take the filters, and return all of them for Spark to evaluate."""
        self._bounds = Bounds.of(filters)
        return filters
