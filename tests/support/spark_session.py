"""The one Spark session of a test run: it takes seconds to start, so every test shares it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_natsstream.session import local_session

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from pyspark.sql import SparkSession


@contextmanager
def shared_spark(folder: Path) -> Generator[SparkSession]:
    """A session with two cores and no retries: a task that fails once is seen.

    Args:
        folder: Where Spark puts what it leaves behind.
    """
    config = {
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # The tables of tests have some rows; each partition more is a task more.
        "spark.sql.shuffle.partitions": "1",
        # The same Spark for clients of Spark Connect.
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    spark = local_session(master="local[2]", app_name="natsstream-tests", config=config)
    try:
        yield spark
    finally:
        spark.stop()
