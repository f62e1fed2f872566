"""Commits of micro-batches to Delta and Iceberg tables, without jars.

Spark's executors write a micro-batch as Parquet files into a folder of its own; the driver commits
these files to the table, with deltalake or pyiceberg.

Law: exactly once. The commit itself says which micro-batch of which query it is, and a micro-batch
that the table has already is not committed again. A folder that was written and not committed is
written anew; until then the table's readers do not see it. The commit also says which query stores
the messages of a stream, so that a second one is refused.

Needs the extra `delta` (deltalake) or `iceberg` (pyiceberg).
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeGuard, TypeVar, get_args
from urllib.parse import unquote
from uuid import UUID

from pyspark.sql.pandas.types import to_arrow_schema

from natsstream.errors import ConfigError, MissingExtraError
from pyspark_natsstream.failures import short_failures

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

T = TypeVar("T")
LakeFormat: TypeAlias = Literal["delta", "iceberg"]
WriteBatch: TypeAlias = Callable[["DataFrame", int], None]

# pyarrow has no types for these.
fs: Any = importlib.import_module("pyarrow.fs")
pq: Any = importlib.import_module("pyarrow.parquet")

_LIBRARIES = {"delta": "deltalake", "iceberg": "pyiceberg"}
# Spark's name for the directory of rows whose partition column is null.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_CATALOGS = "pyiceberg finds the catalog in .pyiceberg.yaml or PYICEBERG_CATALOG__<NAME>__URI"
BATCHES_FOLDER = "natsstream"
"""The folder of the micro-batches, below that of the table."""

_BATCH_KEY = "natsstream.batch"
_STREAM_KEY = "natsstream.stream"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a micro-batch.

    Attributes:
        path: Below the table's folder, with `/`.
        size: Bytes.
        modified_ms: Unix milliseconds.
        rows: Rows.
        partition: Values of the columns that stand in the path instead of the file.
    """

    path: str
    size: int
    modified_ms: int
    rows: int
    partition: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A micro-batch of a query, and the stream that the query stores.

    Attributes:
        stream: The stream.
        query_id: The query, by Spark's name.
        number: The number of the micro-batch.
    """

    stream: str
    query_id: str
    number: int


class LakeTable(Protocol):
    """A table that knows which micro-batches it has."""

    @property
    def folder(self) -> str:
        """Where the table's files are, as a path or a URL; there is one after `prepare`."""
        ...

    def prepare(self, schema: pa.Schema) -> None:
        """Take the schema of what is going to be added; make the table if a commit cannot."""
        ...

    def last_batch(self, query_id: str) -> int:
        """Return the last micro-batch of a query in the table; -1 for none."""
        ...

    def is_of_other_query(self, stream: str, query_id: str | None) -> bool:
        """Return True if another query stores the messages of a stream in the table."""
        ...

    def commit(self, files: Sequence[DataFile], batch: MicroBatch) -> None:
        """Add files to the table, as a micro-batch of a query."""
        ...


def lake_table(fmt: LakeFormat, out: str, partition_by: Sequence[str]) -> LakeTable:
    """Return a table, which there need not be yet.

    Args:
        fmt: The table's format.
        out: The table: the folder of a Delta table, `catalog.namespace.table` of an Iceberg one.
        partition_by: Columns of the rows to partition by.

    Raises:
        MissingExtraError: The library of the format is not installed.
        ConfigError: The table cannot be partitioned so, or is not named rightly.
    """
    check_library(fmt)
    if fmt == "delta":
        return _DeltaTable(out, partition_by)
    if partition_by:
        raise ConfigError(
            f"an Iceberg table cannot be partitioned by {', '.join(partition_by)} here: the files "
            "of a micro-batch are added as they are",
            hint="give an empty partition_by; Iceberg skips files by the range of their values",
        )
    return _IcebergTable(out)


def is_lake(fmt: str) -> TypeGuard[LakeFormat]:
    """Return True if a format is one of tables that know their files."""
    return fmt in get_args(LakeFormat)


def check_library(fmt: LakeFormat) -> None:
    """Refuse a format whose library is not installed.

    Raises:
        MissingExtraError: It is not.
    """
    if find_spec(_LIBRARIES[fmt]) is None:
        raise MissingExtraError(
            f"a table of the format {fmt} needs {_LIBRARIES[fmt]}",
            hint=f"pip install 'natsstream[{fmt}]' on the driver",
        )


def delta_url(folder: str) -> str:
    """Return the folder of a Delta table as deltalake names it."""
    return folder.rstrip("/").replace("s3a://", "s3://", 1)


def iceberg_catalog(table: str) -> tuple[Any, str]:
    """Return the catalog of an Iceberg table, and the table's name in it.

    Args:
        table: The table, as `catalog.namespace.table`.

    Raises:
        ConfigError: The table is not named so, or its catalog is not configured or does not open.
    """
    catalog, _, name = table.partition(".")
    if "." not in name:
        raise ConfigError(
            f"{table!r} names no Iceberg table", hint=f"catalog.namespace.table; {_CATALOGS}"
        )
    # pyiceberg is an extra. Its clients of the catalogs have no root of their errors.
    load: Any = importlib.import_module("pyiceberg.catalog").load_catalog
    try:
        return load(catalog), name
    except Exception as error:
        raise ConfigError(
            f"the Iceberg catalog {catalog} cannot be opened",
            detail=str(error).partition("\n")[0],
            hint=_CATALOGS.replace("<NAME>", catalog.upper()),
        ) from error


def lake_writer(table: LakeTable, stream: str, partition_by: Sequence[str]) -> WriteBatch:
    """Return the function for `foreachBatch` that writes a stream's messages into a table."""
    return short_failures(lambda rows, number: _write(table, rows, stream, number, partition_by))


def _write(
    table: LakeTable, rows: DataFrame, stream: str, number: int, partition_by: Sequence[str]
) -> None:
    batch = MicroBatch(stream, _query_id(rows), number)
    if table.last_batch(batch.query_id) >= number:
        return
    table.prepare(to_arrow_schema(rows.schema, timezone="UTC"))
    # The session is the query's own. Tables have no INT96, which is Spark's default.
    rows.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    name = f"{BATCHES_FOLDER}/{batch.query_id}/{number:012d}"
    rows.write.mode("overwrite").partitionBy(*partition_by).parquet(f"{table.folder}/{name}")
    table.commit(_files(table.folder, name), batch)


def _query_id(rows: DataFrame) -> str:
    found = rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not found:
        raise ConfigError(
            "a lake table is written by a streaming query", hint="pass it to foreachBatch"
        )
    return found


def _files(folder: str, name: str) -> list[DataFile]:
    """List the data files of a micro-batch."""
    system, root = _file_system(folder)
    selector = fs.FileSelector(f"{root}/{name}", recursive=True)
    found: list[DataFile] = []
    for info in system.get_file_info(selector):
        if info.type != fs.FileType.File or not info.base_name.endswith(".parquet"):
            continue
        path = info.path[len(root) + 1 :]
        rows = pq.read_metadata(info.path, filesystem=system).num_rows
        if rows:
            modified_ms = int((info.mtime_ns or 0) // 1_000_000)
            found.append(DataFile(path, info.size, modified_ms, rows, partition_of(path)))
    return sorted(found, key=lambda each: each.path)


def _file_system(folder: str) -> tuple[Any, str]:
    # Not through `Folder`: the number of rows is in the files' footers, which Arrow reads and
    # Hadoop's client does not. deltalake and pyiceberg reach the store without the JVM, too.
    # Spark has several names for a store, Arrow one.
    text = folder.replace("s3a://", "s3://", 1)
    if "://" not in text and not text.startswith("file:"):
        return fs.LocalFileSystem(), text.rstrip("/")
    system, root = fs.FileSystem.from_uri(text)
    return system, root.rstrip("/")


def partition_of(path: str) -> dict[str, str | None]:
    """Return the values of the columns that stand in the path of a file that Spark has written."""
    pairs = [part.partition("=") for part in path.split("/")[:-1] if "=" in part]
    return {unquote(name): None if value == _NULL else unquote(value) for name, _, value in pairs}


class _DeltaTable:
    """A table of Delta Lake; the commit names query and micro-batch as its transaction."""

    def __init__(self, out: str, partition_by: Sequence[str]) -> None:
        self.folder: str = out.rstrip("/")
        self._url = delta_url(out)
        self._partition_by = list(partition_by)
        # deltalake is an extra, and has no complete types.
        self._lake: Any = importlib.import_module("deltalake")
        self._actions: Any = importlib.import_module("deltalake.transaction")
        self._schema: Any = None

    def prepare(self, schema: pa.Schema) -> None:
        """Take the schema of what is going to be added."""
        self._schema = self._lake.Schema.from_arrow(schema)

    def last_batch(self, query_id: str) -> int:
        """Return the last micro-batch of a query in the table; -1 for none."""
        return self._number_of(query_id, -1)

    def is_of_other_query(self, stream: str, query_id: str | None) -> bool:
        """Return True if another query stores the messages of a stream in the table."""
        own = None if query_id is None else _short(query_id)
        return self._number_of(f"{_STREAM_KEY}.{stream}", own) != own

    def commit(self, files: Sequence[DataFile], batch: MicroBatch) -> None:
        """Add files to the table, as a micro-batch of a query."""
        lake, actions = self._lake, self._actions
        added = [
            actions.AddAction(
                each.path,
                each.size,
                each.partition,
                each.modified_ms,
                data_change=True,
                stats=json.dumps({"numRecords": each.rows}),
            )
            for each in files
        ]
        schema = self._schema
        # A table keeps a number for each name, and nothing else that readers could not do without.
        numbers = {
            batch.query_id: batch.number,
            f"{_STREAM_KEY}.{batch.stream}": _short(batch.query_id),
        }
        kept = [lake.Transaction(name, number) for name, number in numbers.items()]
        commit = lake.CommitProperties(app_transactions=kept)
        if lake.DeltaTable.is_deltatable(self._url):
            table = lake.DeltaTable(self._url)
            table.create_write_transaction(
                added, "append", schema, self._partition_by, commit_properties=commit
            )
        else:
            actions.create_table_with_add_actions(
                self._url, schema, added, "error", self._partition_by, commit_properties=commit
            )

    def _number_of(self, name: str, default: T) -> int | T:
        if not self._lake.DeltaTable.is_deltatable(self._url):
            return default
        found = self._lake.DeltaTable(self._url).transaction_version(name)
        return default if found is None else int(found)


def _short(query_id: str) -> int:
    """Return a query's id in the 63 bits that the number of a transaction has."""
    return UUID(query_id).int >> 65


class _IcebergTable:
    """A table of Iceberg; its properties name the last micro-batch of each query."""

    def __init__(self, out: str) -> None:
        self._catalog, self._name = iceberg_catalog(out)
        self._table: Any = None

    @property
    def folder(self) -> str:
        """Where the table's files are, as a path or a URL."""
        return str(self._table.location()).rstrip("/")

    def prepare(self, schema: pa.Schema) -> None:
        """Make the table if it is missing, and its namespace."""
        namespace = self._name.rpartition(".")[0]
        # A namespace may be there for programs that may not create any.
        if not self._catalog.namespace_exists(namespace):
            self._catalog.create_namespace_if_not_exists(namespace)
        self._table = self._catalog.create_table_if_not_exists(self._name, schema)

    def last_batch(self, query_id: str) -> int:
        """Return the last micro-batch of a query in the table; -1 for none."""
        return int(self._properties().get(f"{_BATCH_KEY}.{query_id}", -1))

    def is_of_other_query(self, stream: str, query_id: str | None) -> bool:
        """Return True if another query stores the messages of a stream in the table."""
        return self._properties().get(f"{_STREAM_KEY}.{stream}", query_id) != query_id

    def commit(self, files: Sequence[DataFile], batch: MicroBatch) -> None:
        """Add files to the table, as a micro-batch of a query."""
        with self._table.transaction() as changes:
            if files:
                changes.add_files([f"{self.folder}/{each.path}" for each in files])
            changes.set_properties(
                {
                    f"{_BATCH_KEY}.{batch.query_id}": str(batch.number),
                    f"{_STREAM_KEY}.{batch.stream}": batch.query_id,
                }
            )

    def _properties(self) -> Mapping[str, str]:
        if not self._catalog.table_exists(self._name):
            return {}
        return self._catalog.load_table(self._name).properties
