"""The Python workers of a local session."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 60
NEEDED = ("pyspark_natsstream.executor", "natsstream.jetstream", "nats.aio.client", "pyarrow")

# The daemon ends with the name of the program that takes its place.
THREADED = """
import os, sys, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
os.execv = lambda program, arguments: print(*arguments[1:])
sys.argv = ["daemon", "pyspark.worker"]
from pyspark_natsstream.daemon import main
main()
"""


def test_worker_starts_with_the_imports_of_a_task_and_does_not_collect_them(
    spark: SparkSession,
) -> None:
    def told(_: int) -> tuple[list[str], int]:
        return [name for name in NEEDED if name in sys.modules], gc.get_freeze_count()

    found, frozen = spark.sparkContext.parallelize([0], 1).map(told).first()

    assert found == list(NEEDED)
    assert frozen > 0


def test_worker_imports_the_installed_pyspark(spark: SparkSession) -> None:
    """Not the archive, which Python would compile at each start."""

    def home(_: int) -> str:
        return pyspark.__file__

    assert spark.sparkContext.parallelize([0], 1).map(home).first() == pyspark.__file__


def test_daemon_with_a_second_thread_leaves_the_workers_to_spark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", THREADED],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )

    assert done.stdout == "-m pyspark.daemon pyspark.worker\n"
