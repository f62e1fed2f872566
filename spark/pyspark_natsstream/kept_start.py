"""The start of a query with a job name, kept in a key-value bucket of the same account.

Law: Spark's checkpoint does not have the start of the first micro-batch, and asks for it again
after a crash in it. The first answer is kept, and all later ones are equal to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import natsstream as ns
from natsstream.errors import KeyExistsError
from pyspark_natsstream.driver import connected
from pyspark_natsstream.offsets import Offset, parse_offset_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream.blocking import JetStream, KeyValue
    from pyspark_natsstream.read_options import ReadOptions

BUCKET = "natsstream_spark"


def kept_start(options: ReadOptions, resolve: Callable[[], Offset]) -> Offset:
    """Return the start of a query: the kept one, or one that is resolved and kept now.

    Args:
        options: The options of the read, with a job name.
        resolve: Resolves `startingOffsets`.

    Raises:
        OffsetError: The kept start is of another stream.
        NatsStreamError: There is no server, or the user may not use the bucket.
    """
    job = options.job or ""
    with connected(options, _bucket) as kv:
        entry = kv.get(job)
        if entry is None:
            start = resolve()
            try:
                kv.create(job, start.to_text().encode())
            except KeyExistsError:
                entry = kv.get(job)
            else:
                return start
        text = "" if entry is None else entry.value.decode()
        return parse_offset_text(text, stream=options.stream)


def _bucket(js: JetStream) -> KeyValue[bytes]:
    return js.kv.ensure(BUCKET).with_codec(keys=ns.Base64Keys())
