"""A driver with two queries, to be killed at any moment.

`python -m scripts.chaos_runs.spark.program MASTER URLS FOLDER`: ingests the stream SOURCE into the
table `FOLDER/table`, and copies it into the stream TARGET. Both go on from their checkpoints. When
its standard input ends, it waits until both have all messages, and tells "end".
"""

from __future__ import annotations

import select
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention.
from pyspark_natsstream.ingest import ingest
from pyspark_natsstream.registration import register
from pyspark_natsstream.session import local_session

from scripts.chaos_runs.spark.cluster import JAVA_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = "SOURCE"
TARGET = "TARGET"
COPY = "copy"
"""The subject of the copies."""
SEQUENCE_HEADER = "Chaos-Sequence"
PARTITION_HEADER = "Chaos-Partition"
EXECUTORS = 2

_LOOK_S = 0.2
_WAIT_S = "90"
_TRIGGER = "0 seconds"
_BATCH_MAX = "400"
_CONFIG = {
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": str(EXECUTORS),
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.scheduler.mode": "FAIR",
    # Compiling takes longer than these few rows do without.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}


def main(master: str, urls: str, folder: str) -> None:
    """Run both queries."""
    spark = local_session(master=master, app_name="natsstream-chaos", config=_CONFIG)
    source = {
        "servers": urls,
        "stream": SOURCE,
        "startingOffsets": "earliest",
        "reconnectTimeout": _WAIT_S,
        "minPartitions": str(EXECUTORS),
        "maxMessagesPerTrigger": _BATCH_MAX,
    }
    jobs = (
        partial(copy, spark, source, f"{folder}/checkpoints/copy"),
        partial(
            ingest,
            spark,
            options=source,
            out=f"{folder}/table",
            checkpoint=f"{folder}/checkpoints/table",
            partition_by=(),
            trigger=_TRIGGER,
        ),
    )
    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [pool.submit(job) for job in jobs]
        try:
            while not any(job.done() for job in running):
                if select.select([sys.stdin], [], [], _LOOK_S)[0]:
                    for query in spark.streams.active:
                        query.processAllAvailable()
                    break
        finally:
            # One that has failed ends the other one too, also if that has only just begun.
            while not all(job.done() for job in running):
                for query in spark.streams.active:
                    query.stop()
                time.sleep(_LOOK_S)
        for job in running:
            job.result()  # Raises what has made it fail.
    spark.stop()
    print("end", flush=True)  # noqa: T201 - The run reads it.


def copy(spark: SparkSession, source: dict[str, str], checkpoint: str) -> None:
    """Copy every message, with its sequence and its partition in headers, until it is stopped."""
    register(spark)
    rows = spark.readStream.format("nats").options(**source).load()
    headers = {
        SEQUENCE_HEADER: F.col("sequence").cast("string"),
        PARTITION_HEADER: F.spark_partition_id().cast("string"),
    }
    pairs = [F.struct(F.lit(k).alias("key"), v.alias("value")) for k, v in headers.items()]
    writer = rows.select("data", F.array(*pairs).alias("headers")).writeStream.format("nats")
    query = (
        writer.options(servers=source["servers"], stream=TARGET, subject=COPY)
        .options(updateStream="true", reconnectTimeout=_WAIT_S, checkpointLocation=checkpoint)
        .trigger(processingTime=_TRIGGER)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
