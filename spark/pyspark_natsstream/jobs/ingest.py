"""`python -m pyspark_natsstream.jobs.ingest --servers ... --stream ... --out ...`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, get_args

from pyspark_natsstream.ingest import AVAILABLE_NOW, IngestReport, TableFormat, ingest
from pyspark_natsstream.jobs.command import (
    add_options,
    given_options,
    job_parser,
    job_session,
    run_job,
    say,
)
from pyspark_natsstream.read_options import NOT_AS_STORED, ReadOptions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; arguments and exit codes as for `run_job`."""
    parser = job_parser("ingest", "Write a JetStream stream into a table, every message once.")
    parser.add_argument(
        "--out", required=True, help="Folder of the table; Iceberg: catalog.namespace.table."
    )
    parser.add_argument("--checkpoint", required=True, help="Folder of the checkpoint.")
    parser.add_argument(
        "--partition-by",
        help="Columns, separated by commas: the table's own, date, token1, token2 and so on. "
        "Default date, none for Iceberg; empty for none.",
    )
    parser.add_argument(
        "--trigger",
        default=AVAILABLE_NOW,
        help="available-now ends at the last message now; '10 seconds' runs until stopped. "
        "Default available-now.",
    )
    parser.add_argument("--format", choices=get_args(TableFormat), default="parquet")
    parser.add_argument("--json-schema", help="Columns of JSON messages: 'origin string, n int'.")
    add_options(parser, ReadOptions, without=NOT_AS_STORED)
    return run_job(parser, arguments, _work)


def _work(asked: argparse.Namespace) -> IngestReport:
    options, columns = given_options(asked, ReadOptions), asked.partition_by
    return ingest(
        job_session(asked.master, "natsstream-ingest"),
        options=options,
        out=asked.out,
        checkpoint=asked.checkpoint,
        partition_by=None if columns is None else [name for name in columns.split(",") if name],
        trigger=asked.trigger,
        fmt=asked.format,
        json_schema=asked.json_schema,
        on_progress=lambda now: say(f"{now.rows} rows in {now.batches} batches"),
    )


if __name__ == "__main__":
    sys.exit(main())
