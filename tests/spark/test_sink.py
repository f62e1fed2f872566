"""`df.write.format("nats")` and `df.writeStream`: each row is stored once, whatever fails."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow  # noqa: ICN001 - `pa` is its untyped form.
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention.
from pyspark_natsstream.failures import typed_error
from pyspark_natsstream.registration import register
from pyspark_natsstream.sink import NatsWriter, TaskDone
from pyspark_natsstream.stored_rows import InputChangedError
from pyspark_natsstream.write_options import WriteOptions
from pyspark_natsstream.writing import Written, write_partition

from natsstream import blocking
from natsstream.errors import ConfigError, NatsStreamError, StaleEpochError, WrongStreamError
from natsstream.testing import NatsServer

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from natsstream.blocking import JetStream

ROWS = 5_000
KILLS_MAX = 5
# Its types lack most of it.
pa: Any = pyarrow


@pytest.fixture
def js(server: NatsServer) -> Iterator[JetStream]:
    with blocking.connect(server.url, request_timeout=30) as js:
        yield js


@pytest.fixture
def out(js: JetStream, stream_name: str) -> str:
    """The name of an empty stream."""
    js.streams.create(stream_name, subjects=[f"{stream_name}.>"], duplicate_window=600)
    return stream_name


def numbers(spark: SparkSession, count: int = ROWS, partitions: int = 3) -> DataFrame:
    """Rows with the data `0`, `1` and so on, in order within a partition."""
    return spark.range(0, count, numPartitions=partitions).select(
        F.col("id").cast("string").alias("data"), "id"
    )


def save(rows: DataFrame, server: NatsServer, stream: str, **options: str) -> None:
    given = {"servers": server.url, "stream": stream, "updateStream": "true"} | options
    rows.write.format("nats").options(**given).mode("append").save()


def stored(js: JetStream, stream: str) -> list[bytes]:
    return [message.data for message in js.streams.get(stream).read()]


def check_once(found: list[bytes], count: int = ROWS) -> None:
    """Each of the numbers is there once."""
    assert Counter(found) == Counter(b"%d" % number for number in range(count))


def refusal(rows: DataFrame, server: NatsServer, stream: str, **options: str) -> NatsStreamError:
    with pytest.raises(PySparkException) as caught:
        save(rows, server, stream, **options)
    error = typed_error(caught.value)
    assert error is not None, caught.value
    return error


def test_each_row_is_stored_once_and_in_order_of_its_partition(
    spark: SparkSession, server: NatsServer, js: JetStream, out: str
) -> None:
    rows = numbers(spark).withColumn("kind", F.col("id") % 2).drop("id")
    save(rows, server, out, subject=f"{out}.{{kind}}")

    messages = [*js.streams.get(out).read()]
    check_once([message.data for message in messages])
    assert all(m.subject == f"{out}.{int(m.data) % 2}" for m in messages)
    third = ROWS // 3 + 1
    for first in range(0, ROWS, third):
        part = [n for m in messages if first <= (n := int(m.data)) < first + third - 2]
        assert part == sorted(part)


def test_stream_of_another_write_is_copied_with_its_headers(
    spark: SparkSession, server: NatsServer, js: JetStream, out: str
) -> None:
    """Its messages carry what the server needed to store them, which nobody else may repeat."""
    pair = F.struct(F.lit("Kind").alias("key"), F.lit("x").alias("value"))
    rows = numbers(spark, 20, 1).select("data", F.array(pair).alias("headers"))
    save(rows, server, out, subject=f"{out}.n")
    other = f"{out}-copy"
    js.streams.create(other, subjects=[f"{other}.>"], allow_rollup_hdrs=True, duplicate_window=600)
    given = {"servers": server.url, "stream": out, "includeHeaders": "true"}
    for guarantee in ("exactly-once", "duplicate-window"):
        messages = spark.read.format("nats").options(**given).load()
        save(messages, server, other, subject=f"{other}.n", guarantee=guarantee)

    found = [*js.streams.get(other).read()]
    assert [message.data for message in found] == 2 * [b"%d" % number for number in range(20)]
    assert all(message.headers["Kind"] == "x" for message in found)


def test_headers_and_subjects_come_from_columns(
    spark: SparkSession, server: NatsServer, js: JetStream, out: str
) -> None:
    pair = F.struct(F.lit("Kind").alias("key"), F.lit("x").alias("value"))
    rows = numbers(spark, 2, 1).select(
        "data", F.lit(f"{out}.a").alias("subject"), F.array(pair, pair).alias("headers")
    )
    save(rows, server, out)
    save(rows.withColumn("headers", F.create_map(F.lit("Own"), F.lit("y"))), server, out)

    one, _, three, _ = js.streams.get(out).read()
    assert one.headers.all("Kind") == ("x", "x")
    assert three.headers["Own"] == "y"
    assert three.subject == f"{out}.a"


def test_write_of_the_same_job_stores_what_is_missing(
    spark: SparkSession, server: NatsServer, js: JetStream, out: str
) -> None:
    """The first write fails in the middle of each partition."""
    options = {"subject": f"{out}.n", "job": "backfill"}
    # More than what stands in buffers, which a task that fails throws away.
    wide = F.rpad("data", 300, " ").alias("data")
    rows, size = numbers(spark, 24_000), "spark.sql.execution.arrow.maxRecordsPerBatch"
    rows = rows.select(wide, "id")
    failing = F.expr("if(id % 8000 = 7900, raise_error('no power'), data)").alias("data")
    spark.conf.set(size, "500")
    try:
        with pytest.raises(PySparkException, match="no power"):
            save(rows.select(failing), server, out, **options)
    finally:
        spark.conf.unset(size)
    assert 0 < len(stored(js, out)) < 24_000
    rows = rows.drop("id")
    for _ in range(2):
        save(rows, server, out, **options)
        check_once([data.rstrip() for data in stored(js, out)], 24_000)
    # Another job, or none, is another write.
    save(rows, server, out, subject=f"{out}.n")
    assert len(stored(js, out)) == 48_000


def test_write_again_with_other_rows_is_refused(
    spark: SparkSession, server: NatsServer, js: JetStream, out: str
) -> None:
    options = {"subject": f"{out}.n", "job": "x"}
    rows = numbers(spark, 100, 1).drop("id")
    save(rows, server, out, **options)
    changes = [
        rows.orderBy(F.desc("data")),
        rows.limit(50),
        numbers(spark, 101, 1).select(F.lit("0").alias("data")),
    ]
    for changed in changes:
        error = refusal(changed, server, out, **options)
        assert isinstance(error, InputChangedError)
        assert "sort within partitions" in error.hint
    check_once(stored(js, out), 100)


def test_attempt_that_was_replaced_stores_nothing_more(
    server: NatsServer, js: JetStream, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two attempts of one task at once, as Spark's speculation begins them."""

    class Context:
        def partitionId(self) -> int:  # noqa: N802 - Spark's.
            return 0

        def attemptNumber(self) -> int:  # noqa: N802
            return 0

        def getLocalProperty(self, _: str) -> None:  # noqa: N802
            return None

    monkeypatch.setattr(TaskContext, "get", Context)
    given = {"servers": server.url, "stream": out, "subject": f"{out}.n", "job": "x"}
    options = WriteOptions.parse(given | {"updateStream": "true"})

    def batch(first: int) -> Any:
        return pa.RecordBatch.from_pydict({"data": [str(n) for n in range(first, first + 2_000)]})

    def slow() -> Iterator[Any]:
        yield batch(0)
        assert write_partition(options, iter([batch(0), batch(2_000)])).rows == 4_000
        yield batch(2_000)

    with pytest.raises(StaleEpochError):
        write_partition(options, slow())
    check_once(stored(js, out), 4_000)
    again = write_partition(options, iter([batch(0), batch(2_000)]))
    assert again == (4_000, 4_000)
    with pytest.raises(InputChangedError, match="and has 0"):
        write_partition(options, iter([]))


def copy(spark: SparkSession, server: NatsServer, source: str, out: str, folder: Path) -> None:
    """Copy a stream with a streaming query, up to its end."""
    messages = (
        spark.readStream.format("nats")
        .options(servers=server.url, stream=source, maxMessagesPerTrigger="1500")
        .options(minPartitions="2", reconnectTimeout="60")
        .load()
    )
    query = (
        messages.writeStream.format("nats")
        .options(servers=server.url, stream=out, updateStream="true", subject=f"{out}.n")
        .options(checkpointLocation=str(folder), reconnectTimeout="60")
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()


def test_micro_batch_that_runs_again_stores_nothing_twice(
    spark: SparkSession, server: NatsServer, js: JetStream, out: str, tmp_path: Path
) -> None:
    """As after a crash between the last row and Spark's note that the batch has ended."""
    source = f"{out}-source"
    js.streams.create(source, subjects=[f"{source}.>"])
    with js.publisher() as publisher:
        publisher.send_many([(f"{source}.n", b"%d" % number) for number in range(ROWS)])
    copy(spark, server, source, out, tmp_path)
    check_once(stored(js, out))

    commits = sorted((tmp_path / "commits").glob("[0-9]*"), key=lambda each: int(each.name))
    assert len(commits) == 4
    commits[-1].unlink()
    (tmp_path / "commits" / f".{commits[-1].name}.crc").unlink()
    copy(spark, server, source, out, tmp_path)
    check_once(stored(js, out))


def test_kills_of_the_server_lose_nothing_and_store_nothing_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    with NatsServer(store_dir=tmp_path / "store") as server:
        with blocking.connect(server.url, request_timeout=30) as js:
            for name in ("IN", "OUT"):
                js.streams.create(name, subjects=[f"{name}.>"])
            with js.publisher() as publisher:
                publisher.send_many([("IN.n", b"%d" % number) for number in range(ROWS)])
        # A query that begins while no server answers fails at once, as it should.
        begun = tmp_path / "checkpoint" / "offsets" / "0"
        with killing(server, begun) as kills:
            copy(spark, server, "IN", "OUT", tmp_path / "checkpoint")
        assert kills
        with blocking.connect(server.url, request_timeout=30) as js:
            check_once(stored(js, "OUT"))


def test_threads_that_have_registered_the_format_start_queries_at_one_moment(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    """Spark looks for a sink of Python in the session that is active in the thread, and a new
    thread has none."""
    outs = [f"{stream_name}-{number}" for number in (1, 2)]
    for name in (stream_name, *outs):
        js.streams.create(name, subjects=[f"{name}.>"])
    for number in range(10):
        js.publish(f"{stream_name}.n", b"%d" % number)
    both = threading.Barrier(len(outs), timeout=30)

    def start(out: str) -> None:
        both.wait()
        register(spark)
        copy(spark, server, stream_name, out, tmp_path / out)

    with ThreadPoolExecutor(len(outs)) as pool:
        for each in [pool.submit(start, out) for out in outs]:
            each.result()
    for out in outs:
        check_once(stored(js, out), 10)


@contextmanager
def killing(server: NatsServer, begun: Path) -> Generator[list[float]]:
    """Kill the server again and again, and start it; the moments come into the list.

    The first kill waits for a file of a query that has begun.
    """
    kills: list[float] = []
    is_over = threading.Event()

    def kill() -> None:
        while not begun.exists() and not is_over.wait(0.01):
            pass
        while not is_over.wait(0.5) and len(kills) < KILLS_MAX:
            server.kill()
            kills.append(time.monotonic())
            time.sleep(0.5)
            server.start()

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield kills
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize("id_column", ["", "id"])
def test_message_ids_keep_a_write_from_being_stored_twice(
    spark: SparkSession, server: NatsServer, js: JetStream, out: str, id_column: str
) -> None:
    options = {"guarantee": "duplicate-window", "subject": f"{out}.n", "job": "x"}
    rows = numbers(spark).withColumn("id", F.concat(F.lit("id-"), "id"))
    if id_column:
        options["idColumn"] = id_column
    else:
        rows = rows.drop("id")
    for _ in range(2):
        save(rows, server, out, updateStream="false", **options)
        check_once(stored(js, out))
    config = js.streams.get(out).cached.config
    assert not config.allow_atomic
    error = refusal(rows, server, out, minDuplicateWindow="601", **options)
    assert "duplicate window of 600 s" in str(error)


def test_writes_that_cannot_be(
    spark: SparkSession, server: NatsServer, js: JetStream, out: str
) -> None:
    rows = numbers(spark, 3, 1).drop("id")
    error = refusal(rows, server, out, subject=f"{out}.n", updateStream="false")
    assert isinstance(error, ConfigError)
    assert "allow_atomic" in str(error)
    assert isinstance(refusal(rows, server, out, subject="elsewhere"), WrongStreamError)
    empty = rows.select(F.lit(None).cast("string").alias("data"))
    assert "no data" in str(refusal(empty, server, out, subject=f"{out}.n"))
    assert "startingoffsets" in str(refusal(rows, server, out, startingOffsets="earliest"))
    with pytest.raises(PySparkException, match="only appends"):
        rows.write.format("nats").options(servers=server.url, stream=out).mode("overwrite").save()
    assert stored(js, out) == []


def test_write_with_more_partitions_than_it_says_is_refused(
    spark: SparkSession, server: NatsServer, out: str
) -> None:
    rows = numbers(spark, 9).drop("id")

    error = refusal(rows, server, out, subject=f"{out}.n", job="few", partitions="2")

    assert isinstance(error, ConfigError)
    assert error.message == "partitions is 2, and the DataFrame has more"


@pytest.mark.parametrize(("given", "is_told"), [(None, False), (3, False), (7, True)])
def test_other_number_of_partitions_is_told_when_the_write_has_ended(
    caplog: pytest.LogCaptureFixture, *, given: int | None, is_told: bool
) -> None:
    options = WriteOptions(servers=("nats://h",), stream="A", partitions=given)

    NatsWriter(options).commit([TaskDone(Written())] * 3)

    told = "the option partitions is 7, and the DataFrame has 3 partitions; "
    assert (told in caplog.text) == is_told
