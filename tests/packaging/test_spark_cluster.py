"""The zip on clusters of separate processes: `spark-submit --py-files`, client mode.

One kind of cluster a day. Each starts three to five JVMs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from natsstream import blocking
from scripts.chaos_runs.spark.cluster import JAVA_OPTIONS, SparkCluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from natsstream.testing import NatsServer

pytestmark = [pytest.mark.spark, pytest.mark.sampled, pytest.mark.timeout(600)]

COUNT = 3_000
SUBMIT_TIMEOUT_S = 240.0

# Copies a batch into a stream, then a query that ends; tells where executors found natsstream.
JOB = """
import json, sys
from pyspark.sql import SparkSession, functions as F
from pyspark_natsstream import register

def home():
    import natsstream
    return natsstream.__file__

url, source, target, checkpoint = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
register(spark)
given = {"servers": url, "stream": source}
sink = {"servers": url, "stream": target, "updateStream": "true"}
rows = spark.read.format("nats").options(**given, minPartitions="2").load()
homes = rows.select(F.udf(home, "string")().alias("home"), F.spark_partition_id().alias("p"))
found = homes.distinct().collect()
batch = rows.select("data").write.format("nats").options(**sink, subject=f"{target}.batch")
batch.mode("append").save()
query = (
    spark.readStream.format("nats").options(**given, startingOffsets="earliest").load()
    .select("data").writeStream.format("nats").options(**sink, subject=f"{target}.query")
    .option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
)
query.awaitTermination()
homes = sorted({row["home"] for row in found})
print(json.dumps({"homes": homes, "partitions": len(found)}))
"""


@pytest.fixture(params=["standalone", "local-cluster"])
def master(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The master's address: of a cluster of its own, or of one that the driver starts."""
    if request.param == "local-cluster":
        yield "local-cluster[1,2,1024]"
        return
    cluster = SparkCluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster.url
    finally:
        assert cluster.stop() == []


def submit(
    master: str, zipped: Path, job: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run a job on the cluster, in client mode."""
    settings = {
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    flags = [word for name, text in settings.items() for word in ("--conf", f"{name}={text}")]
    words = ["--master", master, "--driver-memory", "512m", "--py-files", str(zipped)]
    return subprocess.run(
        [str(Path(sys.executable).with_name("spark-submit")), *words, *flags, str(job), *arguments],
        capture_output=True,
        text=True,
        timeout=SUBMIT_TIMEOUT_S,
        check=False,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )


def test_zip_reads_and_writes_on_separate_executors(
    built: Mapping[str, Path],
    master: str,
    server: NatsServer,
    stream_name: str,
    tmp_path: Path,
) -> None:
    """A batch and a query, source and sink; the executors import natsstream from the zip."""
    job, target = tmp_path / "job.py", f"{stream_name}-out"
    job.write_text(JOB)
    with blocking.connect(server.url, request_timeout=30) as js:
        js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
        out = js.streams.create(target, subjects=[f"{target}.>"])
        with js.publisher() as publisher:
            publisher.send_many((f"{stream_name}.a", b"%d" % n) for n in range(COUNT))

        arguments = (server.url, stream_name, target, str(tmp_path / "checkpoint"))
        done = submit(master, built[".zip"], job, *arguments)

        assert done.returncode == 0, done.stderr[-4_000:]
        told = json.loads(done.stdout.splitlines()[-1])
        assert told["partitions"] == 2
        assert [".zip/natsstream/" in home for home in told["homes"]] == [True]
        for kind in ("batch", "query"):
            found = out.read(filters=[f"{target}.{kind}"])
            assert sorted(int(message.data) for message in found) == [*range(COUNT)]
