"""Spark Connect: a client without Java, whose server has the package."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from natsstream import blocking

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from natsstream.testing import NatsServer

TIMEOUT_S = 240
ROWS = 200

# Reads a stream with a filter that the source applies, then copies it with a streaming query.
CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from pyspark_natsstream.failures import typed_error
from pyspark_natsstream.listener import progress_of

spark_url, url, source, target, checkpoint = sys.argv[1:]
spark = SparkSession.builder.remote(spark_url).getOrCreate()
given = {"servers": url, "stream": source}
rows = spark.read.format("nats").options(**given).load().where("sequence > 150").count()
try:
    spark.read.format("nats").options(servers=url, stream="missing").load().count()
except Exception as error:
    refused = type(typed_error(error)).__name__
query = (
    spark.readStream.format("nats").options(**given, startingOffsets="earliest").load()
    .select("data").writeStream.format("nats")
    .options(servers=url, stream=target, updateStream="true", subject=f"{target}.n")
    .option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
)
query.awaitTermination()
lag = [each.lag for each in progress_of(query.lastProgress)]
print(json.dumps({"rows": rows, "refused": refused, "lag": lag}))
"""


def connect_url(spark: SparkSession) -> str:
    """Return where the session's Spark listens for clients."""
    session: Any = spark
    service = getattr(session._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return f"sc://127.0.0.1:{getattr(service, 'MODULE$').server().getPort()}"


def test_client_reads_and_writes_streams(
    spark: SparkSession, server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    source, target = f"{stream_name}-source", f"{stream_name}-target"
    data = [b"%d" % number for number in range(ROWS)]
    with blocking.connect(server.url) as js:
        for name in (source, target):
            js.streams.create(name, subjects=[f"{name}.>"])
        with js.publisher() as publisher:
            publisher.send_many([(f"{source}.n", each) for each in data])
    words = (connect_url(spark), server.url, source, target, str(tmp_path / "checkpoint"))

    done = subprocess.run(
        [sys.executable, "-c", CLIENT, *words],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["rows"] == ROWS - 150
    assert told["refused"] == "StreamNotFoundError"
    assert told["lag"] == [0]
    with blocking.connect(server.url) as js:
        assert sorted(message.data for message in js.streams.get(target).read()) == sorted(data)
