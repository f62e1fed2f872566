"""`python -m pyspark_natsstream.jobs.verify --servers ... --stream ... --table ...`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark_natsstream.jobs.command import TABLE, JobCommand
from pyspark_natsstream.read_options import NOT_AS_STORED, OF_QUERIES, ReadOptions
from pyspark_natsstream.verify import VerifyReport, verify

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession


def _work(spark: SparkSession, options: dict[str, str], asked: argparse.Namespace) -> VerifyReport:
    return verify(spark, options=options, table=asked.table, fmt=asked.format)


main = JobCommand(
    name="verify",
    description="Compare a table with the stream that it was ingested from: which messages have no "
    "row, more than one, or another one. The range ends at --ending-offsets, or else at the "
    "table's last sequence. Prints a JSON line, and exits with 4 if the two differ.",
    arguments=TABLE,
    options=ReadOptions,
    first=lambda js, options: js.streams.get(options["stream"]),
    without=(*NOT_AS_STORED, *OF_QUERIES),
    elsewhere={"--bucket": "a table is compared with a stream"},
    work=_work,
)

if __name__ == "__main__":
    sys.exit(main())
