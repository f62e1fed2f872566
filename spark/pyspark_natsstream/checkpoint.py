"""The start of a query, kept beside Spark's checkpoint.

Law: Spark's checkpoint holds the end of each batch but not the start of the first. After a crash
before the first commit, Spark requests the start again, and `latest` would then skip messages. So
the start is resolved once and kept in the checkpoint's folder, on any file system that Spark can
write to.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_natsstream.driver import StreamWatch
from pyspark_natsstream.offsets import Offset, parse_offset_text
from pyspark_natsstream.plan import resume, start_of
from pyspark_natsstream.read_options import Position, ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_FILE = "natsstream/start.json"


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
    folder = _Folder(spark, checkpoint)
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


def _resolve(options: ReadOptions, text: str | None) -> Offset:
    """Return the start: the kept one, or the options' start in the stream as it is now."""
    with closing(StreamWatch(options)) as watch:
        state = watch.state()
        if text is None:
            return start_of(options, state, watch)
        kept = watch.past_records(parse_offset_text(text, stream=options.stream), state)
        resumed = resume(kept, state, fail_on_data_loss=options.fail_on_data_loss)
        return state.offset(resumed.next_seq)


class _Folder:
    """A folder on any file system that Spark knows, through the JVM's Hadoop client."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        # Spark has no public API for file systems. The JVM's objects have no types.
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm  # noqa: SLF001
        hadoop: Any = context._jsc.hadoopConfiguration()  # noqa: SLF001
        self._folder: Any = self._jvm.org.apache.hadoop.fs.Path(folder)
        self._files: Any = self._folder.getFileSystem(hadoop)

    def read(self, name: str) -> str | None:
        """Return the text of a file, or None."""
        path = self._path(name)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a file as a whole: a reader finds the old file, the new one, or none."""
        path, draft = self._path(name), self._path(f"{name}.tmp")
        stream = self._files.create(draft, True)  # noqa: FBT003 - Java has no names: overwrite.
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()
        self._files.delete(path, False)  # noqa: FBT003 - Not recursive.
        if not self._files.rename(draft, path):
            raise OSError(f"{draft.toString()} cannot be renamed to {path.toString()}")

    def has_entries(self, name: str) -> bool:
        """Return True if a folder exists and is not empty."""
        path = self._path(name)
        return bool(self._files.exists(path)) and len(self._files.listStatus(path)) > 0

    def _path(self, name: str) -> Any:  # A Java object.
        return self._jvm.org.apache.hadoop.fs.Path(self._folder, name)
