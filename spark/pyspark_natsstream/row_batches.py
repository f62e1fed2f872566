"""Record batches of things that are no messages, such as the entries of a bucket.

Law: a batch has exactly the columns that were chosen, and is handed over before it is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

ROWS_MAX = 4_096
"""Rows of a batch."""
BYTES_MAX = 1 << 20
"""Bytes of payload after which a batch is handed over."""

T = TypeVar("T")

# Half of a surrogate pair is in a text that was no UTF-8, and Arrow has no place for it.
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


@dataclass(frozen=True, slots=True)
class ArrowColumn(Generic[T]):
    """A column of record batches.

    Attributes:
        kind: Its type, the one that Spark has for it.
        value: Returns its value of a thing.
    """

    kind: pa.DataType
    value: Callable[[T], object]


def row_batches(
    things: Iterable[T],
    columns: Mapping[str, ArrowColumn[T]],
    chosen: Sequence[str],
    *,
    size: Callable[[T], int],
) -> Iterator[pa.RecordBatch]:
    """Yield things as record batches.

    Args:
        things: The things, one a row.
        columns: The columns that there are.
        chosen: Names of those to build, in this order.
        size: Returns how many bytes of payload a thing has.

    Cost: one batch in memory, and the thing that fills it.
    """
    built = [columns[name] for name in chosen]
    schema = pa.schema([pa.field(name, columns[name].kind) for name in chosen])
    rows: list[T] = []
    held = 0

    def batch() -> pa.RecordBatch:
        arrays = [pa.array([each.value(row) for row in rows], each.kind) for each in built]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    for thing in things:
        rows.append(thing)
        held += size(thing)
        if len(rows) >= ROWS_MAX or held >= BYTES_MAX:
            yield batch()
            rows, held = [], 0
    if rows:
        yield batch()


def visible(text: str) -> str:
    """Return a text with U+FFFD for what was no UTF-8."""
    return text if text.isascii() else text.translate(_SURROGATES)
