"""The tables of the jobs: finding one, and the columns of an ingested one.

Law: no message is dropped. One that does not fit the schema keeps its bytes in `_corrupt_record`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention.
from pyspark.sql.types import BinaryType, StructField, StructType

from natsstream.errors import ConfigError
from pyspark_natsstream.failures import SPARK_ERRORS, spark_reason
from pyspark_natsstream.lake_rows import lake_rows
from pyspark_natsstream.lake_tables import is_lake
from pyspark_natsstream.schema import CORRUPT_RECORD, default_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

DATE = "date"
_TOKEN = re.compile(r"token([1-9]\d?)")
_DAY_S = 86_400
_WHERE_TABLES_ARE = "give the folder that `ingest` calls out, or one that Spark can read"
# By Spark's names of the errors: what is wrong, and what to do.
_NO_TABLE = {
    "PATH_NOT_FOUND": ("there is no table at {table}", _WHERE_TABLES_ARE),
    "UNABLE_TO_INFER_SCHEMA": ("folder {table} holds no table of {fmt} files", _WHERE_TABLES_ARE),
    "DATA_SOURCE_NOT_FOUND": (
        "Spark knows no format {fmt}",
        "choose from parquet, orc, json, delta and iceberg; others need their jars: --packages",
    ),
}
# The log that a lake table has in its folder, and how to read such a table.
_LAKE_LOGS = {
    "_delta_log": ("a Delta", "give the format delta: --format delta"),
    "metadata/*.metadata.json": (
        "an Iceberg",
        "give its format and its name: --format iceberg --table catalog.namespace.table",
    ),
}


def read_table(spark: SparkSession, table: str, fmt: str, where: str | None = None) -> DataFrame:
    """Return the rows of a table.

    Args:
        spark: A session.
        table: Folder of the table; for Iceberg its name, `catalog.namespace.table`.
        fmt: Format of its files, or "delta" or "iceberg".
        where: An SQL condition for the rows; None for all of them.

    Raises:
        MissingExtraError: The library of the format is not installed.
        ConfigError: There is no table of the format at this place, its rows cannot be read here, or
            `where` is no condition for them.
    """
    rows = _loaded(spark, table, fmt)
    if where is None:
        return rows
    try:
        return rows.where(where)
    except AnalysisException as error:
        raise ConfigError(
            f"where is {where!r}, which is no condition for the rows of {table}",
            # The plan or the place in the text follows.
            detail=str(error).strip().partition("\n")[0],
            hint=f"write an SQL condition; the columns are {', '.join(rows.columns)}",
        ) from error


def _loaded(spark: SparkSession, table: str, fmt: str) -> DataFrame:
    if not is_lake(fmt):
        _check_no_lake(spark, table)
    try:
        return spark.read.format(fmt).load(table)
    except SPARK_ERRORS as error:
        condition = _condition(error)
        # With the format's jars Spark reads the table itself.
        if is_lake(fmt) and condition == "DATA_SOURCE_NOT_FOUND":
            return lake_rows(spark, fmt, table)
        told, hint = _NO_TABLE.get(condition, ("", ""))
        if not told:
            raise
        raise ConfigError(told.format(table=table, fmt=fmt), hint=hint) from error


def _check_no_lake(spark: SparkSession, table: str) -> None:
    """Refuse to read the files of a Delta or Iceberg table as if they were its rows."""
    for log, (kind, hint) in _LAKE_LOGS.items():
        try:
            spark.read.text(f"{table}/{log}")
        except SPARK_ERRORS:
            continue  # There is none.
        raise ConfigError(
            f"folder {table} holds {kind} table, whose files also have rows of the past", hint=hint
        )


def _condition(error: Exception) -> str:
    return spark_reason(error).partition("]")[0].lstrip("[")


def json_fields(ddl: str) -> StructType:
    """Return the schema of JSON messages from its DDL, such as `origin string, distance int`.

    Raises:
        ConfigError: The DDL is illegal, or a column has a name that the table uses.
    """
    hint = "write it like: origin string, distance int"
    try:
        found = StructType.fromDDL(ddl)
    except PySparkException as error:
        message = f"{ddl!r} is not a list of columns with types"
        raise ConfigError(message, detail=str(error), hint=hint) from error
    if not isinstance(found, StructType) or not found.fields:
        raise ConfigError(f"{ddl!r} has no columns", hint=hint)
    taken = {*default_schema(include_headers=True).fieldNames(), CORRUPT_RECORD, DATE}
    for name in found.fieldNames():
        if name.lower() in taken or _TOKEN.fullmatch(name.lower()):
            raise ConfigError(f"a JSON column cannot be named {name}: the table has its own {name}")
    return found


def json_rows(messages: StructType, fields: StructType) -> StructType:
    """Return the schema of messages whose payloads are JSON of some fields.

    Args:
        messages: The schema of messages with payloads as stored.
        fields: The columns of the JSON, from `json_fields`.
    """
    kept = [each for each in messages.fields if each.name not in ("stream", "data")]
    decoded = (StructField("data", fields), StructField(CORRUPT_RECORD, BinaryType()))
    return StructType([*kept, *decoded])


def table_of(messages: DataFrame, *, partition_by: Sequence[str]) -> DataFrame:
    """Return the rows of the table.

    Args:
        messages: Rows of `format("nats")`. Where `data` is a struct, its fields become columns.
        partition_by: Columns to partition by: columns of the table, `date` (UTC day of `time`), or
            `token1`, `token2` and so on (tokens of the subject).

    Raises:
        ConfigError: A column to partition by does not exist.
    """
    rows = messages
    if isinstance(messages.schema["data"].dataType, StructType):
        names = (name if name != "data" else "data.*" for name in messages.columns)
        rows = messages.select(*names)
    check_partitions(partition_by, rows.columns)
    for name in partition_by:
        if name not in rows.columns:
            rows = rows.withColumn(name, _derived(name))
    return rows


def check_partitions(partition_by: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse columns to partition by that a table cannot have.

    Args:
        partition_by: Columns to partition by; see `table_of`.
        columns: The columns of the table.

    Raises:
        ConfigError: A column to partition by does not exist.
    """
    for name in partition_by:
        if name not in columns and name != DATE and _TOKEN.fullmatch(name) is None:
            own = ", ".join(columns)
            hint = (
                f"choose from {own}, {DATE}, or token1, token2 and so on for tokens of the subject"
            )
            raise ConfigError(f"no column {name!r} to partition by", hint=hint)


def _derived(name: str) -> Column:
    if name == DATE:
        # From the Unix time: to_date() uses the session's time zone.
        days = F.floor(F.unix_seconds(F.col("time")) / _DAY_S).cast("int")
        return F.date_from_unix_date(days)
    token = name.removeprefix("token")
    return F.get(F.split(F.col("subject"), r"\."), int(token) - 1)
