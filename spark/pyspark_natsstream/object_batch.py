"""A batch read of an object bucket: one row an object, as Spark's `binaryFile` has files.

Law: a row is one version of an object. Bytes are handed over only when the library's reader has
checked them against the size, the chunks and the SHA-256 digest of the very info in the row.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from natsstream.errors import (
    ConfigError,
    NatsStreamError,
    ObjectChangedError,
    ObjectNotFoundError,
    StreamRecreatedError,
)
from natsstream.objects.reader import READS_MAX
from pyspark_natsstream.driver import connected
from pyspark_natsstream.object_options import CONTENT_BYTES_MAX, ObjectOptions
from pyspark_natsstream.row_batches import ArrowColumn, row_batches, visible
from pyspark_natsstream.schema import CONTENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from natsstream.blocking import ObjectStore
    from natsstream.objects.info import ObjectInfo


class ObjectRow(NamedTuple):
    """A row of the table.

    Attributes:
        info: The object's info.
        content: Its bytes; for a link those of its target. None if they are not read, are more
            than `maxObjectSize`, or if the link leads to no object.
    """

    info: ObjectInfo
    content: bytes | None = None


@dataclass(frozen=True)
class ObjectPartition(InputPartition):
    """The objects of one Spark task.

    Attributes:
        created_ns: When the bucket was created, in Unix nanoseconds; identifies it.
        names: Names of the objects whose content is read; None for the infos of all objects.
    """

    created_ns: int
    names: tuple[str, ...] | None = None


_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.string())])

OBJECT_COLUMNS: Mapping[str, ArrowColumn[ObjectRow]] = {
    "path": ArrowColumn(pa.string(), lambda row: row.info.name),
    "modificationTime": ArrowColumn(
        pa.timestamp("us", tz="UTC"), lambda row: row.info.mtime_ns // 1000
    ),
    "length": ArrowColumn(pa.int64(), lambda row: row.info.size),
    CONTENT: ArrowColumn(pa.binary(), lambda row: row.content),
    "digest": ArrowColumn(pa.string(), lambda row: visible(row.info.digest) or None),
    "chunks": ArrowColumn(pa.int64(), lambda row: row.info.chunks),
    "description": ArrowColumn(pa.string(), lambda row: visible(row.info.description)),
    "headers": ArrowColumn(pa.list_(_HEADER), lambda row: _headers(row.info)),
    "metadata": ArrowColumn(pa.map_(pa.string(), pa.string()), lambda row: _metadata(row.info)),
    "link": ArrowColumn(pa.string(), lambda row: _link(row.info)),
    "revision": ArrowColumn(pa.int64(), lambda row: row.info.revision),
}
"""The columns of an object."""


class ObjectReader(DataSourceReader):
    """Reads an object bucket once: without content in one task, else in several."""

    def __init__(self, options: ObjectOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the objects of each task; names are listed only where content is read.

        Raises:
            ObjectMetaError: The info of an object cannot be read.
            NatsStreamError: There is no server or no bucket.
        """
        options = self._options
        with connected(options, lambda js: js.objects.get(options.object_bucket)) as store:
            created_ns = store.stream.info().created_ns
            if CONTENT not in self._columns:
                return [ObjectPartition(created_ns)]
            sizes = {info.name: info.size for info in _infos(store, options)}
        packs = packed(sizes, bytes_max=options.max_bytes_per_partition)
        return [ObjectPartition(created_ns, names) for names in packs]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the objects of one task, as Arrow batches; runs on an executor.

        An object that was replaced since the read was planned has its new version in the row; one
        that was deleted has none.

        Raises:
            StreamRecreatedError: The bucket was deleted and created again since then.
            ChunksDamagedError: The bytes of an object are not those of its info.
            ConfigError: An object is too large for a Spark value, and there is no `maxObjectSize`.
            NatsStreamError: No server within `reconnectTimeout`, or it refused.
        """
        if not isinstance(partition, ObjectPartition):
            return  # Spark's own, for a bucket without objects.
        options = self._options
        opening = connected(
            options,
            lambda js: js.objects.get(options.object_bucket),
            wait_s=options.reconnect_timeout,
        )
        with opening as store:
            if store.stream.info().created_ns != partition.created_ns:
                raise StreamRecreatedError(
                    f"object bucket {store.name} was deleted and created again",
                    hint="run the read again",
                )
            yield from row_batches(
                _rows(store, options, partition.names),
                OBJECT_COLUMNS,
                self._columns,
                size=lambda row: len(row.content or b""),
            )


def packed(sizes: Mapping[str, int], *, bytes_max: int) -> list[tuple[str, ...]]:
    """Pack objects into tasks, in their order.

    Args:
        sizes: Bytes of each object, by name.
        bytes_max: Bytes of a task at most; a larger object has a task of its own.
    """
    packs: list[list[str]] = []
    held = 0
    for name, size in sizes.items():
        if not packs or held + size > bytes_max:
            packs.append([])
            held = 0
        packs[-1].append(name)
        held += size
    return [tuple(each) for each in packs]


def _infos(store: ObjectStore, options: ObjectOptions) -> Iterable[ObjectInfo]:
    """Return the infos of the objects that the options choose, each name once."""
    glob = options.path_glob_filter
    # An object that is written meanwhile may be listed twice, with its newer info last.
    newest = {info.name: info for info in store.list(on_unreadable="raise")}
    return [info for name, info in newest.items() if glob is None or fnmatchcase(name, glob)]


def _rows(
    store: ObjectStore, options: ObjectOptions, names: Sequence[str] | None
) -> Iterator[ObjectRow]:
    if names is None:
        yield from map(ObjectRow, _infos(store, options))
        return
    for name in names:
        row = _read(store, name, options.max_object_size)
        if row is not None:
            yield row


def _read(store: ObjectStore, name: str, size_max: int | None) -> ObjectRow | None:
    """Return an object with its content; None if it was deleted."""
    try:
        for _ in range(READS_MAX - 1):
            # Replaced in the middle of a read: the next one has the new version.
            with suppress(ObjectChangedError):
                return _read_version(store, name, size_max)
        return _read_version(store, name, size_max)
    except NatsStreamError as error:
        error.add_note(f"in the read of object {name!r} of bucket {store.name}")
        raise


def _read_version(store: ObjectStore, name: str, size_max: int | None) -> ObjectRow | None:
    info = store.info(name)
    if info is None or (info.link is not None and not info.link.name):
        return None if info is None else ObjectRow(info)  # A link to a bucket has no bytes.
    try:
        with store.open(name) as reader:
            # The reader's info is of the version that it reads; a link has one of its own.
            found = info if info.link is not None else reader.info
            if reader.size > (size_max or CONTENT_BYTES_MAX):
                if size_max is None:
                    raise ConfigError(
                        f"object {name!r} of bucket {store.name} has {reader.size} bytes, more "
                        "than a Spark value can have",
                        hint="set maxObjectSize to have null as its content",
                    )
                return ObjectRow(found)
            return ObjectRow(found, reader.read())
    except ObjectNotFoundError:
        # A link whose target is gone stays a row; an object was deleted just now.
        return ObjectRow(info) if info.link is not None else None


def _headers(info: ObjectInfo) -> list[dict[str, str]]:
    return [
        {"key": visible(key), "value": visible(value)}
        for key, values in info.headers.items()
        for value in values
    ]


def _metadata(info: ObjectInfo) -> list[tuple[str, str]]:
    return [(visible(key), visible(value)) for key, value in info.metadata.items()]


def _link(info: ObjectInfo) -> str | None:
    if info.link is None:
        return None
    return visible("/".join(each for each in (info.link.bucket, info.link.name) if each))
