"""Java's archive of Spark's classes: a local session starts and warms up in half the time.

`python -m pyspark_natsstream.class_archive` makes it, once for an environment, and `local_session`
uses it from then on.

Java reads some 15,000 classes before Spark has written a first table. The archive has them as Java
keeps them in memory. Java leaves an archive alone that is of another Java or of other jars.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention.

from natsstream.errors import ConfigError
from pyspark_natsstream.registration import register
from pyspark_natsstream.session import check_java, class_archive, local_session
from pyspark_natsstream.source import FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

_STOP_TIMEOUT_S = 120.0


def make_archive() -> Path:
    """Make the archive where there is none, and return its path.

    It has the classes that a small streaming query from files to a table needs.

    Raises:
        MissingExtraError: There is no Java, or it is too old.
        ConfigError: The environment cannot be written to, or Java made no archive.

    Cost: 25 s of processor time, 190 MB.
    """
    archive = class_archive(check_java())
    if archive.is_file():
        return archive
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=archive.parent))
    except OSError as error:
        message = f"{archive.parent} cannot be written"
        hint = "run it as the user who owns the environment"
        raise ConfigError(message, detail=str(error), hint=hint) from error
    try:
        made = folder / archive.name
        options = f"-XX:ArchiveClassesAtExit={made} -Xlog:cds*=off"
        spark = local_session(
            master="local[2]", config={"spark.driver.defaultJavaOptions": options}
        )
        _use(spark, folder)
        _end(spark)
        if not made.is_file():
            hint = "take OpenJDK 17 or newer, in a process without a session"
            raise ConfigError("Java made no archive of its classes", hint=hint)
        made.replace(archive)
    finally:
        shutil.rmtree(folder)
    return archive


def _use(spark: SparkSession, folder: Path) -> None:
    """Run what a first ingest runs; the server is not asked before a query starts."""
    register(spark)
    spark.readStream.format(FORMAT).options(servers="nats://127.0.0.1", stream="NONE").load()
    lines = folder / "lines"
    spark.range(1_000).withColumn("at", F.current_timestamp()).write.json(str(lines))
    rows = spark.readStream.schema("id bigint, at timestamp").json(str(lines))
    changed = rows.mapInArrow(_unchanged, rows.schema).withColumn("day", F.to_date("at"))
    writer = changed.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    table = writer.partitionBy("day").option("path", str(folder / "table"))
    table.trigger(availableNow=True).start().awaitTermination()
    spark.read.parquet(str(folder / "table")).groupBy("day").count().orderBy("day").collect()


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _end(spark: SparkSession) -> None:
    """Stop the session and wait for the end of its Java, which writes the archive."""
    # The gateway has no types.
    java: Any = getattr(spark.sparkContext, "_gateway").proc  # noqa: B009
    spark.stop()
    java.stdin.close()
    java.wait(_STOP_TIMEOUT_S)


if __name__ == "__main__":
    sys.stdout.write(f"{make_archive()}\n")
