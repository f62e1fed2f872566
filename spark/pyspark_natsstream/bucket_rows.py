"""The work of a Spark task on a key-value bucket: its entries as Arrow batches.

Law: a read of the values now is the library's own listing: each key once, a key that is written
meanwhile too. Ranges of revisions cannot give that, as a new value has a revision behind them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from natsstream.errors import StreamRecreatedError
from pyspark_natsstream.driver import connected
from pyspark_natsstream.row_batches import ArrowColumn, row_batches, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from natsstream.blocking import KeyValue
    from natsstream.kv.entry import Entry
    from pyspark_natsstream.bucket_options import BucketOptions
    from pyspark_natsstream.plan import Partition

ENTRY_COLUMNS: Mapping[str, ArrowColumn[Entry[bytes]]] = {
    "bucket": ArrowColumn(pa.string(), lambda entry: entry.bucket),
    "key": ArrowColumn(pa.string(), lambda entry: visible(entry.key)),
    "value": ArrowColumn(pa.binary(), lambda entry: None if entry.is_deleted else entry.data),
    "revision": ArrowColumn(pa.int64(), lambda entry: entry.revision),
    "created": ArrowColumn(pa.timestamp("us", tz="UTC"), lambda entry: entry.created_ns // 1000),
    "operation": ArrowColumn(pa.string(), lambda entry: entry.operation),
}
"""The columns of an entry; `value` is null for a marker, which an empty value is not."""


def bucket_batches(
    options: BucketOptions, columns: Sequence[str], partition: Partition
) -> Iterator[pa.RecordBatch]:
    """Yield the entries of a range of revisions; without `history` those of each key now.

    Raises:
        StreamRecreatedError: The bucket was deleted and created again since the read was planned.
        NatsStreamError: No server within `reconnectTimeout`, or it refused.
    """
    opening = connected(
        options, lambda js: js.kv.get(options.bucket), wait_s=options.reconnect_timeout
    )
    with opening as kv:
        entries = _revisions if options.history else _values
        found = entries(kv, options.subjects, partition)
        yield from row_batches(found, ENTRY_COLUMNS, columns, size=lambda entry: entry.nbytes)


def _revisions(
    kv: KeyValue[bytes], filters: Sequence[str], partition: Partition
) -> Iterator[Entry[bytes]]:
    return kv.revisions(
        *filters,
        first=partition.first_seq,
        last=partition.last_seq,
        created_ns=partition.created_ns,
    )


def _values(
    kv: KeyValue[bytes], filters: Sequence[str], partition: Partition
) -> Iterator[Entry[bytes]]:
    if kv.stream.info().created_ns != partition.created_ns:
        raise StreamRecreatedError(f"bucket {kv.name} was deleted and created again")
    return kv.entries(*filters)
