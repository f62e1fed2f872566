"""`spark.read.format("nats")` against a real server."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark_natsstream.driver import StreamWatch
from pyspark_natsstream.executor import read_partition
from pyspark_natsstream.failures import typed_error
from pyspark_natsstream.plan import Partition
from pyspark_natsstream.read_options import ReadOptions
from pyspark_natsstream.schema import default_schema

from natsstream.errors import MessagesLostError, StreamRecreatedError
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from natsstream.errors import NatsStreamError
    from natsstream.testing import NatsServer
    from tests.spark.conftest import Feeder

ANSWER_WITHIN_S = 20
"""Spark's own planning may take seconds; a wait of ours would add its 30."""


def load(
    spark: SparkSession, server: NatsServer, stream: str, *, ddl: str = "", **options: str
) -> DataFrame:
    reader = spark.read.format("nats").options(servers=server.url, stream=stream, **options)
    return (reader.schema(ddl) if ddl else reader).load()


def sequences(frame: DataFrame) -> list[int]:
    """The sequences in the order in which Spark delivers them."""
    return [row.sequence for row in frame.select("sequence").collect()]


def failure_of(frame: DataFrame) -> NatsStreamError:
    """Run a read that must fail, and return the error of ours that Spark tells of."""
    with pytest.raises(PySparkException) as failed:
        frame.collect()
    error = typed_error(failed.value)
    assert error is not None, str(failed.value)
    return error


def test_read_returns_every_message_as_it_is_stored(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    payloads = [b"", b"MSG x 1 5\r\nhello\r\n", bytes(range(256)), "grüße".encode(), b"x" * 70_000]
    feed.create(stream_name)
    before = datetime.now(UTC)
    feed.publish([f"{stream_name}.{i}" for i in range(5)], lambda index: payloads[index])

    frame = load(spark, server, stream_name)

    rows = frame.collect()
    assert frame.columns == ["stream", "subject", "sequence", "time", "data"]
    assert [row.stream for row in rows] == [stream_name] * 5
    assert [row.subject for row in rows] == [f"{stream_name}.{i}" for i in range(5)]
    assert [row.sequence for row in rows] == [1, 2, 3, 4, 5]
    assert [bytes(row.data) for row in rows] == payloads
    times = [row.time.astimezone(UTC) for row in rows]
    assert times == sorted(times)
    assert abs(times[0] - before) < timedelta(minutes=1)


def test_read_of_an_empty_stream_has_no_rows(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)

    assert load(spark, server, stream_name).collect() == []


def test_schema_chooses_the_columns_and_their_order(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"])

    frame = load(spark, server, stream_name, ddl="sequence bigint, subject string")

    assert [tuple(row) for row in frame.collect()] == [(1, f"{stream_name}.a")]


@pytest.mark.parametrize(
    ("ddl", "complaint"),
    [
        ("seq bigint", "no column 'seq'"),
        ("Subject string", "no column 'Subject'"),
        ("sequence int", "sequence is bigint, not int"),
        ("time timestamp_ntz", "time is timestamp, not timestamp_ntz"),
    ],
)
def test_schema_with_a_column_that_does_not_exist_is_refused_with_the_list(
    spark: SparkSession, server: NatsServer, stream_name: str, ddl: str, complaint: str
) -> None:
    error = failure_of(load(spark, server, stream_name, ddl=ddl))

    assert complaint in error.message
    assert "sequence bigint" in error.hint


def test_filters_keep_only_matching_subjects(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.{name}" for name in ("eu.1", "us.1", "eu.2", "asia.1", "us.2")])

    filters = f"{stream_name}.eu.*, {stream_name}.asia.>"
    frame = load(spark, server, stream_name, subjects=filters, minPartitions="2")

    assert sequences(frame) == [1, 3, 4]


def test_headers_come_as_pairs_in_order_and_empty_where_there_are_none(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish(
        [f"{stream_name}.a"] * 3,
        headers=lambda index: None if index == 1 else {"Trace": f"t{index}", "Kind": "x"},
    )

    frame = load(spark, server, stream_name, includeHeaders="true")

    assert frame.columns == ["stream", "subject", "sequence", "time", "headers", "data"]
    found = [[(pair.key, pair.value) for pair in row.headers] for row in frame.collect()]
    assert found == [[("Trace", "t0"), ("Kind", "x")], [], [("Trace", "t2"), ("Kind", "x")]]


def test_deleted_messages_are_left_out_and_the_rest_is_read(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    """Gaps are legal: also a whole range of them, and one at the end."""
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 40)
    gone = [3, *range(11, 21), 38, 39, 40]
    feed.delete(stream_name, gone)

    frame = load(spark, server, stream_name, maxRecordsPerPartition="10")

    assert frame.rdd.getNumPartitions() == 4
    assert sequences(frame) == [number for number in range(1, 41) if number not in gone]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": "first_seq:7"}, range(7, 11)),
        ({"startingOffsets": "newest:3"}, range(8, 11)),
        ({"endingOffsets": "last_seq:4"}, range(1, 5)),
        ({"startingOffsets": "first_seq:4", "endingOffsets": "last_seq:4"}, range(4, 5)),
        ({"startingOffsets": "newest:3", "endingOffsets": "last_seq:4"}, range(2, 5)),
    ],
)
def test_range_of_a_read_is_what_the_options_say(
    spark: SparkSession,
    server: NatsServer,
    feed: Feeder,
    stream_name: str,
    options: dict[str, str],
    expected: range,
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 10)

    assert sequences(load(spark, server, stream_name, **options)) == list(expected)


def test_newest_counts_messages_of_the_subjects_and_no_holes(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.{'ab'[number % 2]}" for number in range(1, 21)])
    feed.delete(stream_name, [15, 19])

    frame = load(
        spark, server, stream_name, startingOffsets="newest:3", subjects=f"{stream_name}.b"
    )

    assert sequences(frame) == [11, 13, 17]


def test_times_split_a_stream_without_overlap(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    time.sleep(0.01)
    between = datetime.now(UTC).isoformat()
    time.sleep(0.01)
    feed.publish([f"{stream_name}.a"] * 5)

    earlier = load(spark, server, stream_name, endingOffsets=f"end_time:{between}")
    later = load(spark, server, stream_name, startingOffsets=f"start_time:{between}")

    assert sequences(earlier) == [1, 2, 3, 4, 5]
    assert sequences(later) == [6, 7, 8, 9, 10]


def test_second_action_reads_the_same_range_of_a_stream_that_has_grown(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    frame = load(spark, server, stream_name)
    first_count = frame.count()
    feed.publish([f"{stream_name}.a"] * 5)

    assert (first_count, frame.count()) == (5, 5)
    assert load(spark, server, stream_name).count() == 10


# Loss.


def test_start_that_was_purged_is_an_error_with_the_range(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 10)
    feed.purge(stream_name, last_seq=5)

    error = failure_of(load(spark, server, stream_name, startingOffsets="first_seq:2"))

    assert isinstance(error, MessagesLostError)
    assert (error.first_seq, error.last_seq) == (2, 5)
    assert "failOnDataLoss=false" in error.hint


def test_start_that_was_purged_is_left_out_when_loss_is_accepted(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 10)
    feed.purge(stream_name, last_seq=5)

    frame = load(spark, server, stream_name, startingOffsets="first_seq:2", failOnDataLoss="false")

    assert sequences(frame) == [6, 7, 8, 9, 10]


def test_purge_between_planning_and_reading_is_an_error_with_the_range(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 10)
    frame = load(spark, server, stream_name)
    assert frame.count() == 10  # Spark keeps the plan.
    feed.purge(stream_name, last_seq=5)

    error = failure_of(frame)

    assert isinstance(error, MessagesLostError)
    assert (error.first_seq, error.last_seq) == (1, 5)
    assert "failOnDataLoss=false" in error.hint


def test_purge_between_planning_and_reading_is_left_out_when_loss_is_accepted(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 10)
    frame = load(spark, server, stream_name, failOnDataLoss="false")
    assert frame.count() == 10  # Spark keeps the plan.
    feed.purge(stream_name, last_seq=5)

    assert sequences(frame) == [6, 7, 8, 9, 10]


def test_stream_created_anew_between_planning_and_reading_is_an_error(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 10)
    frame = load(spark, server, stream_name)
    assert frame.count() == 10  # Spark keeps the plan.
    feed.drop(stream_name)
    feed.create(stream_name)
    feed.publish([f"{stream_name}.b"] * 10)

    error = failure_of(frame)

    assert isinstance(error, StreamRecreatedError)
    assert "failOnDataLoss=false" in error.hint


def test_stream_created_anew_is_not_read_as_the_old_one_when_loss_is_accepted(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 10)
    frame = load(spark, server, stream_name, failOnDataLoss="false")
    assert frame.count() == 10  # Spark keeps the plan.
    feed.drop(stream_name)
    feed.create(stream_name)
    feed.publish([f"{stream_name}.b"] * 10)

    assert frame.count() == 0


# Errors that a user makes or meets.


def test_missing_stream_is_told_at_once_with_a_hint(
    spark: SparkSession, server: NatsServer, stream_name: str
) -> None:
    began_s = time.monotonic()

    error = failure_of(load(spark, server, stream_name))

    assert type(error).__name__ == "StreamNotFoundError"
    assert stream_name in error.message
    assert error.hint
    assert time.monotonic() - began_s < ANSWER_WITHIN_S


def test_illegal_stream_name_is_told_at_once_with_a_hint(
    spark: SparkSession, server: NatsServer
) -> None:
    began_s = time.monotonic()

    error = failure_of(load(spark, server, "my orders.>"))

    assert type(error).__name__ == "StreamNameError"
    assert error.hint
    assert time.monotonic() - began_s < ANSWER_WITHIN_S


def test_closed_port_is_told_at_once_with_a_hint(spark: SparkSession, stream_name: str) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # Bound but not listening: nobody answers, nobody else can.
        url = f"nats://127.0.0.1:{held.getsockname()[1]}"
        frame = spark.read.format("nats").options(servers=url, stream=stream_name).load()
        began_s = time.monotonic()

        error = failure_of(frame)

    assert type(error).__name__ == "ConnectError"
    assert url in error.message
    assert error.hint
    assert time.monotonic() - began_s < ANSWER_WITHIN_S


def test_unknown_option_fails_at_load_with_the_closest_name(
    spark: SparkSession, server: NatsServer, stream_name: str
) -> None:
    with pytest.raises(PySparkException, match="did you mean startingOffsets"):
        load(spark, server, stream_name, startingOffset="first_seq:5")


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
def test_stream_that_acks_drive_is_refused_with_the_way_out(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str, retention: str
) -> None:
    feed.create(stream_name, retention=retention)

    error = failure_of(load(spark, server, stream_name))

    assert retention in error.message
    assert "read the mirror" in error.hint


# Outages.


def test_range_is_read_whole_when_the_server_is_killed_in_the_middle(
    fresh_server: NatsServer, fresh_feed: Feeder, stream_name: str
) -> None:
    """Without Spark, so that the kill falls between the first batch and the rest."""
    count = 100_000
    fresh_feed.create(stream_name)
    fresh_feed.publish([f"{stream_name}.a"] * count, lambda index: b"%0400d" % index)
    options = ReadOptions.parse({"servers": fresh_server.url, "stream": stream_name})
    partition = Partition(
        stream=stream_name, first_seq=1, last_seq=count, created_ns=created_ns(options)
    )
    reading = read_partition(options, default_schema(include_headers=False), partition)
    batches = [next(reading)]

    fresh_server.kill()
    fresh_server.start()
    batches.extend(reading)

    found = [number for batch in batches for number in batch.column("sequence").to_pylist()]
    assert len(batches) > 2
    assert found == list(range(1, count + 1))


def test_spark_job_is_exact_when_the_server_is_killed_in_the_middle(
    spark: SparkSession, fresh_server: NatsServer, fresh_feed: Feeder, stream_name: str
) -> None:
    """The session tries a task once: what survives is the read, not Spark's retry."""
    count = 300_000
    fresh_feed.create(stream_name)
    fresh_feed.publish([f"{stream_name}.a"] * count, lambda index: b"%0200d" % index)
    frame = load(spark, fresh_server, stream_name, ddl="sequence bigint", minPartitions="2")
    counts = frame.selectExpr("count(*)", "count(distinct sequence)", "max(sequence)")
    counted: list[tuple[object, ...]] = []
    job = threading.Thread(target=lambda: counted.extend(map(tuple, counts.collect())))
    sent_before = out_messages(fresh_server)

    job.start()
    eventually(lambda: out_messages(fresh_server) > sent_before + 20_000, within_s=60)
    fresh_server.kill()
    fresh_server.start()
    job.join(90)

    assert counted == [(count, count, count)]


def created_ns(options: ReadOptions) -> int:
    with closing(StreamWatch(options)) as watch:
        return watch.state().created_ns


def out_messages(server: NatsServer) -> int:
    """Messages that the server has sent to all of its clients."""
    with urllib.request.urlopen(f"{server.monitor_url}/varz", timeout=5) as answer:  # noqa: S310 - http.
        told: dict[str, int] = json.load(answer)
    return told["out_msgs"]
