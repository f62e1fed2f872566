"""`python -m pyspark_natsstream.jobs.verify --servers ... --stream ... --table ...`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark_natsstream.jobs.command import (
    add_options,
    given_options,
    job_parser,
    job_session,
    run_job,
)
from pyspark_natsstream.read_options import NOT_AS_STORED, ReadOptions
from pyspark_natsstream.verify import VerifyReport, verify

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; arguments and exit codes as for `run_job`."""
    parser = job_parser("verify", "Compare a table with the stream that it was ingested from.")
    parser.add_argument("--table", required=True, help="Folder of the table.")
    parser.add_argument("--format", default="parquet", help="Format of its files.")
    add_options(parser, ReadOptions, without=NOT_AS_STORED)
    return run_job(parser, arguments, _work)


def _work(asked: argparse.Namespace) -> VerifyReport:
    options = given_options(asked, ReadOptions)
    spark = job_session(asked.master, "natsstream-verify")
    return verify(spark, options=options, table=asked.table, fmt=asked.format)


if __name__ == "__main__":
    sys.exit(main())
