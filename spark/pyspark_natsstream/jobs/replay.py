"""`python -m pyspark_natsstream.jobs.replay --servers ... --stream ... --table ... --job ...`."""

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
from pyspark_natsstream.replay import ReplayReport, replay
from pyspark_natsstream.write_options import WriteOptions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; arguments and exit codes as for `run_job`."""
    parser = job_parser("replay", "Write a table into a JetStream stream at its original pace.")
    parser.add_argument("--table", required=True, help="Folder of the table.")
    parser.add_argument("--format", default="parquet", help="Format of its files.")
    parser.add_argument("--where", help="SQL condition for the rows.")
    parser.add_argument(
        "--speed", type=float, default=1.0, help="How much faster than at first; 0 for no pace."
    )
    add_options(parser, WriteOptions)
    return run_job(parser, arguments, _work)


def _work(asked: argparse.Namespace) -> ReplayReport:
    options = given_options(asked, WriteOptions)
    return replay(
        job_session(asked.master, "natsstream-replay"),
        options=options,
        table=asked.table,
        fmt=asked.format,
        where=asked.where,
        speed=asked.speed,
    )


if __name__ == "__main__":
    sys.exit(main())
