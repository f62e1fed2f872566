"""`python -m pyspark_natsstream.jobs.ingest --servers ... --stream ... --out ...`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, get_args

from natsstream.arguments import counted
from pyspark_natsstream.ingest import IngestReport, TableFormat, ingest
from pyspark_natsstream.jobs.command import CHECKPOINT, TRIGGER, Argument, JobCommand, say
from pyspark_natsstream.lake_tables import is_lake, lake_table
from pyspark_natsstream.read_options import NOT_AS_STORED, ReadOptions
from pyspark_natsstream.schema import default_schema
from pyspark_natsstream.tables import check_partitions

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession


_PARTITION_BY = (
    "Columns, separated by commas: the table's own, date, token1, token2 and so on. "
    "Default date, none for Iceberg; empty for none."
)
_ARGUMENTS: tuple[Argument, ...] = (
    (
        "--out",
        {"required": True, "help": "Folder of the table; for Iceberg catalog.namespace.table."},
    ),
    CHECKPOINT,
    ("--partition-by", {"help": _PARTITION_BY}),
    TRIGGER,
    (
        "--format",
        {
            "choices": get_args(TableFormat),
            "default": "parquet",
            "help": "Format of the table. Default parquet.",
        },
    ),
    ("--json-schema", {"help": "Columns of JSON messages: 'origin string, n int'."}),
)


def _partition_by(asked: argparse.Namespace) -> list[str] | None:
    columns: str | None = asked.partition_by
    return None if columns is None else [name for name in columns.split(",") if name]


def _check(asked: argparse.Namespace) -> None:
    if asked.json_schema is None:  # Its columns are known only once Spark has read it.
        check_partitions(_partition_by(asked) or (), default_schema(include_headers=True).names)
    if is_lake(asked.format):
        lake_table(asked.format, asked.out, _partition_by(asked) or ())


def _work(spark: SparkSession, options: dict[str, str], asked: argparse.Namespace) -> IngestReport:
    return ingest(
        spark,
        options=options,
        out=asked.out,
        checkpoint=asked.checkpoint,
        partition_by=_partition_by(asked),
        trigger=asked.trigger,
        fmt=asked.format,
        json_schema=asked.json_schema,
        on_progress=lambda now: say(
            f"{counted(now.rows, 'row')} in {counted(now.batches, 'batch')}"
        ),
    )


main = JobCommand(
    name="ingest",
    description="Write a JetStream stream into a table, every message once.",
    arguments=_ARGUMENTS,
    options=ReadOptions,
    check=_check,
    first=lambda js, options: js.streams.get(options["stream"]),
    without=(*NOT_AS_STORED, "ending_offsets"),
    elsewhere={
        "--bucket": "the job kv_table reads a bucket",
        "--ending-offsets": "a table is ingested up to the last message",
    },
    work=_work,
)

if __name__ == "__main__":
    sys.exit(main())
