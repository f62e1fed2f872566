"""`python -m pyspark_natsstream.jobs.kv_table --servers ... --bucket ... --out ...`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark_natsstream.bucket_options import BucketOptions
from pyspark_natsstream.ingest import AVAILABLE_NOW, IngestReport
from pyspark_natsstream.jobs.command import (
    add_options,
    given_options,
    job_parser,
    job_session,
    run_job,
    say,
)
from pyspark_natsstream.kv_table import kv_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

# The table is equal to the bucket, so it is not a part of it.
_NOT_ASKED = ("starting_offsets", "ending_offsets", "fail_on_data_loss", "history", "job")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; arguments and exit codes as for `run_job`."""
    parser = job_parser("kv_table", "Keep a table equal to a key-value bucket.")
    parser.add_argument("--out", required=True, help="Folder of the table.")
    parser.add_argument("--checkpoint", required=True, help="Folder of the checkpoint.")
    parser.add_argument("--history-out", help="Folder of a table with every change.")
    parser.add_argument(
        "--trigger",
        default=AVAILABLE_NOW,
        help="available-now ends at the last revision now; '10 seconds' runs until stopped. "
        "Default available-now.",
    )
    add_options(parser, BucketOptions, without=_NOT_ASKED)
    return run_job(parser, arguments, _work)


def _work(asked: argparse.Namespace) -> IngestReport:
    options = given_options(asked, BucketOptions)
    return kv_table(
        job_session(asked.master, "natsstream-kv-table"),
        options=options,
        out=asked.out,
        checkpoint=asked.checkpoint,
        trigger=asked.trigger,
        history_out=asked.history_out,
        on_progress=lambda now: say(f"{now.rows} changes in {now.batches} batches"),
    )


if __name__ == "__main__":
    sys.exit(main())
