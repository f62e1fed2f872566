"""`spark.readStream.format("nats")` against a real server: queries that end, and restarts."""

from __future__ import annotations

import json
import re
import shutil
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark.sql.types import LongType, StructField, StructType
from pyspark_natsstream.checkpoint import pin_start
from pyspark_natsstream.driver import STATE_AGE_MAX_S
from pyspark_natsstream.failures import typed_error
from pyspark_natsstream.offsets import OffsetError, parse_offset
from pyspark_natsstream.read_options import ReadOptions
from pyspark_natsstream.streaming import NatsStreamReader

from natsstream import blocking
from natsstream.errors import ConfigError, MessagesLostError, StreamRecreatedError
from natsstream.units import format_rfc3339
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from natsstream.errors import NatsStreamError
    from natsstream.testing import NatsServer
    from tests.spark.conftest import Feeder

# Each run takes a fifth of them; --sampled=all takes all.
pytestmark = pytest.mark.sampled

QUERY_WITHIN_S = 240

SEQUENCES = StructType([StructField("sequence", LongType())])

AWAY_S = 1.5
"""Longer than a request waits, so that hooks fail, and much less than `reconnectTimeout`."""


class Ingest:
    """One query with its checkpoint and its output, run as often as a test likes."""

    def __init__(
        self, spark: SparkSession, folder: Path, options: Mapping[str, str], *, ddl: str = ""
    ) -> None:
        self._spark = spark
        self._out = str(folder / "out")
        self._checkpoint = str(folder / "checkpoint")
        self._options = dict(options)
        self._ddl = ddl

    def start(
        self, options: Mapping[str, str] | None = None, *, is_endless: bool = False
    ) -> StreamingQuery:
        """Start the query; `options` are added to those of the test."""
        reader = self._spark.readStream.format("nats").options(
            **(self._options | dict(options or {}))
        )
        frame = (reader.schema(self._ddl) if self._ddl else reader).load()
        writer = frame.writeStream.format("parquet").option("checkpointLocation", self._checkpoint)
        if is_endless:
            return writer.trigger(processingTime="0 seconds").start(self._out)
        return writer.trigger(availableNow=True).start(self._out)

    def run(self, **options: str) -> list[int]:
        """Run the query to its end and return the messages of each micro-batch."""
        query = self.start(options)
        assert query.awaitTermination(QUERY_WITHIN_S)
        return [each.numInputRows or 0 for each in query.recentProgress if each.numInputRows]

    def fail(self, **options: str) -> NatsStreamError:
        """Run a query that must fail, and return the error of ours that Spark tells of."""
        query = self.start(options)
        with pytest.raises(PySparkException) as failed:
            query.awaitTermination(QUERY_WITHIN_S)
        error = typed_error(failed.value)
        assert error is not None, str(failed.value)
        return error

    def sequences(self) -> list[int]:
        """What the output holds, in order; a message that came twice stands there twice."""
        frame = self._spark.read.schema("sequence bigint").parquet(self._out)
        return sorted(row.sequence for row in frame.collect())

    def subjects(self) -> list[str]:
        """The subjects of the output, in order of sequence."""
        frame = self._spark.read.parquet(self._out).orderBy("sequence")
        return [row.subject for row in frame.collect()]


@pytest.fixture
def ingest(spark: SparkSession, server: NatsServer, stream_name: str, tmp_path: Path) -> Ingest:
    """A query on the test's own stream of the shared server."""
    return Ingest(spark, tmp_path, {"servers": server.url, "stream": stream_name})


def test_second_run_ingests_nothing_twice(ingest: Ingest, feed: Feeder, stream_name: str) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 50)

    assert ingest.run() == [50]
    assert ingest.run() == []
    assert ingest.sequences() == list(range(1, 51))


def test_restart_reads_only_what_came_since(ingest: Ingest, feed: Feeder, stream_name: str) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 50)
    ingest.run()
    feed.publish([f"{stream_name}.a"] * 30)

    assert ingest.run() == [30]
    assert ingest.sequences() == list(range(1, 81))


def test_query_on_an_empty_stream_ends_and_reads_later_what_came(
    ingest: Ingest, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)

    assert ingest.run() == []
    feed.publish([f"{stream_name}.a"] * 5)
    assert ingest.run() == [5]


def test_limit_of_messages_cuts_the_backlog_into_micro_batches(
    ingest: Ingest, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 50)

    assert ingest.run(maxMessagesPerTrigger="20") == [20, 20, 10]
    assert ingest.sequences() == list(range(1, 51))


def test_limit_of_bytes_cuts_the_backlog_into_micro_batches(
    ingest: Ingest, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 40, lambda _: b"x" * 10_000)

    batches = ingest.run(maxBytesPerTrigger="110000")

    assert sum(batches) == 40
    assert all(9 <= count <= 11 for count in batches[:-1])


def test_both_limits_hold_together(ingest: Ingest, feed: Feeder, stream_name: str) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 40, lambda _: b"x" * 10_000)

    batches = ingest.run(maxMessagesPerTrigger="15", maxBytesPerTrigger="110000")

    assert sum(batches) == 40
    assert max(batches) <= 11


def test_latest_leaves_out_what_was_there_before(
    ingest: Ingest, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    assert ingest.run(startingOffsets="latest") == []
    feed.publish([f"{stream_name}.a"] * 3)

    assert ingest.run(startingOffsets="latest") == [3]
    assert ingest.sequences() == [6, 7, 8]


def test_schema_and_filters_choose_in_a_query_too(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str, tmp_path: Path
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.{name}" for name in ("a", "b", "a", "b")])
    options = {"servers": server.url, "stream": stream_name, "subjects": f"{stream_name}.b"}
    ingest = Ingest(spark, tmp_path, options, ddl="subject string, sequence bigint")

    assert ingest.run() == [2]
    assert ingest.sequences() == [2, 4]
    assert ingest.subjects() == [f"{stream_name}.b"] * 2


# The hooks, asked as Spark asks them.


@pytest.fixture
def reader(server: NatsServer, feed: Feeder, stream_name: str) -> Iterator[NatsStreamReader]:
    """A reader that begins at the end of the test's stream, which has five messages."""
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    options = {"servers": server.url, "stream": stream_name, "startingOffsets": "latest"}
    made = NatsStreamReader(ReadOptions.parse(options), SEQUENCES)
    yield made
    made.stop()


def next_of(offset: dict[str, object], stream: str) -> int:
    return parse_offset(offset, stream=stream).next_seq


def test_start_is_the_same_however_often_it_is_asked(
    reader: NatsStreamReader, feed: Feeder, stream_name: str
) -> None:
    """Spark asks twice: a later second answer would lie behind the end of the first batch."""
    first = reader.initialOffset()
    feed.publish([f"{stream_name}.a"] * 5)

    assert reader.initialOffset() == first
    assert next_of(first, stream_name) == 6


def test_start_of_a_job_is_the_same_after_a_restart(
    server: NatsServer, feed: Feeder, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Before the first batch has ended Spark asks a new process for the start again."""
    feed.create(stream_name)
    given = {"servers": server.url, "stream": stream_name, "startingOffsets": "latest"}

    def start(**job: str) -> int:
        reader = NatsStreamReader(ReadOptions.parse(given | job), SEQUENCES)
        try:
            return next_of(reader.initialOffset(), stream_name)
        finally:
            reader.stop()

    name = f"{stream_name} *.> \u00e4"
    assert start(job=name) == 1
    feed.publish([f"{stream_name}.a"] * 4)
    assert (start(job=name), start(job=f"{name}2"), start(job=f"{name}2")) == (1, 5, 5)
    assert not caplog.records
    feed.publish([f"{stream_name}.a"])
    assert (start(job=name), start()) == (1, 6)
    assert "the option job keeps the start" in caplog.text


def test_query_that_ends_does_not_read_what_came_after_its_start(
    reader: NatsStreamReader, feed: Feeder, stream_name: str
) -> None:
    start = reader.initialOffset()
    feed.publish([f"{stream_name}.a"] * 3)
    reader.prepareForTriggerAvailableNow()
    feed.publish([f"{stream_name}.a"] * 3)
    time.sleep(2 * STATE_AGE_MAX_S)

    end = reader.latestOffset(start, ReadAllAvailable())

    assert next_of(end, stream_name) == 9
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert next_of(reader.reportLatestOffset(), stream_name) == 12


def test_limit_that_spark_hands_over_is_kept(
    reader: NatsStreamReader, feed: Feeder, stream_name: str
) -> None:
    start = reader.initialOffset()
    feed.publish([f"{stream_name}.a"] * 9)
    time.sleep(2 * STATE_AGE_MAX_S)

    assert next_of(reader.latestOffset(start, ReadMaxRows(2)), stream_name) == 8
    assert next_of(reader.latestOffset(start, ReadMinRows(9)), stream_name) == 15
    assert reader.latestOffset(start, ReadMinRows(10)) == start
    with pytest.raises(ConfigError, match="ReadMaxFiles"):
        reader.latestOffset(start, ReadMaxFiles(1))


def test_idle_query_asks_the_server_no_more_than_ten_times_a_second(
    fresh_server: NatsServer, fresh_feed: Feeder, stream_name: str
) -> None:
    """Spark polls both hooks without a pause; the server counts what reaches it."""
    fresh_feed.create(stream_name)
    options = ReadOptions.parse({"servers": fresh_server.url, "stream": stream_name})
    reader = NatsStreamReader(options, SEQUENCES)
    start = reader.initialOffset()
    before, began_s = in_messages(fresh_server), time.monotonic()

    for _ in range(50):
        assert reader.latestOffset(start, ReadAllAvailable()) == start
        assert reader.reportLatestOffset() == start
        time.sleep(0.01)
    asked, seconds = in_messages(fresh_server) - before, time.monotonic() - began_s
    reader.stop()

    assert 1 <= asked <= seconds / STATE_AGE_MAX_S + 1


def in_messages(server: NatsServer) -> int:
    """Messages that all clients have sent to the server."""
    with urllib.request.urlopen(f"{server.monitor_url}/varz", timeout=5) as answer:  # noqa: S310 - http.
        told: dict[str, int] = json.load(answer)
    return told["in_msgs"]


# Loss.


def test_stream_created_anew_is_an_error_after_a_restart(
    ingest: Ingest, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.old"] * 5)
    ingest.run()
    feed.drop(stream_name)
    feed.create(stream_name)
    feed.publish([f"{stream_name}.new"] * 9)

    error = ingest.fail()

    assert isinstance(error, StreamRecreatedError)
    assert stream_name in error.message
    assert "failOnDataLoss=false" in error.hint


def test_stream_created_anew_is_read_from_its_first_message_when_loss_is_accepted(
    ingest: Ingest, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.old"] * 5)
    ingest.run()
    feed.drop(stream_name)
    feed.create(stream_name)
    feed.publish([f"{stream_name}.new"] * 9)

    assert ingest.run(failOnDataLoss="false") == [9]
    assert ingest.subjects().count(f"{stream_name}.new") == 9
    # The loss is behind the query: it is strict again.
    feed.publish([f"{stream_name}.new"] * 2)
    assert ingest.run() == [2]


def back_up_and_restore(server: NatsServer, stream_name: str, folder: Path) -> str:
    """Restore a stream from a backup of now; return the creation time of the restored one."""
    with blocking.connect(server.url) as js:
        stream = js.streams.get(stream_name)
        stream.backup(folder)
        stream.delete()
        return format_rfc3339(js.streams.restore(folder).info().created_ns)


def test_query_of_a_restored_stream_continues_at_its_sequence_as_the_hint_says(
    ingest: Ingest, feed: Feeder, server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    ingest.run()
    feed.publish([f"{stream_name}.a"] * 2)
    back_up_and_restore(server, stream_name, tmp_path / "backup")
    feed.publish([f"{stream_name}.a"] * 2)

    told = re.search("set (restoredAt)=([^ ]+) to continue at sequence 6,", ingest.fail().hint)

    assert told
    assert sum(ingest.run(**{told[1]: f"2020-01-01T00:00:00Z,{told[2]}"})) == 4
    assert ingest.sequences() == list(range(1, 10))
    # The checkpoint is of the restored stream from here on.
    feed.publish([f"{stream_name}.a"] * 2)
    assert ingest.run() == [2]


def test_restored_stream_that_has_passed_an_older_backup_is_a_loss(
    ingest: Ingest, feed: Feeder, server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    with blocking.connect(server.url) as js:
        stream = js.streams.get(stream_name)
        stream.backup(tmp_path / "backup")
        feed.publish([f"{stream_name}.lost"] * 5)
        ingest.run()
        stream.delete()
        created = format_rfc3339(js.streams.restore(tmp_path / "backup").info().created_ns)
    feed.publish([f"{stream_name}.new"] * 8)

    error = ingest.fail(restoredAt=created)

    assert isinstance(error, MessagesLostError)
    assert (error.first_seq, error.last_seq) == (6, 10)
    assert "continue at sequence 6" in error.hint
    assert ingest.run(restoredAt=created, failOnDataLoss="false") == [8]
    assert ingest.subjects().count(f"{stream_name}.new") == 8


def test_start_that_was_kept_before_a_restore_counts_in_the_restored_stream(
    spark: SparkSession, feed: Feeder, server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    given = {"servers": server.url, "stream": stream_name}
    checkpoint = str(tmp_path / "checkpoint")
    pin_start(spark, ReadOptions.parse(given | {"startingOffsets": "first_seq:4"}), checkpoint)
    created = back_up_and_restore(server, stream_name, tmp_path / "backup")

    with pytest.raises(StreamRecreatedError, match="restoredAt"):
        pin_start(spark, ReadOptions.parse(given), checkpoint)
    found = pin_start(spark, ReadOptions.parse(given | {"restoredAt": created}), checkpoint)
    assert str(found.starting_offsets) == "first_seq:4"


def test_batch_that_was_begun_before_a_restore_is_stored_once(
    ingest: Ingest, feed: Feeder, server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    ingest.run()
    for done in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        done.unlink()
    shutil.rmtree(tmp_path / "out")
    created = back_up_and_restore(server, stream_name, tmp_path / "backup")
    feed.publish([f"{stream_name}.a"] * 2)

    ingest.run(restoredAt=created)

    assert ingest.sequences() == list(range(1, 8))


def test_purge_of_unread_messages_is_an_error_with_the_range(
    ingest: Ingest, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    ingest.run()
    feed.publish([f"{stream_name}.a"] * 10)
    feed.purge(stream_name, last_seq=8)

    error = ingest.fail()

    assert isinstance(error, MessagesLostError)
    assert (error.first_seq, error.last_seq) == (6, 8)
    assert "failOnDataLoss=false" in error.hint


def test_purge_of_unread_messages_is_passed_over_when_loss_is_accepted(
    ingest: Ingest, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    ingest.run()
    feed.publish([f"{stream_name}.a"] * 10)
    feed.purge(stream_name, last_seq=8)

    assert ingest.run(failOnDataLoss="false") == [7]
    assert ingest.sequences() == [1, 2, 3, 4, 5, *range(9, 16)]


def test_purge_of_read_messages_is_no_loss(ingest: Ingest, feed: Feeder, stream_name: str) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    ingest.run()
    feed.purge(stream_name)

    assert ingest.run() == []
    feed.publish([f"{stream_name}.a"] * 2)
    assert ingest.run() == [2]


def test_checkpoint_of_another_stream_is_refused(
    ingest: Ingest, feed: Feeder, stream_name: str
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    ingest.run()
    feed.create(f"{stream_name}_2")

    error = ingest.fail(stream=f"{stream_name}_2")

    assert isinstance(error, OffsetError)
    assert f"it is of {stream_name}," in error.message


def test_end_of_a_batch_read_is_refused_in_a_query(ingest: Ingest) -> None:
    error = ingest.fail(endingOffsets="last_seq:5")

    assert "endingOffsets is for batch reads only" in error.message


# Outages.


def test_running_query_goes_on_after_the_server_was_away(
    spark: SparkSession,
    fresh_server: NatsServer,
    fresh_feed: Feeder,
    stream_name: str,
    tmp_path: Path,
) -> None:
    """The driver asks for the stream's end all the time; no outage may end the query."""
    fresh_feed.create(stream_name)
    fresh_feed.publish([f"{stream_name}.a"] * 5)
    options = {"servers": fresh_server.url, "stream": stream_name, "requestTimeout": "0.5"}
    ingest = Ingest(spark, tmp_path, options)
    query = ingest.start(is_endless=True)
    try:
        eventually(lambda: query.lastProgress, within_s=QUERY_WITHIN_S)
        eventually(lambda: ingest.sequences() == [1, 2, 3, 4, 5], within_s=QUERY_WITHIN_S)
        fresh_server.kill()
        time.sleep(AWAY_S)
        fresh_server.start()
        fresh_feed.publish([f"{stream_name}.a"] * 5)

        eventually(lambda: len(ingest.sequences()) == 10, within_s=QUERY_WITHIN_S)
        assert query.isActive
    finally:
        query.stop()
    assert ingest.sequences() == list(range(1, 11))


def test_query_ends_with_a_typed_error_when_the_server_stays_away(
    spark: SparkSession,
    fresh_server: NatsServer,
    fresh_feed: Feeder,
    stream_name: str,
    tmp_path: Path,
) -> None:
    fresh_feed.create(stream_name)
    fresh_feed.publish([f"{stream_name}.a"] * 5)
    options = {"servers": fresh_server.url, "stream": stream_name, "reconnectTimeout": "2"}
    ingest = Ingest(spark, tmp_path, options)
    query = ingest.start(is_endless=True)
    try:
        eventually(lambda: query.lastProgress, within_s=QUERY_WITHIN_S)
        fresh_server.kill()

        with pytest.raises(PySparkException) as failed:
            query.awaitTermination(QUERY_WITHIN_S)
    finally:
        query.stop()

    error = typed_error(failed.value)
    assert type(error).__name__ in ("ConnectError", "ConnectionLostError")
