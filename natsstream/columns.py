"""Arrow columns over the bytes of received messages.

Law: a column holds exactly the stored bytes; text that is not UTF-8 is replaced visibly (U+FFFD),
never passed on as broken Arrow.

Needs the extra `arrow` (pyarrow, numpy).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from natsstream.arguments import check_choice, check_texts, did_you_mean
from natsstream.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"
ParseHeaders: TypeAlias = Callable[[bytes], Iterable[tuple[str, str]]]

COLUMNS = ("stream", "subject", "sequence", "time", "headers", "data")
"""Every column that a message has, in the order of the table."""

# Spaces around a header value are trimmed in this many vector steps; longer runs go the plain way.
_TRIM_STEPS = 4
_LF, _CR, _COLON, _SPACE, _TAB = 10, 13, 58, 32, 9
_BEGIN, _END = b"NATS/1.0", b"\r\n\r\n"

_HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.string())]))


def message_schema(
    columns: Sequence[str] = COLUMNS, *, time_unit: Literal["ns", "us"] = "ns"
) -> pa.Schema:
    """Return the Arrow schema of messages.

    Args:
        columns: Names out of `COLUMNS`, in the order wanted.
        time_unit: Unit of `time`; Spark takes "us" only.

    Returns:
        `stream` string, `subject` string, `sequence` int64, `time` timestamp in UTC, `headers`
        list of struct (key, value) in wire order, `data` binary. A header block that is none stands
        whole under the empty key.

    Raises:
        ConfigError: A name is no column, or there is none, or one text is given for a list; the
            unit is another one.
    """
    check_choice(time_unit, "time_unit", ("ns", "us"))
    types: dict[str, pa.DataType] = {
        "stream": pa.string(),
        "subject": pa.string(),
        "sequence": pa.int64(),
        "time": pa.timestamp(time_unit, tz="UTC"),
        "headers": _HEADERS,
        "data": pa.binary(),
    }
    names = check_texts(columns, "columns")
    if not names:
        raise ConfigError("no columns", hint="leave columns out to have all of them")
    for name in names:
        if name not in types:
            hint = f"{did_you_mean(name, types)}columns are {', '.join(COLUMNS)}"
            raise ConfigError(f"no column {name!r}", hint=hint)
    return pa.schema([pa.field(name, types[name]) for name in names])


def binary_column(data: bytes, starts: Ints, stops: Ints) -> pa.Array:
    """Return the bytes between each pair of positions, which must not overlap and must ascend."""
    return _between(data, starts, stops, pa.binary())


def text_column(data: bytes, starts: Ints, stops: Ints) -> pa.Array:
    """Return the text between each pair of positions; what is not UTF-8 becomes U+FFFD."""
    raw = _between(data, starts, stops, pa.binary())
    values = raw.buffers()[2]
    if not len(raw) or values is None or memoryview(values).tobytes().isascii():
        return raw.view(pa.string())
    texts: list[bytes] = raw.to_pylist()
    return pa.array([text.decode("utf-8", "replace") for text in texts], pa.string())


def time_column(time_ns: Ints, time_unit: Literal["ns", "us"]) -> pa.Array:
    """Return Unix nanoseconds as UTC timestamps; microseconds are cut, not rounded."""
    values = time_ns if time_unit == "ns" else time_ns // 1000
    return _numbers(values, pa.timestamp(time_unit, tz="UTC"))


def headers_column(data: bytes, starts: Ints, stops: Ints, parse: ParseHeaders) -> pa.Array:
    """Return each message's headers as a list of (key, value) in wire order.

    Args:
        data: The block.
        starts: First byte of each header block.
        stops: Offset after it; equal to the start where the message has no headers.
        parse: Reads one header block the plain way, for blocks with lines that are unusual.
    """
    has = stops > starts
    if not has.any():
        lists = np.zeros(len(starts) + 1, np.int32)
        return _list_of_pairs(lists, constant_column("", 0), constant_column("", 0))
    lines = _header_lines(data, starts[has], stops[has])
    if lines is None:
        return _headers_in_order(data, starts, stops, parse)
    owner, key_start, key_stop, value_start, value_stop = lines
    counts = np.zeros(len(starts), np.int32)
    counts[has] = np.bincount(owner, minlength=int(has.sum()))
    lists = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(counts, out=lists[1:])
    keys = text_column(data, key_start, key_stop)
    return _list_of_pairs(lists, keys, text_column(data, value_start, value_stop))


def integer_column(values: Ints) -> pa.Array:
    """Return integers as they are."""
    return _numbers(values, pa.int64())


def constant_column(text: str, count: int) -> pa.Array:
    """Return one text repeated."""
    data = text.encode()
    offsets = np.arange(count + 1, dtype=np.int32) * len(data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data * count)]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def record_batch(arrays: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Return columns as one record batch."""
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def join_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches of one schema as one; a single one is not copied."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def table(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return batches as a table."""
    return pa.Table.from_batches(batches, schema=schema)


def _between(data: bytes, starts: Ints, stops: Ints, kind: pa.DataType) -> pa.Array:
    # One Arrow array over the block whose every other item is wanted; `take` copies those in C.
    count = len(starts)
    if not count:
        return constant_column("", 0).view(kind)
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2] = starts
    offsets[1::2] = stops
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    spread = pa.Array.from_buffers(kind, 2 * count - 1, buffers)
    return spread.take(_numbers(np.arange(0, 2 * count - 1, 2, dtype=np.int32), pa.int32()))


def _numbers(values: NDArray[np.int64] | NDArray[np.int32], kind: pa.DataType) -> pa.Array:
    # Neither `pa.array` of a numpy array nor `pa.scalar`: both import pandas where it is installed,
    # which costs a process 0.7 s. A test watches that.
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [None, buffer])


def _list_of_pairs(offsets: NDArray[np.int32], keys: pa.Array, values: pa.Array) -> pa.Array:
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(_HEADERS.value_type))
    return pa.ListArray.from_arrays(_numbers(offsets, pa.int32()), pairs, type=_HEADERS)


def _headers_in_order(data: bytes, starts: Ints, stops: Ints, parse: ParseHeaders) -> pa.Array:
    rows: list[list[dict[str, str]]] = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        pairs = parse(data[start:stop]) if stop > start else ()
        rows.append([{"key": _clean(key), "value": _clean(value)} for key, value in pairs])
    return pa.array(rows, _HEADERS)


def _clean(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _header_lines(
    data: bytes, starts: Ints, stops: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints] | None:
    """Find owner, key and value of each header line; None where the plain way is needed."""
    array = np.frombuffer(data, np.uint8)[: int(stops[-1])]
    if not _have_usual_ends(data, starts, stops):
        return None
    feeds = np.flatnonzero(array == _LF)
    owner = np.searchsorted(starts, feeds, side="right") - 1
    inside = (owner >= 0) & (feeds < stops[np.maximum(owner, 0)])
    feeds, owner = feeds[inside], owner[inside]
    # Every block has two lines at least, its status line and the empty one at its end.
    is_first = np.diff(owner, prepend=-1) != 0
    is_last = np.diff(owner, append=len(starts)) != 0
    begin = np.append(0, feeds[:-1] + 1)
    is_empty = ~is_first & (feeds - begin == 1)
    if (array[feeds - 1] != _CR).any() or (is_empty != is_last).any():
        return None
    kept = ~(is_first | is_last)
    owner, begin, end = owner[kept], begin[kept], feeds[kept] - 1
    colons = np.append(np.flatnonzero(array == _COLON), len(array))
    colon = colons[np.searchsorted(colons, begin)]
    if ((colon >= end) | (colon == begin)).any():
        return None
    value_start, value_stop, is_tight = _trim(array, colon + 1, end)
    return (owner, begin, colon, value_start, value_stop) if is_tight else None


def _have_usual_ends(data: bytes, starts: Ints, stops: Ints) -> bool:
    """Return True if every block begins with the version and ends with an empty line."""
    if (stops - starts < len(_BEGIN) + len(_END)).any():
        return False
    # Views with an overlapping item at each offset: one look-up compares a whole text.
    begins: NDArray[np.uint64] = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    ends: NDArray[np.uint32] = np.ndarray((len(data) - 3,), "<u4", data, strides=(1,))
    is_begun = begins[starts] == int.from_bytes(_BEGIN, "little")
    is_ended = ends[stops - len(_END)] == int.from_bytes(_END, "little")
    return bool(is_begun.all() and is_ended.all())


def _trim(array: NDArray[np.uint8], starts: Ints, stops: Ints) -> tuple[Ints, Ints, bool]:
    """Move both ends over blanks, a few steps; the last value is True if none is left."""
    for _ in range(_TRIM_STEPS):
        leads = (starts < stops) & _is_blank(array[np.minimum(starts, len(array) - 1)])
        trails = (starts < stops - leads) & _is_blank(array[stops - 1])
        if not (leads.any() or trails.any()):
            return starts, stops, True
        starts, stops = starts + leads, stops - trails
    return starts, stops, False


def _is_blank(values: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return (values == _SPACE) | (values == _TAB)
