"""The stream into the table: Spark on this machine, for as long as the ingest takes.

Law: two Sparks never write to one table. The folder's lock keeps other runs out, but the Java
process of a run that was killed lives on for a moment; it is waited for, and ended if need be.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark_natsstream.ingest import IngestReport, ingest
from pyspark_natsstream.session import local_session

from natsstream.errors import NatsStreamError
from natsstream.testing.processes import command_line, has_exited, poll_until
from scripts.flights.dataset import spark_columns
from scripts.flights.publish import STREAM
from scripts.flights.table import PARTITION_COLUMN

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from scripts.flights.folder import Folder

LEFT_BEHIND_WAIT_S = 30.0
"""A Java process ends itself about a second after Python is gone; it may have files to close."""

KILL_WAIT_S = 10.0


@contextmanager
def start_spark(folder: Folder) -> Generator[SparkSession]:
    """Give a session that is stopped at the end; its Java process ends with this one.

    Raises:
        MissingExtraError: There is no Java, or it is too old.
        NatsStreamError: The Java process ended by itself, such as for want of memory.
    """
    shutil.rmtree(folder.scratch, ignore_errors=True)
    folder.scratch.mkdir()
    config = {
        "spark.local.dir": str(folder.scratch),
        "spark.sql.warehouse.dir": str(folder.scratch / "warehouse"),
        # Java's second compiler pays off after minutes; until then it takes the cores from the work
        # (all flights on 2 cores: Java uses 21 s of CPU without it, 33 s with it).
        "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1",
        # Spark's own default, INT96, has no time zone, and other readers make local times of it.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
    with _stderr_to(folder.spark_log):
        spark = local_session(app_name=_app_name(folder), config=config)
    try:
        # Before a query runs: a process that was never written down has written nothing.
        folder.spark_pid.write_text(str(_java_pid(spark)), encoding="ascii")
        yield spark
    except ConnectionError as error:
        # No server of ours: those speak in errors of natsstream.
        raise NatsStreamError(
            "Spark's Java process ended in the middle of the work",
            hint=f"the same command goes on from here; for the cause see {folder.spark_log}",
            retryable=True,
        ) from error
    finally:
        with contextlib.suppress(ConnectionError):
            spark.stop()


def ingest_flights(
    spark: SparkSession,
    folder: Folder,
    *,
    server_url: str,
    batch_rows: int,
    advance: Callable[[IngestReport], None],
) -> IngestReport:
    """Write what the stream holds and the table does not; return what was written.

    Args:
        spark: The session.
        folder: Where checkpoint and table lie.
        server_url: The server.
        batch_rows: Most rows of a micro-batch; each is committed as a whole.
        advance: Called about once a second while there is progress.

    Raises:
        NatsStreamError: The stream can not be read, or is not the one of the checkpoint.
        PySparkException: Spark failed, such as on a full disk.
    """
    options = {
        "servers": server_url,
        "stream": STREAM,
        "maxMessagesPerTrigger": str(batch_rows),
        "minPartitions": str(spark.sparkContext.defaultParallelism),
    }
    return ingest(
        spark,
        options=options,
        out=str(folder.table),
        checkpoint=str(folder.checkpoint),
        partition_by=(PARTITION_COLUMN,),
        json_schema=spark_columns(),
        on_progress=advance,
    )


def end_left_behind(folder: Folder) -> None:
    """Wait until the Spark that wrote to this folder last is gone; the caller holds the lock.

    Raises:
        NatsStreamError: It does not end, not even by SIGKILL.

    Cost: nothing after a run that ended by itself.
    """
    try:
        pid = int(folder.spark_pid.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return
    for wait_s in (LEFT_BEHIND_WAIT_S, KILL_WAIT_S):
        # Process ids are used again, so the command line must name this folder.
        if _app_name(folder) not in command_line(pid):
            return
        if wait_s == KILL_WAIT_S:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if poll_until(lambda: has_exited(pid), wait_s):
            return
    message = f"the Java process {pid} of an earlier run still works on {folder.path}"
    raise NatsStreamError(message, hint=f"end it: kill -9 {pid}")


@contextmanager
def _stderr_to(log: Path) -> Generator[None]:
    """Let processes that are started meanwhile write their standard error to a file.

    Java warns of things that Spark asks it to do, and would write them across the bar.
    """
    own = os.dup(sys.stderr.fileno())
    try:
        with log.open("wb") as opened:
            os.dup2(opened.fileno(), sys.stderr.fileno())
        yield
    finally:
        os.dup2(own, sys.stderr.fileno())
        os.close(own)


def _app_name(folder: Folder) -> str:
    """Return a name that only Sparks of this folder bear; it stands in their command line."""
    return f"natsstream quickstart ({folder.path})"


def _java_pid(spark: SparkSession) -> int:
    # Spark tells it nowhere else. Objects of the JVM have no types.
    context: Any = spark.sparkContext
    return int(context._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001
