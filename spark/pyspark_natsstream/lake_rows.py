"""The rows of a Delta or Iceberg table, without jars.

deltalake or pyiceberg lists the files that are the table now; Spark's Parquet reader reads them.

Law: the rows are those of the table, or there is an error. A table is refused if its files alone do
not tell its rows, as when a deletion vector or a delete file takes some away.
"""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow  # noqa: ICN001 - `pa` is its untyped form.
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention.
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from natsstream.errors import ConfigError
from pyspark_natsstream.folder import Folder
from pyspark_natsstream.lake_tables import LakeFormat, check_library, delta_url, iceberg_catalog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

# Its types lack most of it.
pa: Any = pyarrow

_FILE = "_natsstream_file"
# Features of Delta tables with which the files have the rows of the table, and its columns unless
# the mapping says so.
_DELTA_FEATURES = frozenset(
    ("columnMapping", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck")
)
_JARS = "Spark reads such a table with the jars of its format: --packages"


def lake_rows(spark: SparkSession, fmt: LakeFormat, table: str) -> DataFrame:
    """Return the rows that a table has now.

    Args:
        spark: A session with a driver in this process (not Spark Connect).
        fmt: The table's format.
        table: The folder of a Delta table, `catalog.namespace.table` of an Iceberg one.

    Raises:
        MissingExtraError: The library of the format is not installed.
        ConfigError: The table does not exist, or its files do not tell its rows.
    """
    check_library(fmt)
    return _delta_rows(spark, table) if fmt == "delta" else _iceberg_rows(spark, table)


def _delta_rows(spark: SparkSession, table: str) -> DataFrame:
    # deltalake is an extra, and has no complete types.
    lake: Any = importlib.import_module("deltalake")
    url = delta_url(table)
    if not lake.DeltaTable.is_deltatable(url):
        raise _no_table(f"folder {table} holds no Delta table", "the folder")
    try:
        opened = lake.DeltaTable(url)
    except lake.exceptions.DeltaError as error:
        raise _unreadable(table, "is refused by deltalake", str(error)) from error
    _check_delta(table, opened)
    schema = StructType.fromJson(json.loads(opened.schema().to_json()))
    names: list[str] = opened.metadata().partition_columns
    own = StructType([each for each in schema.fields if each.name not in names])
    found: list[dict[str, Any]] = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
    if any("://" in each["path"] for each in found):
        raise _unreadable(table, "has files of another table")
    # The log has paths as in a URL.
    values = {
        unquote(each["path"]): [each[f"partition.{name}"] for name in names] for each in found
    }
    if not values:
        return spark.createDataFrame([], schema)
    rows = _parquet(spark, [f"{table.rstrip('/')}/{path}" for path in sorted(values)], own)
    if not names:
        return rows
    root = Folder(spark, table).url.rstrip("/")
    keyed = StructType([StructField(_FILE, StringType()), *(schema[name] for name in names)])
    told = [(f"{root}/{path}", *each) for path, each in values.items()]
    files = F.broadcast(spark.createDataFrame(told, keyed))
    joined = rows.join(files, _file_of() == files[_FILE], "left")
    return joined.select(*(_told(n) if n in names else F.col(f"`{n}`") for n in schema.names))


def _file_of() -> Column:
    """Return the file of a row, as paths are written; Spark has it as in a URL."""
    # A plus is itself there, and a space for `url_decode`.
    return F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))


def _told(name: str) -> Column:
    """Return a column that stands in the table's log instead of its files."""
    unknown = F.raise_error(F.lit(f"the log of the table has no {name} for one of its files"))
    return F.when(F.col(_FILE).isNull(), unknown).otherwise(F.col(f"`{name}`")).alias(name)


def _check_delta(table: str, opened: Any) -> None:
    """Refuse a table whose rows or columns are not those of its files."""
    features = set(opened.protocol().reader_features or ()) - _DELTA_FEATURES
    mapping = opened.metadata().configuration.get("delta.columnMapping.mode", "none")
    if features:
        raise _unreadable(table, f"has the feature {min(features)}")
    if mapping != "none":
        raise _unreadable(table, "has other names for its columns than its files (columnMapping)")


def _iceberg_rows(spark: SparkSession, table: str) -> DataFrame:
    catalog, name = iceberg_catalog(table)
    if not catalog.table_exists(name):
        raise _no_table(f"there is no Iceberg table {table}", "the name")
    opened = catalog.load_table(name)
    _check_iceberg(table, opened)
    try:
        tasks: list[Any] = [*opened.scan().plan_files()]
    except (NotImplementedError, ValueError) as error:  # As for equality deletes.
        raise _unreadable(table, "is refused by pyiceberg", str(error)) from error
    if any(task.delete_files for task in tasks):
        raise _unreadable(table, "has deleted rows that are still in its files (delete files)")
    kinds = {str(task.file.file_format.value) for task in tasks} - {"PARQUET"}
    if kinds:
        raise _unreadable(table, f"has files of the format {min(kinds)}")
    schema = from_arrow_schema(opened.schema().as_arrow(), prefer_timestamp_ntz=True)
    if not tasks:
        return spark.createDataFrame([], schema)
    return _parquet(spark, sorted(task.file.file_path for task in tasks), schema)


def _check_iceberg(table: str, opened: Any) -> None:
    """Refuse a table whose columns are not those of its files by their names."""
    index: Any = importlib.import_module("pyiceberg.schema").index_name_by_id
    pairs = {pair for schema in opened.schemas().values() for pair in index(schema).items()}
    if not len(pairs) == len({key for key, _ in pairs}) == len({name for _, name in pairs}):
        raise _unreadable(table, "has other names for its columns than its files had")
    if any(each.initial_default is not None for each in opened.schema().fields):
        raise _unreadable(table, "has values for columns that its older files lack")
    fields = [field for spec in opened.specs().values() for field in spec.fields]
    if any(str(field.transform) == "identity" for field in fields):
        raise _unreadable(table, "is partitioned by a column, which its files may lack")


def _parquet(spark: SparkSession, files: Sequence[str], schema: StructType) -> DataFrame:
    # The option keeps Spark from making columns of the folders' names.
    reader = spark.read.schema(schema).option("recursiveFileLookup", "true")
    return reader.parquet(*files)


def _no_table(message: str, what: str) -> ConfigError:
    return ConfigError(message, hint=f"give {what} that `ingest` calls out")


def _unreadable(table: str, why: str, detail: str = "") -> ConfigError:
    message = f"table {table} {why}, and cannot be read without jars"
    return ConfigError(message, detail=detail.partition("\n")[0], hint=_JARS)
