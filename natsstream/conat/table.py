"""The messages of a core stream as an Arrow table.

Law: each message is one row. `data` has the stored bytes exactly; text that cannot be written is
null, so that a message of another program never hides the others.

Needs the extra `arrow` (pyarrow, numpy).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from natsstream.conat.record import Record
from natsstream.conat.values import json_text
from natsstream.conat.views import Codec
from natsstream.errors import CodecError, ConfigError

SCHEMA = pa.schema(
    [
        pa.field("seq", pa.int64()),
        pa.field("time", pa.timestamp("ns", tz="UTC")),
        pa.field("key", pa.string()),
        pa.field("headers", pa.string()),
        pa.field("value", pa.string()),
        pa.field("data", pa.binary()),
    ]
)
"""The columns of the table."""


def table_of(records: Iterable[Record], codec: Codec) -> pa.Table:
    """Return records as a table of `SCHEMA`, one row each."""
    rows = list(records)
    columns = [
        [row.seq for row in rows],
        [row.time_ns for row in rows],
        [_text(codec.key, row) for row in rows],
        [_json(_user_headers(codec), row) for row in rows],
        [_json(codec.value, row) for row in rows],
        [row.data for row in rows],
    ]
    arrays = [pa.array(each, field.type) for each, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)], SCHEMA)


_NONE = object()


def _user_headers(codec: Codec) -> Callable[[Record], object]:
    def read(record: Record) -> object:
        user = codec.user(record)
        return _NONE if user is None else user

    return read


def _json(read: Callable[[Record], object], record: Record) -> str | None:
    """Return what is read of a record as JSON; None if JSON does not have it."""
    try:
        value = read(record)
        if value is _NONE:
            return None
        text = json_text(value)
        # JSON can escape half a surrogate pair, which is no UTF-8 otherwise.
        return text if _is_utf8(text) else json_text(value, ascii_only=True)
    except (CodecError, ConfigError):
        return None


def _text(read: Callable[[Record], str | None], record: Record) -> str | None:
    try:
        text = read(record)
    except CodecError:
        return None
    return text if text is not None and _is_utf8(text) else None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
