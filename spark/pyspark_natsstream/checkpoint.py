"""The start of a query, kept beside Spark's checkpoint, and the check of its table.

Law: Spark's checkpoint holds the end of each batch but not the start of the first. After a crash
before the first commit, Spark requests the start again, and `latest` would then skip messages. So
the start is resolved once and kept in the checkpoint's folder, on any file system that Spark can
write to.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from natsstream.errors import ConfigError
from pyspark_natsstream.driver import StreamWatch
from pyspark_natsstream.folder import Folder
from pyspark_natsstream.lake_tables import BATCHES_FOLDER
from pyspark_natsstream.offsets import Offset, parse_offset_text
from pyspark_natsstream.plan import resume, start_of
from pyspark_natsstream.read_options import Position, ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_natsstream.lake_tables import LakeTable

START_FILE = "natsstream/start.json"
_SINK_LOG = "_spark_metadata"
_DELTA_LOG = "_delta_log"


def pin_start(spark: SparkSession, options: ReadOptions, checkpoint: str) -> ReadOptions:
    """Return the options with the start of the query as a sequence, the same at every restart.

    Args:
        spark: A session with a driver in this process.
        options: The user's options; `startingOffsets` applies to the first start.
        checkpoint: Folder of the checkpoint, as Spark takes it (a path or a URL).

    Raises:
        OffsetError: The file is from another stream or version.
        IntegrityError: The stream was created anew before the first batch, and `failOnDataLoss` is
            true.
        NatsStreamError: There is no server or no stream, or the stream cannot be read.
    """
    folder = Folder(spark, checkpoint)
    text = folder.read(START_FILE)
    if folder.has_entries("offsets"):
        # After the first batch the query's own offsets count.
        start = None if text is None else parse_offset_text(text, stream=options.stream)
    else:
        start = _resolve(options, text)
        if start.to_text() != text:
            folder.write(START_FILE, start.to_text())
    if start is None:
        return options
    return replace(options, starting_offsets=Position("first_seq", start.next_seq))


def check_table(spark: SparkSession, out: str, checkpoint: str) -> None:
    """Refuse a table of files that another checkpoint has written.

    Spark's sink skips micro-batches whose numbers its log has already. The first ones of a new
    checkpoint would be read, and stored nowhere.

    Raises:
        ConfigError: Table and checkpoint do not belong together.
    """
    table, kept = Folder(spark, out), Folder(spark, checkpoint)
    written, begun = _last(table.names(_SINK_LOG)), _last(kept.names("offsets"))
    if written > begun:
        raise ConfigError(
            f"the query of checkpoint {checkpoint} has begun {begun + 1} micro-batches, and table "
            f"{out} has {written + 1}: it was written with another checkpoint",
            hint="give that checkpoint; or another table, which then begins at startingOffsets",
        )
    if written < 0 <= _last(kept.names("commits")):
        raise ConfigError(
            f"the query of checkpoint {checkpoint} has written micro-batches, and table {out} has "
            "none of them",
            hint="restore the table; or give a new checkpoint, which begins at startingOffsets",
        )
    held = table.names()
    others = [name for name in held if not name.startswith(("_", "."))]
    # A query makes its log before its files: with an empty one they are of a first micro-batch that
    # was interrupted, and Spark shows none of them.
    if others and _SINK_LOG not in held:
        raise ConfigError(
            f"folder {out} holds {others[0]}, which no streaming query has written",
            detail="Spark does not show such files once a query writes there",
            hint="give an empty folder",
        )


def check_delta_folder(spark: SparkSession, out: str) -> None:
    """Refuse the folder of a Delta table that is to be made, if it holds other files.

    The folder of a first micro-batch that failed before its commit is allowed.

    Raises:
        ConfigError: It holds others, as those of a Parquet table.
    """
    names = Folder(spark, out).names()
    if _DELTA_LOG in names:
        return
    others = [each for each in names if not each.startswith(("_", ".")) and each != BATCHES_FOLDER]
    if others:
        raise ConfigError(
            f"folder {out} holds {min(others)}, which is of no Delta table",
            hint="give the folder of a Delta table, or an empty one",
        )


def check_lake_table(
    spark: SparkSession, table: LakeTable, out: str, checkpoint: str, stream: str
) -> None:
    """Refuse a lake table that another checkpoint has written, or that lacks what this one wrote.

    Streams may share a table. A second query of one stream would add its messages again.

    Raises:
        ConfigError: Table and checkpoint do not belong together.
    """
    kept = Folder(spark, checkpoint)
    text = kept.read("metadata")
    query_id: str | None = None if text is None else json.loads(text)["id"]
    if table.is_of_other_query(stream, query_id):
        raise ConfigError(
            f"table {out} has messages of stream {stream} that the query of another checkpoint "
            f"than {checkpoint} has written",
            hint="give that checkpoint; or another table, which then begins at startingOffsets",
        )
    if query_id is None:
        return
    done, written = _last(kept.names("commits")), table.last_batch(query_id)
    if written < done:
        raise ConfigError(
            f"the query of checkpoint {checkpoint} has written {done + 1} micro-batches, and "
            f"table {out} has {written + 1} of them",
            hint="restore the table; or give a new checkpoint and another table",
        )


def committed(spark: SparkSession, checkpoint: str, stream: str) -> Offset | None:
    """Return the end of the last micro-batch that a query of one stream has committed, or None.

    Raises:
        OffsetError: The checkpoint is of another stream or version.
    """
    kept = Folder(spark, checkpoint)
    text = kept.read(f"offsets/{_last(kept.names('commits'))}")
    # Spark's version and its own settings come before the offset.
    return None if text is None else parse_offset_text(text.splitlines()[-1], stream=stream)


def has_begun_batch(spark: SparkSession, checkpoint: str) -> bool:
    """Return True if a micro-batch has begun that is not committed, as after a crash."""
    kept = Folder(spark, checkpoint)
    return _last(kept.names("offsets")) > _last(kept.names("commits"))


def _last(names: list[str]) -> int:
    """Return the largest number of a micro-batch in Spark's log; -1 for none."""
    numbers = [name.partition(".")[0] for name in names if not name.startswith(".")]
    return max((int(each) for each in numbers if each.isdecimal()), default=-1)


def _resolve(options: ReadOptions, text: str | None) -> Offset:
    """Return the start: the kept one, or the options' start in the stream as it is now."""
    with closing(StreamWatch(options)) as watch:
        state = watch.state()
        if text is None:
            return start_of(options, state, watch)
        kept = watch.taken_over(parse_offset_text(text, stream=options.stream), state)
        kept = watch.past_records(kept, state)
        resumed = resume(kept, state, fail_on_data_loss=options.fail_on_data_loss)
        return state.offset(resumed.next_seq)
