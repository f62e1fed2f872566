"""The start of a query with a job name, kept in a key-value bucket of the same account.

Law: Spark's checkpoint does not have the start of the first micro-batch, and asks for it again
after a crash in it. The first answer is kept, and all later ones are equal to it.
"""

from __future__ import annotations

import logging
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

_log = logging.getLogger("pyspark_natsstream")


def kept_start(options: ReadOptions, resolve: Callable[[], Offset]) -> Offset:
    """Return the start of a query: the kept one, or one that is resolved and kept now.

    Args:
        options: The options of the read, with a job name. Its stream, `subjects` and
            `startingOffsets` are a part of the key.
        resolve: Resolves `startingOffsets`.

    Raises:
        OffsetError: A newer version of this source has kept the start.
        NatsStreamError: There is no server, or the user may not use the bucket.
    """
    key = f"{options.job} {options.stream} {','.join(options.subjects)} {options.starting_offsets}"
    with connected(options, _bucket) as kv:
        entry = kv.get(key)
        if entry is None:
            start = resolve()
            try:
                kv.create(key, start.to_text().encode())
            except KeyExistsError:
                entry = kv.get(key)
            else:
                return start
        text = "" if entry is None else entry.value.decode()
        _log.info("query %s begins where it began at first: %s", options.job, text)
        return parse_offset_text(text, stream=options.stream)


def _bucket(js: JetStream) -> KeyValue[bytes]:
    return js.kv.ensure(BUCKET).with_codec(keys=ns.Base64Keys())
