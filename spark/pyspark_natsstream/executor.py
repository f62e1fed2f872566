"""The work of a Spark task: reads one range of messages as Arrow batches.

Law: a task keeps no state. Spark may run it again, elsewhere, or twice at once. Spark drops the
rows of a failed attempt, so a range may be read again.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from natsstream.errors import MessagesLostError, StreamRecreatedError
from pyspark_natsstream.bucket_options import BucketOptions
from pyspark_natsstream.bucket_rows import bucket_batches
from pyspark_natsstream.decoding import PayloadDecoder
from pyspark_natsstream.driver import open_stream
from pyspark_natsstream.plan import Partition

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from pyspark_natsstream.read_options import ReadOptions

_HINT = "set failOnDataLoss=false to continue without these messages, with a warning"

_log = logging.getLogger("pyspark_natsstream")


def read_partition(
    options: ReadOptions, schema: StructType, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Read a range in order.

    Args:
        options: The options of the read; those of a bucket yield its entries.
        schema: Spark's schema: the columns to build.
        partition: The range. Spark passes a plain `InputPartition` for a batch without ranges;
            it yields nothing.

    Yields:
        Record batches of Spark's schema.

    Raises:
        MalformedPayloadError: A payload is malformed, and the mode is `FAILFAST`.
        IntegrityError: The stream was created anew or has lost messages of the range, and
            `failOnDataLoss` is true.
        NatsStreamError: No server within `reconnectTimeout`, or it refused.
    """
    if not isinstance(partition, Partition) or partition.first_seq > partition.last_seq:
        return
    with _explained_loss(partition, fail=options.fail_on_data_loss):
        if isinstance(options, BucketOptions):
            yield from bucket_batches(options, schema.fieldNames(), partition)
        else:
            yield from _message_batches(options, schema, partition)


def _message_batches(
    options: ReadOptions, schema: StructType, partition: Partition
) -> Iterator[pa.RecordBatch]:
    # The driver has just reached the server, so an outage is worth a wait.
    with open_stream(options, wait_s=options.reconnect_timeout) as stream:
        reading = stream.read(
            first_seq=partition.first_seq,
            last_seq=partition.last_seq,
            filters=partition.subjects or options.subjects,
            created_ns=partition.created_ns,
            on_loss="raise" if options.fail_on_data_loss else "report",
            eviction_is_loss=True,
            max_pending_bytes=options.max_pending_bytes,
            control=options.control,
        )
        decode = None
        if options.data_format != "bytes" and "data" in schema.fieldNames():
            decode = PayloadDecoder(options, schema)
        columns = schema.fieldNames() if decode is None else decode.columns
        for batch in reading.batches(columns, time_unit="us"):
            yield batch if decode is None else decode(batch)
        if decode is not None and decode.dropped:
            _log.warning("%s: %s", partition.label, decode.told())
        if reading.report.lost:
            _log.warning("%s: %s messages are gone", partition.label, reading.report.lost)


@contextmanager
def _explained_loss(partition: Partition, *, fail: bool) -> Generator[None]:
    """Raise the loss of messages with the range and the option, or log it."""
    try:
        yield
    except StreamRecreatedError as error:
        message = f"{partition.label}: {error.message}"
        if fail:
            raise StreamRecreatedError(message, hint=_HINT) from error
        _log.warning("%s", message)
    except MessagesLostError as error:
        raise MessagesLostError(
            f"{partition.label}: {error.message}",
            first_seq=error.first_seq,
            last_seq=error.last_seq,
            hint=_HINT,
        ) from error
