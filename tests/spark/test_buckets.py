"""Key-value buckets as tables of `format("nats")`, against a real server."""

from __future__ import annotations

import socket
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark_natsstream.failures import typed_error

from natsstream import blocking
from natsstream.errors import (
    BucketNotFoundError,
    ConfigError,
    NotABucketError,
    StreamRecreatedError,
)
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

    from natsstream.blocking import JetStream, KeyValue
    from natsstream.errors import NatsStreamError
    from natsstream.testing import NatsServer


@pytest.fixture
def js(server: NatsServer) -> Iterator[JetStream]:
    """A connection to the shared server."""
    with blocking.connect(server.url) as context:
        yield context


def load(spark: SparkSession, server: NatsServer, *, ddl: str = "", **options: str) -> DataFrame:
    reader = spark.read.format("nats").options(servers=server.url, **options)
    return (reader.schema(ddl) if ddl else reader).load()


def told(rows: list[Row]) -> list[tuple[str, bytes | None, int, str]]:
    """Key, value, revision and operation of each row, in the order in which Spark delivers them."""
    return [
        (row.key, None if row.value is None else bytes(row.value), row.revision, row.operation)
        for row in rows
    ]


def failure_of(read: Callable[[], object]) -> NatsStreamError:
    """Run a read that must fail, and return the error of ours that Spark tells of."""
    with pytest.raises(PySparkException) as failed:
        read()
    error = typed_error(failed.value)
    assert error is not None, str(failed.value)
    return error


class Query:
    """A streaming query of a bucket into Parquet files; each run takes what there is."""

    def __init__(
        self, spark: SparkSession, server: NatsServer, folder: Path, **options: str
    ) -> None:
        self._spark = spark
        self._options = {"servers": server.url, **options}
        self._out, self._checkpoint = str(folder / "out"), str(folder / "checkpoint")

    def run(self) -> None:
        """Run to the bucket's end."""
        frame = self._spark.readStream.format("nats").options(**self._options).load()
        writer = frame.writeStream.option("checkpointLocation", self._checkpoint)
        query = writer.trigger(availableNow=True).start(self._out)
        try:
            query.awaitTermination()
        finally:
            query.stop()

    def rows(self) -> list[Row]:
        """All rows so far, in the order of their revisions."""
        return self._spark.read.parquet(self._out).orderBy("revision").collect()


def test_batch_read_is_the_live_keys_with_their_newest_values(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    kv = js.kv.create(stream_name, history=3)
    before = datetime.now(UTC)
    for key, value in (("a.1", b"old"), ("a.1", b"\x00\xff"), ("b", b"x"), ("c", b""), ("d", b"")):
        kv.put(key, value)
    kv.delete("b")
    kv.purge("d")

    frame = load(spark, server, bucket=stream_name)

    rows = frame.collect()
    assert frame.columns == ["bucket", "key", "value", "revision", "created", "operation"]
    assert told(rows) == [("a.1", b"\x00\xff", 2, "PUT"), ("c", b"", 4, "PUT")]
    assert {row.bucket for row in rows} == {stream_name}
    assert abs(rows[0].created.astimezone(UTC) - before) < timedelta(minutes=1)


def test_keys_are_filtered_and_may_overlap(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    kv = js.kv.create(stream_name)
    for key in ("orders.1", "orders.eu.2", "eu.a.b", "us.a"):
        kv.put(key, key.encode())

    frame = load(spark, server, bucket=stream_name, keys="orders.*,eu.>,eu.a.*", ddl="key string")

    assert [tuple(row) for row in frame.collect()] == [("orders.1",), ("eu.a.b",)]


def test_history_is_every_revision_that_is_kept_in_ranges(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    kv = js.kv.create(stream_name, history=2)
    for number in range(3):
        kv.put("a", b"%d" % number)
    kv.put("b", b"x")
    kv.delete("a")
    kv.purge("b")

    frame = load(spark, server, bucket=stream_name, history="true", minPartitions="3")

    assert told(frame.collect()) == [
        ("a", b"2", 3, "PUT"),
        ("a", None, 5, "DEL"),
        ("b", None, 6, "PURGE"),
    ]
    part = load(
        spark,
        server,
        bucket=stream_name,
        history="true",
        startingOffsets="first_seq:1",
        endingOffsets="last_seq:4",
    )
    assert told(part.collect()) == [("a", b"2", 3, "PUT")]


def test_keys_written_or_deleted_since_the_plan_are_as_they_are_now(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    kv = js.kv.create(stream_name)
    for key in ("a", "b", "c"):
        kv.put(key, b"old")
    frame = load(spark, server, bucket=stream_name)
    assert frame.count() == 3

    kv.put("a", b"new")
    kv.delete("b")

    assert told(frame.collect()) == [("c", b"old", 3, "PUT"), ("a", b"new", 4, "PUT")]


def test_bucket_made_anew_since_the_plan_is_a_loss(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    frames: list[DataFrame] = []
    js.kv.create(stream_name).put("a", b"1")
    for history in ("false", "true"):
        frames.append(load(spark, server, bucket=stream_name, history=history))
        assert frames[-1].count() == 1
    js.kv.delete(stream_name)
    js.kv.create(stream_name).put("a", b"2")

    for frame in frames:
        error = failure_of(frame.collect)
        assert isinstance(error, StreamRecreatedError)
        assert "failOnDataLoss" in error.hint


def test_mirror_of_a_bucket_has_the_keys_of_its_origin(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    js.kv.create(stream_name).put("a.b", b"1")
    mirror = js.kv.create(f"{stream_name}_m", mirror=stream_name)
    with mirror.watch() as watch:
        assert next(iter(watch)).key == "a.b"

    frame = load(spark, server, bucket=mirror.name, keys="a.*")

    assert [(row.bucket, row.key) for row in frame.collect()] == [(mirror.name, "a.b")]


def test_key_that_is_no_utf8_is_visible(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    """Clients refuse such a key, and a server stores it."""
    js.kv.create(stream_name)
    js.publish(f"$KV.{stream_name}.grüße", b"1")
    subject = f"$KV.{stream_name}.".encode() + b"\xff"
    with closing(socket.create_connection(("127.0.0.1", server.port))) as wire:
        wire.sendall(b"CONNECT {}\r\nPUB " + subject + b" 1\r\n2\r\nPING\r\n")
        while b"PONG" not in wire.recv(65_536):
            pass
    eventually(lambda: js.kv.get(stream_name).status().keys == 2)

    rows = load(spark, server, bucket=stream_name).collect()

    assert [row.key for row in rows] == ["grüße", "\ufffd"]


def test_bucket_that_is_none_is_told_in_its_own_words(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    js.streams.create(f"KV_{stream_name}", subjects=[f"{stream_name}.>"])

    def failure(bucket: str) -> NatsStreamError:
        return failure_of(lambda: load(spark, server, bucket=bucket).collect())

    assert isinstance(failure("nothing"), BucketNotFoundError)
    assert isinstance(failure(stream_name), NotABucketError)


def test_query_reads_the_changes_and_continues_at_its_checkpoint(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    kv: KeyValue[bytes] = js.kv.create(stream_name)
    kv.put("a", b"1")
    kv.put("b", b"1")
    query = Query(spark, server, tmp_path, bucket=stream_name)
    query.run()
    kv.put("a", b"2")
    kv.delete("b")
    # Replaced before the query comes to it, and with it the beginning of the stream.
    kv.put("a", b"3")
    kv.purge("a")

    query.run()

    assert told(query.rows()) == [
        ("a", b"1", 1, "PUT"),
        ("b", b"1", 2, "PUT"),
        ("b", None, 4, "DEL"),
        ("a", None, 6, "PURGE"),
    ]


def test_query_fails_when_its_bucket_is_made_anew(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    js.kv.create(stream_name).put("a", b"1")
    query = Query(spark, server, tmp_path, bucket=stream_name)
    query.run()
    js.kv.delete(stream_name)
    js.kv.create(stream_name).put("a", b"2")

    assert isinstance(failure_of(query.run), StreamRecreatedError)
    assert len(query.rows()) == 1


def test_refused_query_says_why_and_shows_no_error_of_the_worker(
    spark: SparkSession, server: NatsServer, tmp_path: Path
) -> None:
    query = Query(spark, server, tmp_path, objectBucket="o")

    with pytest.raises(PySparkException) as failed:
        query.run()

    assert isinstance(typed_error(failed.value), ConfigError)
    assert "UnboundLocalError" not in str(failed.value)
