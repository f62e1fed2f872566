"""The backfill job: writes a table into a stream.

Law: each row is stored once, however often the job runs under the same name.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention.
from pyspark.sql.types import MapType

from natsstream.errors import ConfigError
from pyspark_natsstream.registration import register
from pyspark_natsstream.source import FORMAT
from pyspark_natsstream.tables import read_table
from pyspark_natsstream.write_options import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

_WRITTEN = ("data", "subject", "headers")
_SPLITS = "spark.sql.files.minPartitionNum"
_SPLITS_MIN = "8"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillReport:
    """The result of a backfill.

    Attributes:
        rows: Rows of the table; all of them are stored.
    """

    rows: int

    def to_json(self) -> str:
        """Return the report as one line."""
        return json.dumps(asdict(self))


def backfill(
    spark: SparkSession,
    *,
    options: Mapping[str, str],
    table: str,
    fmt: str = "parquet",
    where: str | None = None,
) -> BackfillReport:
    """Write the rows of a table into a stream, and return a report.

    Args:
        spark: A session with a driver in this process (not Spark Connect).
        options: The options of `format("nats")`, with a `job`. A second run of the same job stores
            the rows that are missing, so the table and `where` must be the same.
        table: Folder of the table. A column `data` is the payload, and `subject` and `headers` are
            taken where there are any; without `data` all columns become a JSON object.
        fmt: Format of its files, or "delta" or "iceberg", of which the rows now are read.
            An Iceberg table is named `catalog.namespace.table`.
        where: An SQL condition for the rows.

    Raises:
        ConfigError: An option, a column or `where` is illegal, or there is no `job` or no table.
        MissingExtraError: The library of the format is not installed.
        InputChangedError: The job ran before, and the rows are not the same.
        NatsStreamError: There is no server or no stream, or the stream refused a message.
    """
    asked = WriteOptions.parse(options)
    if asked.job is None:
        raise ConfigError("a backfill needs the option job", hint="job=backfill-2026-11")
    register(spark)
    with _same_splits(spark):
        messages = messages_of(read_table(spark, table, fmt, where), asked)
        asked = replace(asked, partitions=max(messages.rdd.getNumPartitions(), 1))
        counted = Observation()
        messages = messages.observe(counted, F.count("*").alias("rows"))
        messages.write.format(FORMAT).options(**asked.to_text()).mode("append").save()
    return BackfillReport(rows=counted.get["rows"])


@contextmanager
def _same_splits(spark: SparkSession) -> Generator[None]:
    """Have Spark split files in the same way on every machine; else the cores decide."""
    before = spark.conf.get(_SPLITS, None)
    if before is None:
        spark.conf.set(_SPLITS, _SPLITS_MIN)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_SPLITS)


def messages_of(rows: DataFrame, options: WriteOptions, *, keep: Sequence[str] = ()) -> DataFrame:
    """Return the columns of a table that are written; without `data` all become a JSON object.

    Args:
        rows: The rows of the table.
        options: The options of the write.
        keep: Columns of the caller, which are returned too, and are no data.
    """
    if "data" not in rows.columns:
        named = [f"`{name}`" for name in rows.columns if name not in keep]
        whole = F.to_json(F.struct(*named), {"ignoreNullFields": "false"})
        rows = rows.withColumn("data", whole)
    if "headers" in rows.columns and isinstance(rows.schema["headers"].dataType, MapType):
        rows = rows.withColumn("headers", F.map_entries("headers"))
    used = [*_WRITTEN, options.id_column, *(name for _, name in options.subject_parts), *keep]
    return rows.select([f"`{name}`" for name in rows.columns if name in used])
