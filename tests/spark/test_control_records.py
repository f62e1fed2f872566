"""Streams of producers in Spark: control records are no rows, and do not count as lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import StringStartsWith
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType
from pyspark_natsstream.batch import PushdownReader
from pyspark_natsstream.executor import read_partition
from pyspark_natsstream.failures import typed_error
from pyspark_natsstream.offsets import parse_offset
from pyspark_natsstream.read_options import ReadOptions
from pyspark_natsstream.schema import default_schema
from pyspark_natsstream.streaming import NatsStreamReader

from natsstream import connect
from natsstream.errors import MessagesLostError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from natsstream.testing import NatsServer

# Each run takes a fifth of them; --sampled=all takes all.
pytestmark = pytest.mark.sampled

QUERY_WITHIN_S = 240

SEQUENCES = StructType([StructField("sequence", LongType())])


def produce(
    server: NatsServer,
    stream: str,
    batches: Iterable[int] = (),
    *,
    producer_id: str = "p",
    closes: bool = False,
) -> None:
    """Store batches of so many messages with a producer."""

    async def run() -> None:
        async with connect(server.url) as js:
            if await js.streams.find(f"{stream}.a") is None:
                await js.streams.create(stream, subjects=[f"{stream}.>"])
            options: dict[str, Any] = {"subject": f"{stream}.a", "update_stream": True}
            async with await js.producer(stream, producer_id, **options) as producer:
                for count in batches:
                    for _ in range(count):
                        producer.append(b"x")
                    await producer.flush()
                if closes:
                    await producer.close()

    asyncio.run(run())


def load(spark: SparkSession, server: NatsServer, stream: str, **options: str) -> DataFrame:
    """Return a batch read."""
    return spark.read.format("nats").options(servers=server.url, stream=stream, **options).load()


def ingest(spark: SparkSession, server: NatsServer, stream: str, folder: Path) -> list[int]:
    """Run a query to its end; return the rows of each of its micro-batches that had some."""
    rows = spark.readStream.format("nats").options(servers=server.url, stream=stream).load()
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(folder / "c"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    assert query.awaitTermination(QUERY_WITHIN_S)
    return [each.numInputRows for each in query.recentProgress if each.numInputRows]


def test_batch_read_leaves_control_records_out(
    spark: SparkSession, server: NatsServer, stream_name: str
) -> None:
    produce(server, stream_name, [3, 2])
    produce(server, stream_name, [4], producer_id="q", closes=True)

    assert load(spark, server, stream_name, minPartitions="3").count() == 9
    assert load(spark, server, stream_name, startingOffsets="newest:5").count() == 5
    everything = load(spark, server, stream_name, control="true")
    assert everything.count() == 12
    assert everything.filter("subject like '%.eof'").count() == 1


def test_query_reads_what_producers_store_between_its_runs(
    spark: SparkSession, server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    produce(server, stream_name)
    assert ingest(spark, server, stream_name, tmp_path) == []
    for count in (3, 2):
        produce(server, stream_name, [count, 1])
        assert ingest(spark, server, stream_name, tmp_path) == [count + 1]
    produce(server, stream_name, [2], closes=True)
    assert ingest(spark, server, stream_name, tmp_path) == [2]

    assert spark.read.parquet(str(tmp_path / "out")).count() == 9


class Query:
    """The hooks that Spark calls for one query, without Spark.

    Args:
        server: The server.
        stream: The stream, which exists.
    """

    def __init__(self, server: NatsServer, stream: str) -> None:
        self.options = ReadOptions(servers=(server.url,), stream=stream)
        self.reader = NatsStreamReader(self.options, SEQUENCES)
        self.position = self.reader.initialOffset()

    def run(self) -> int:
        """Run a micro-batch, and return its rows."""
        fresh = NatsStreamReader(self.options, SEQUENCES)
        end = fresh.latestOffset(self.position, ReadAllAvailable())
        ranges = fresh.partitions(self.position, end)
        batches = [b for each in ranges for b in read_partition(self.options, SEQUENCES, each)]
        fresh.stop()
        self.position = end
        return sum(batch.num_rows for batch in batches)


def create(server: NatsServer, stream: str) -> None:
    """Make an empty stream."""

    async def run() -> None:
        async with connect(server.url) as js:
            await js.streams.create(stream, subjects=[f"{stream}.>"])

    asyncio.run(run())


def test_query_that_began_before_the_first_producer_loses_nothing(
    server: NatsServer, stream_name: str
) -> None:
    create(server, stream_name)
    query = Query(server, stream_name)
    assert parse_offset(query.position, stream=stream_name).next_seq == 1
    # Claims of two producers come first, and are replaced.
    produce(server, stream_name, producer_id="q")
    for _ in range(12):
        produce(server, stream_name)
    produce(server, stream_name, [1] * 20)
    produce(server, stream_name, [2], producer_id="q")

    assert query.run() == 22
    assert query.run() == 0


def test_lost_data_at_the_beginning_is_an_error_beside_control_records(
    server: NatsServer, stream_name: str
) -> None:
    create(server, stream_name)
    query = Query(server, stream_name)
    produce(server, stream_name, [2, 2])

    async def purge() -> None:
        async with connect(server.url) as js:
            stream = await js.streams.get(stream_name)
            # The claim, and the first message.
            await stream.purge(last_seq=2)

    asyncio.run(purge())
    with pytest.raises(MessagesLostError) as caught:
        query.run()
    assert caught.value.first_seq <= 2 <= caught.value.last_seq
    assert typed_error(caught.value) is caught.value


def test_filter_on_control_subjects_shows_records_only_on_demand(
    server: NatsServer, stream_name: str
) -> None:
    """A filter of the server that names control subjects would show them by itself."""
    produce(server, stream_name, [2])
    area = f"{stream_name}.$ctl."

    def subjects(control: str) -> list[str]:
        given = {"servers": server.url, "stream": stream_name, "control": control}
        reader = PushdownReader(ReadOptions.parse(given), default_schema(include_headers=False))
        reader.pushFilters([StringStartsWith(("subject",), area)])
        batches = [batch for each in reader.partitions() for batch in reader.read(each)]
        return [subject for batch in batches for subject in batch.column("subject").to_pylist()]

    records = subjects("true")

    assert records
    assert all(subject.startswith(area) for subject in records)
    # Not narrowed: Spark finds that the filter is true of none.
    assert subjects("false") == [f"{stream_name}.a"] * 2
