"""`python -m pyspark_natsstream.jobs.backfill --servers ... --stream ... --table ... --job ...`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark_natsstream.backfill import BackfillReport, backfill
from pyspark_natsstream.jobs.command import ROWS, JobCommand
from pyspark_natsstream.write_options import WriteOptions

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession


def _work(
    spark: SparkSession, options: dict[str, str], asked: argparse.Namespace
) -> BackfillReport:
    return backfill(spark, options=options, table=asked.table, fmt=asked.format, where=asked.where)


main = JobCommand(
    name="backfill",
    description="Write a table into a JetStream stream, every row once.",
    arguments=ROWS,
    options=WriteOptions,
    required=("job",),
    work=_work,
)

if __name__ == "__main__":
    sys.exit(main())
