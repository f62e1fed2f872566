"""A streaming read: `spark.readStream.format("nats")`.

Law: the checkpoint holds all state but three things. The reader keeps the query's start, since
Spark requests it twice and both answers must be equal. It keeps the end of an AvailableNow query,
and for a tenth of a second the stream's state.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from natsstream.errors import ConfigError
from pyspark_natsstream.driver import STATE_AGE_MAX_S, StreamWatch
from pyspark_natsstream.executor import read_partition
from pyspark_natsstream.kept_start import kept_start
from pyspark_natsstream.offsets import Offset, parse_offset
from pyspark_natsstream.plan import Limit, StreamState, advance, ranges_between, start_of
from pyspark_natsstream.read_options import LATEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from pyspark_natsstream.read_options import ReadOptions

_UNKEPT = (
    "startingOffsets=latest: a restart before the first micro-batch has ended skips what came until"
    " then; the option job keeps the start"
)

_log = logging.getLogger("pyspark_natsstream")


class NatsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream in micro-batches; only Spark's checkpoint keeps the offsets.

    The method names are Spark's.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._began: Offset | None = None
        self._target: Offset | None = None
        # Made on first use: Spark pickles a second reader that never needs it.
        self._watch: StreamWatch | None = None

    def initialOffset(self) -> dict[str, object]:  # noqa: N802
        """Return the start of a query without a checkpoint; every call returns the same.

        Raises:
            SequenceRangeError: `startingOffsets` is beyond the end of the stream.
            NatsStreamError: There is no server or no stream, or the stream cannot be read.
        """
        if self._began is None:
            options = self._options
            if options.job is not None:
                self._began = kept_start(options, self._start)
            else:
                self._began = self._start()
                if options.starting_offsets == LATEST:
                    _warn(_UNKEPT)
        return self._began.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the options' limit; Spark has no limit with two parts, so bytes come later."""
        if self._options.max_messages_per_trigger is not None:
            return ReadMaxRows(self._options.max_messages_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of an AvailableNow query: the stream's end now."""
        state = self._watched().state()
        self._target = state.offset(state.stop_seq)

    def latestOffset(  # noqa: N802
        self, start: dict[str, object], limit: ReadLimit
    ) -> dict[str, object]:
        """Return the end of the next micro-batch; `start` when there is nothing to read.

        Messages stored in the last tenth of a second may be missing.

        Raises:
            OffsetError: `start` is from another source, version or stream.
            IntegrityError: Messages were lost before they were read.
            NatsStreamError: No answer within `reconnectTimeout`, or the server refused.
        """
        state = self._state()
        offset = self._offset(start, state)
        end, warning = advance(
            self._watched().past_records(offset, state),
            state,
            self._limit(limit),
            target=self._target,
            fail_on_data_loss=self._options.fail_on_data_loss,
        )
        _warn(warning)
        return end.to_json()

    def reportLatestOffset(self) -> dict[str, object]:  # noqa: N802
        """Return the end of the stream, for the query's progress."""
        state = self._state()
        return state.offset(state.stop_seq).to_json()

    def partitions(
        self, start: dict[str, object], end: dict[str, object]
    ) -> Sequence[InputPartition]:
        """Return the ranges of a micro-batch.

        Raises:
            OffsetError: An offset is from another source, version or stream.
            IntegrityError: Messages were lost before they were read.
            NatsStreamError: No answer within `reconnectTimeout`, or the server refused.
        """
        watch = self._watched()
        state = watch.state()
        planned = self._offset(start, state)
        # Not split from where it begins now: a sink that repeats the batch knows ranges by number.
        found, warning = ranges_between(
            watch.past_records(planned, state),
            self._offset(end, state),
            state,
            self._options,
            planned_seq=planned.next_seq,
        )
        _warn(warning)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range in order, as Arrow batches; runs on an executor."""
        return read_partition(self._options, self._schema, partition)

    def stop(self) -> None:
        """Close the connection; Spark may kill the process without this call."""
        if self._watch is not None:
            self._watch.close()

    def _start(self) -> Offset:
        watch = self._watched()
        return start_of(self._options, watch.state(), watch)

    def _offset(self, found: object, state: StreamState) -> Offset:
        offset = parse_offset(found, stream=self._options.stream)
        return self._watched().taken_over(offset, state)

    def _watched(self) -> StreamWatch:
        if self._watch is None:
            self._watch = StreamWatch(self._options)
        return self._watch

    def _state(self) -> StreamState:
        return self._watched().state(age_max_s=STATE_AGE_MAX_S)

    def _limit(self, limit: ReadLimit) -> Limit:
        """Return Spark's limit combined with the options' limits."""
        sequences_max = self._options.max_messages_per_trigger
        bytes_max = self._options.max_bytes_per_trigger
        match limit:
            case ReadAllAvailable():
                return Limit()
            case ReadMaxRows(max_rows=rows):
                return Limit(rows, bytes_max)
            case ReadMaxBytes(max_bytes=size):
                return Limit(sequences_max, size)
            case ReadMinRows(min_rows=rows):
                return Limit(sequences_max, bytes_max, rows)
            case _:
                raise ConfigError(f"a stream cannot be read with the limit {limit!r}")


def _warn(warning: str) -> None:
    if warning:
        _log.warning("%s", warning)
