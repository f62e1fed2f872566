"""`python -m pyspark_natsstream.jobs.replay --servers ... --stream ... --table ... --job ...`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark_natsstream.jobs.command import ROWS, Argument, JobCommand
from pyspark_natsstream.replay import ReplayReport, check_speed, replay
from pyspark_natsstream.write_options import WriteOptions

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession


_SPEED: Argument = (
    "--speed",
    {"type": float, "default": 1.0, "help": "How much faster than at first; 0 for no pace."},
)


def _work(spark: SparkSession, options: dict[str, str], asked: argparse.Namespace) -> ReplayReport:
    return replay(
        spark,
        options=options,
        table=asked.table,
        fmt=asked.format,
        where=asked.where,
        speed=asked.speed,
    )


main = JobCommand(
    name="replay",
    description="Write a table into a JetStream stream at its original pace.",
    arguments=(*ROWS, _SPEED),
    options=WriteOptions,
    required=("job",),
    check=lambda asked: check_speed(asked.speed),
    work=_work,
)

if __name__ == "__main__":
    sys.exit(main())
