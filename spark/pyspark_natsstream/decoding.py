"""Decodes the column `data` of record batches.

Law: batches have Spark's schema exactly, and each malformed payload raises, is counted or is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from natsstream.arguments import counted, described
from pyspark_natsstream.json_columns import json_columns
from pyspark_natsstream.payloads import (
    FORMAT_NAMES,
    MALFORMED,
    MalformedPayloadError,
    payload_decoder,
)
from pyspark_natsstream.schema import CORRUPT_RECORD

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from pyspark_natsstream.read_options import ReadOptions


_PARTS = 16
"""A batch with payloads that need Python is decoded in so many parts: most have none of them."""


class PayloadDecoder:
    """Decodes the batches of one range, in order.

    Args:
        options: The options of the read; `dataFormat` is not `bytes`.
        schema: Spark's schema, with a column `data`.

    Attributes:
        columns: The columns that a batch to decode has.
        dropped: Messages that were left out so far.

    Cost: for JSON of four fields a microsecond of CPU where Arrow can read it (`json_columns`), 6
    where it needs Python, and 2.5 for MessagePack; a batch of text is checked as a whole.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        kind = schema["data"].dataType
        self._decode = payload_decoder(options.data_format, kind)
        self._read = json_columns(kind) if options.data_format == "json" else None
        self._schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        # An error names the message, also where the schema does not choose these.
        wanted = dict.fromkeys(["subject", "sequence", *schema.fieldNames()])
        self.columns = [name for name in wanted if name != CORRUPT_RECORD]
        self.dropped = 0
        self._first: MalformedPayloadError | None = None

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of Spark's schema.

        Raises:
            MalformedPayloadError: A payload is malformed, and the mode is `FAILFAST`.
        """
        decoded = self._at_once(batch)
        if decoded is not None:
            return decoded
        if self._read is None or not batch.num_rows:
            return self._one_by_one(batch)
        size = batch.num_rows // _PARTS + 1
        parts: list[pa.RecordBatch] = []
        for start in range(0, batch.num_rows, size):
            part = batch.slice(start, size)
            decoded = self._at_once(part)
            parts.append(self._one_by_one(part) if decoded is None else decoded)
        return pa.concat_batches(parts)

    def _at_once(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return a batch whose payloads are all well-formed, None if that cannot be told."""
        data = batch.column("data")
        try:
            if self._options.data_format == "text":
                return self._batch(batch, data.cast(pa.string()), {})
        except ValueError:  # Some payload is no UTF-8.
            return None
        found = None if self._read is None else self._read(data.to_pylist())
        return None if found is None else self._batch(batch, found, {})

    def _one_by_one(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        payloads = cast("list[bytes]", batch.column("data").to_pylist())
        values: list[object] = []
        malformed: dict[int, bytes] = {}
        for row, payload in enumerate(payloads):
            try:
                values.append(self._decode(payload))
            except MALFORMED as error:
                values.append(None)
                malformed[row] = payload
                self._note(batch, row, payload, error)
        data = pa.array(values, self._schema.field("data").type)
        decoded = self._batch(batch, data, malformed)
        if not malformed or self._options.mode == "PERMISSIVE":
            return decoded
        self.dropped += len(malformed)
        return decoded.filter(pa.array([row not in malformed for row in range(len(payloads))]))

    def told(self) -> str:
        """Return what was left out, for a log."""
        left_out = counted(self.dropped, "message")
        return f"left out {left_out} with malformed payloads; the first: {self._first}"

    def _note(self, batch: pa.RecordBatch, row: int, payload: bytes, error: Exception) -> None:
        """Keep the first error, or raise it if the mode is `FAILFAST`."""
        if self._first is not None:
            return
        sequence = cast("int", batch.column("sequence")[row].as_py())
        subject = cast("str", batch.column("subject")[row].as_py())
        stream = self._options.stream
        self._first = MalformedPayloadError(
            f"sequence {sequence} of stream {stream}, subject {subject}: the payload is not "
            f"{FORMAT_NAMES[self._options.data_format]}: "
            f"{described(payload, with_type=False)}",
            stream=stream,
            subject=subject,
            sequence=sequence,
            detail=str(error),
        )
        if self._options.mode == "FAILFAST":
            raise self._first from error

    def _batch(
        self, batch: pa.RecordBatch, data: pa.Array, malformed: dict[int, bytes]
    ) -> pa.RecordBatch:
        def column(name: str) -> pa.Array:
            if name == CORRUPT_RECORD:
                return pa.array([malformed.get(row) for row in range(len(data))], pa.binary())
            return data if name == "data" else batch.column(name)

        arrays = [column(name) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
