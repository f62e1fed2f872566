"""Several streams in one query: batch, micro-batches, and restarts from the checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark_natsstream.failures import typed_error
from pyspark_natsstream.listener import progress_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from natsstream.testing import NatsServer
    from tests.spark.conftest import Feeder


class Two:
    """Two streams, and a query over both."""

    def __init__(
        self, spark: SparkSession, server: NatsServer, feed: Feeder, name: str, folder: Path
    ) -> None:
        self.names = [f"{name}-a", f"{name}-b"]
        self._spark, self._feed, self._folder = spark, feed, folder
        self.options = {"servers": server.url, "streams": ",".join(self.names)}
        for each in self.names:
            feed.create(each)

    def publish(self, first: int, second: int) -> None:
        """Publish so many messages to each stream."""
        for name, count in zip(self.names, (first, second), strict=True):
            self._feed.publish([f"{name}.x"] * count)

    def run(self, **options: str) -> StreamingQuery:
        """Run the query to the end."""
        reading = self._spark.readStream.format("nats").options(**{**self.options, **options})
        writing = reading.load().writeStream.format("parquet").trigger(availableNow=True)
        place = str(self._folder / "checkpoint")
        query = writing.option("checkpointLocation", place).start(str(self._folder / "out"))
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return query

    def held(self) -> list[tuple[str, int]]:
        """Return stream and sequence of each row of the table."""
        rows = self._spark.read.parquet(str(self._folder / "out")).collect()
        return sorted((row.stream, row.sequence) for row in rows)

    def wanted(self, first: int, second: int) -> list[tuple[str, int]]:
        """Return what so many messages of each stream are."""
        pairs = zip(self.names, (first, second), strict=True)
        return [(name, sequence) for name, count in pairs for sequence in range(1, count + 1)]


@pytest.fixture
def two(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str, tmp_path: Path
) -> Two:
    """Two streams."""
    return Two(spark, server, feed, stream_name, tmp_path)


def test_batch_reads_all_streams(two: Two, spark: SparkSession) -> None:
    two.publish(5, 7)
    table = spark.read.format("nats").options(**two.options, minPartitions="2").load()
    found = sorted(
        (row.stream, row.sequence) for row in table.select("stream", "sequence").collect()
    )
    assert found == two.wanted(5, 7)


def test_query_goes_on_in_each_stream(two: Two) -> None:
    two.publish(30, 4)
    query = two.run(maxMessagesPerTrigger="10")
    assert two.held() == two.wanted(30, 4)
    sizes = [each.numInputRows for each in query.recentProgress if each.numInputRows]
    assert sizes == [10, 10, 10, 4]
    two.publish(0, 3)
    query = two.run()
    assert two.held() == two.wanted(30, 7)
    last = query.lastProgress
    assert last is not None
    assert [each.lag for each in progress_of(last)] == [0, 0]


def test_other_streams_need_another_checkpoint(two: Two) -> None:
    two.publish(2, 2)
    two.run()
    with pytest.raises(Exception, match="but the option is streams") as failure:
        two.run(streams=two.names[0])
    assert type(typed_error(failure.value)).__name__ == "OffsetError"
