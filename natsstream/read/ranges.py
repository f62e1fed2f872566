"""A range of a stream: described first, read later, as messages or as columns.

Law: describing asks nothing and costs nothing; each iteration is a read of its own.

A range that ends when the stream does is read in two parts: what is stored as any range, and what
comes as an ordered consumer has it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import fields
from typing import TYPE_CHECKING, Literal

from natsstream._wire.headers import Headers
from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.errors import MissingExtraError, NatsStreamError, UsageError
from natsstream.iteration import Flattened, Steps
from natsstream.notebook import shown, table
from natsstream.read.ordered import OrderedConsumer
from natsstream.read.progress import ReadReport
from natsstream.read.read_events import OrderedReport
from natsstream.read.reader import RangeReader, RangeSpec, clip_messages
from natsstream.read.start_position import OrderedSpec

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from natsstream._wire.framing import FrameBlock

# Blocks are about 1 MiB; a slow server makes small ones, which are joined up to these sizes.
BATCH_ROWS_MIN = 4_096
BATCH_BYTES_MIN = 512 << 10


class StreamRange:
    """Messages of a stream from one sequence or moment to another.

    Iterate it for messages, or call `batches`, `to_arrow` or `to_pandas`. Made by `Stream.read`.
    """

    def __init__(self, api: Api, spec: RangeSpec) -> None:
        self._api = api
        self._spec = spec
        self._reader: RangeReader[list[Message]] | RangeReader[pa.RecordBatch] | None = None
        self._tail_report: OrderedReport | None = None

    @property
    def report(self) -> ReadReport:
        """Counts and gaps of the newest read of this range."""
        if self._tail_report is not None:
            return self._tail_report
        return self._reader.report if self._reader else ReadReport()

    def __aiter__(self) -> AsyncGenerator[Message]:
        """Yield each message in order.

        Cancelling a wait for the next one, as `asyncio.wait_for` does, loses none: the next call
        returns it.

        Raises:
            SequenceRangeError: The stream does not hold the range.
            StreamRecreatedError: The stream is not the one that was meant.
            StreamNotFoundError: The stream does not exist, or was deleted.
            MessagesLostError: Messages are lost and `on_loss` is "raise".
            ConfigError: A read `until_closed` of a stream that no producer can end.
            ConnectionLostError: The server did not come back within `reconnect_timeout`.
        """
        reader = self._message_reader()
        return Flattened(self._runs(reader), iter, wait=reader.wait)

    def runs(self) -> AsyncGenerator[list[Message]]:
        """Yield lists of messages in order, as they arrive together.

        Raises:
            NatsStreamError: As for single messages.

        Cost: a tenth less CPU than one message at a time. A list holds a megabyte or so.
        """
        reader = self._message_reader()
        return Steps(self._runs(reader), wait=reader.wait)

    def _message_reader(self) -> RangeReader[list[Message]]:
        return RangeReader(self._api, self._spec, clip=clip_messages)

    async def _runs(self, reader: RangeReader[list[Message]]) -> AsyncGenerator[list[Message]]:
        self._reader, self._tail_report = reader, None
        async with aclosing(reader.runs()) as runs:
            async for run in runs:
                yield run
        if reader.follows is not None:
            async with aclosing(self._tail(reader.follows)) as runs:
                async for run in runs:
                    yield run

    async def _tail(self, info: StreamInfo) -> AsyncGenerator[list[Message]]:
        """Yield what the stream stores behind a moment, until it is closed."""
        spec = self._spec
        counted = {each.name: getattr(self.report, each.name) for each in fields(ReadReport)}
        wanted = OrderedSpec(
            stream=spec.stream,
            filters=spec.filters,
            first_seq=info.state.last_seq + 1,
            created_ns=info.created_ns,
            headers_only=spec.headers_only,
            on_loss=spec.on_loss,
            control=spec.control,
            until_closed=True,
        )
        tail = OrderedConsumer(self._api, wanted, report=OrderedReport(**counted))
        self._tail_report = tail.report
        async with tail:
            async for messages in tail.batches():
                yield messages

    def batches(
        self, columns: Sequence[str] | None = None, *, time_unit: Literal["ns", "us"] = "ns"
    ) -> AsyncGenerator[pa.RecordBatch]:
        """Yield Arrow record batches in order, of about 1 MiB each.

        A read `until_closed` yields new messages as they arrive, in smaller batches.

        Args:
            columns: Names out of `natsstream.columns.COLUMNS`; None is all of them.
            time_unit: Unit of the column `time`.

        Raises:
            MissingExtraError: pyarrow or numpy is not installed.
            ConfigError: A name is no column.
            NatsStreamError: As for messages.

        Cost: under one microsecond of CPU a message of 256 bytes; memory of a few blocks.
        """
        convert = _Converter(self._spec.stream, columns, time_unit)
        reader = RangeReader(self._api, self._spec, clip=_clip_batch, convert=convert)
        return Steps(self._batches(reader, convert), wait=reader.wait)

    async def _batches(
        self, reader: RangeReader[pa.RecordBatch], convert: _Converter
    ) -> AsyncGenerator[pa.RecordBatch]:
        self._reader, self._tail_report = reader, None
        waiting: list[pa.RecordBatch] = []
        failure: NatsStreamError | None = None
        rows = size = 0
        async with aclosing(reader.runs()) as runs:
            try:
                async for batch in runs:
                    waiting.append(batch)
                    rows += batch.num_rows
                    size += batch.nbytes
                    if rows >= BATCH_ROWS_MIN or size >= BATCH_BYTES_MIN:
                        yield convert.join(waiting)
                        waiting, rows, size = [], 0, 0
            except NatsStreamError as error:
                # Waiting batches were read before it, and the error says to resume behind them.
                failure = error
        if waiting:
            yield convert.join(waiting)
        if failure is not None:
            raise failure
        if reader.follows is not None:
            async with aclosing(self._tail(reader.follows)) as runs:
                async for run in runs:
                    yield convert.messages(run)

    async def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the whole range as one Arrow table, held in memory."""
        convert = _Converter(self._spec.stream, columns, "ns")
        batches = [batch async for batch in self.batches(columns)]
        return convert.table(batches)

    async def to_pandas(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the whole range as a pandas DataFrame, held in memory.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        if importlib.util.find_spec("pandas") is None:
            raise MissingExtraError(
                "to_pandas needs pandas", hint="pip install 'natsstream[arrow]' pandas"
            )
        return (await self.to_arrow(columns)).to_pandas()

    def schema(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """Return the Arrow schema of `to_arrow`; nothing is read.

        Raises:
            MissingExtraError: pyarrow or numpy is not installed.
            ConfigError: A name is no column.
        """
        return _Converter(self._spec.stream, columns, "ns").schema

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the range to polars, DuckDB or pyarrow; only one of `natsstream.blocking` can be.

        Raises:
            UsageError: The range is async, so reading it has to be awaited.
        """
        raise UsageError(
            "an async range cannot be read as an Arrow stream",
            hint="await range.to_arrow(), or take the range of natsstream.blocking",
        )

    async def bounds(self) -> tuple[int, int]:
        """Return the first and the last sequence that a read would cover now, both inclusive.

        The last one is less than the first when there is nothing to read. Use it to split a range
        among several readers.

        Raises:
            SequenceRangeError: The stream does not hold the range.
            StreamRecreatedError: The stream is not the one that was meant.
            MessagesLostError: The range's beginning was removed and `eviction_is_loss` is set.

        Cost: one round trip, one for each time, and for `newest` what `Stream.read` says.
        """
        reader = RangeReader[list[Message]](self._api, self._spec, clip=clip_messages)
        return await reader.bounds()

    def __repr__(self) -> str:
        spec = self._spec
        first = spec.first_seq or "first" if spec.newest is None else f"newest {spec.newest}"
        bounds = f"{first} to {spec.last_seq or 'last'}"
        return f"<StreamRange {' '.join((spec.stream, bounds, *spec.filters))}>"

    def _repr_html_(self) -> str:
        """Return a table of its bounds for notebooks; no message is read."""
        spec = self._spec
        rows = [
            ("stream", spec.stream),
            ("first_seq", str(spec.first_seq or "first")),
            ("last_seq", str(spec.last_seq or "last")),
            ("filters", ", ".join(spec.filters) or "all subjects"),
        ]
        if spec.newest is not None:
            rows[1] = ("newest", str(spec.newest))
        if spec.start_time_ns is not None:
            rows.append(("start_time", shown("start_time_ns", spec.start_time_ns)))
        if spec.end_time_ns is not None:
            rows.append(("end_time", shown("end_time_ns", spec.end_time_ns)))
        return table("StreamRange", rows)


class _Converter:
    """Turns blocks into record batches of one schema; imports pyarrow only when made."""

    def __init__(
        self, stream: str, columns: Sequence[str] | None, time_unit: Literal["ns", "us"]
    ) -> None:
        try:
            from natsstream import columns as arrow  # noqa: PLC0415 - pyarrow is an extra.
        except ImportError as error:
            raise MissingExtraError(
                "columns need pyarrow and numpy", hint="pip install 'natsstream[arrow]'"
            ) from error
        self._arrow = arrow
        self._stream = stream
        wanted = arrow.COLUMNS if columns is None else columns
        self.schema: pa.Schema = arrow.message_schema(wanted, time_unit=time_unit)
        self._time_unit: Literal["ns", "us"] = time_unit

    def __call__(self, frames: FrameBlock) -> pa.RecordBatch:
        data, arrow = frames.data, self._arrow
        makers = {
            "stream": lambda: arrow.constant_column(self._stream, len(frames)),
            "subject": lambda: arrow.text_column(data, frames.subject_start, frames.subject_stop),
            "sequence": lambda: arrow.integer_column(frames.sequence),
            "time": lambda: arrow.time_column(frames.time_ns, self._time_unit),
            "headers": lambda: arrow.headers_column(
                data,
                frames.header_start,
                frames.payload_start,
                _header_pairs,
            ),
            "data": lambda: arrow.binary_column(data, frames.payload_start, frames.payload_stop),
        }
        return arrow.record_batch([makers[name]() for name in self.schema.names], self.schema)

    def messages(self, messages: Sequence[Message]) -> pa.RecordBatch:
        """Return messages as a batch."""
        from natsstream._wire.framing import block_of  # noqa: PLC0415 - numpy is an extra.

        parts = [
            (each.subject.encode("utf-8", "surrogateescape"), each.header_block, each.data)
            for each in messages
        ]
        sequences = [each.sequence for each in messages]
        return self(block_of(parts, sequences, [each.time_ns for each in messages]))

    def join(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Return the batches as one."""
        return self._arrow.join_batches(batches)

    def table(self, batches: Sequence[pa.RecordBatch]) -> pa.Table:
        """Return the batches as a table; none make an empty one."""
        return self._arrow.table(batches, self.schema)


def _header_pairs(block: bytes) -> Sequence[tuple[str, str]]:
    return Headers(block).items_all()


def _clip_batch(batch: pa.RecordBatch, count: int) -> pa.RecordBatch:
    return batch.slice(0, count)
