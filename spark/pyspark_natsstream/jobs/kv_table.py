"""`python -m pyspark_natsstream.jobs.kv_table --servers ... --bucket ... --out ...`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from natsstream.arguments import counted
from pyspark_natsstream.bucket_options import BucketOptions
from pyspark_natsstream.ingest import IngestReport
from pyspark_natsstream.jobs.command import CHECKPOINT, TRIGGER, Argument, JobCommand, say
from pyspark_natsstream.kv_table import kv_table

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession


_ARGUMENTS: tuple[Argument, ...] = (
    ("--out", {"required": True, "help": "Folder of the table."}),
    CHECKPOINT,
    ("--history-out", {"help": "Folder of a table with every change."}),
    TRIGGER,
)
# The table is equal to the bucket, so it is not a part of it.
_NOT_ASKED = ("starting_offsets", "ending_offsets", "fail_on_data_loss", "history", "job")


def _work(spark: SparkSession, options: dict[str, str], asked: argparse.Namespace) -> IngestReport:
    return kv_table(
        spark,
        options=options,
        out=asked.out,
        checkpoint=asked.checkpoint,
        trigger=asked.trigger,
        history_out=asked.history_out,
        on_progress=lambda now: say(
            f"{counted(now.rows, 'change')} in {counted(now.batches, 'batch')}"
        ),
    )


main = JobCommand(
    name="kv_table",
    description="Keep a table equal to a key-value bucket.",
    arguments=_ARGUMENTS,
    options=BucketOptions,
    first=lambda js, options: js.kv.get(options["bucket"]),
    without=_NOT_ASKED,
    elsewhere={"--stream": "give --bucket; the job ingest reads a stream"},
    work=_work,
)

if __name__ == "__main__":
    sys.exit(main())
