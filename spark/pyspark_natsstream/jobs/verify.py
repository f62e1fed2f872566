"""`python -m pyspark_natsstream.jobs.verify --servers ... --stream ... --table ...`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark_natsstream.jobs.command import TABLE, JobCommand
from pyspark_natsstream.read_options import NOT_AS_STORED, ReadOptions
from pyspark_natsstream.verify import VerifyReport, verify

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession


def _work(spark: SparkSession, options: dict[str, str], asked: argparse.Namespace) -> VerifyReport:
    return verify(spark, options=options, table=asked.table, fmt=asked.format)


main = JobCommand(
    name="verify",
    description="Compare a table with the stream that it was ingested from.",
    arguments=TABLE,
    options=ReadOptions,
    without=NOT_AS_STORED,
    work=_work,
)

if __name__ == "__main__":
    sys.exit(main())
