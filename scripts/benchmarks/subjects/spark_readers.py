"""Spark reads: `python -m scripts.benchmarks.subjects.spark_readers NAME URL STREAM COUNT`.

Law: a session and its Python workers have read for a second or two before the clock starts, as they
have in a job that runs for more than a minute: until then Java compiles.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType
from pyspark_natsstream.schema import default_schema
from pyspark_natsstream.session import local_session

from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

_WARM_UP = 200_000


class TupleSource(DataSource):
    """The library's messages, handed to Spark one by one as tuples."""

    @classmethod
    def name(cls) -> str:
        """Return the format."""
        return "tuples"

    def schema(self) -> StructType:
        """Return the columns of `format("nats")`."""
        return default_schema(include_headers=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader."""
        del schema
        return TupleReader(dict(self.options))


class TupleReader(DataSourceReader):
    """Reads in one task."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Yield the messages."""
        del partition
        import natsstream.blocking

        options = self._options
        with natsstream.blocking.connect(options["servers"]) as js:
            stream = js.streams.get(options["stream"])
            for message in stream.read(last_seq=int(options["last"])):
                head = (stream.name, message.subject, message.sequence, message.time)
                yield (*head, message.data)


class FetchSource(TupleSource):
    """nats-py's `fetch(1000)`, handed to Spark as tuples."""

    @classmethod
    def name(cls) -> str:
        """Return the format."""
        return "fetch"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader."""
        del schema
        return FetchReader(dict(self.options))


class FetchReader(TupleReader):
    """Reads in one task."""

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Yield the messages."""
        del partition
        import nats
        from nats.js.api import AckPolicy, ConsumerConfig

        options, loop = self._options, asyncio.new_event_loop()
        # nats-py leaves the types of its options open.
        client: Any = loop.run_until_complete(nats.connect(options["servers"]))  # pyright: ignore[reportUnknownMemberType]
        config = ConsumerConfig(ack_policy=AckPolicy.NONE, mem_storage=True)
        subscribing = client.jetstream().pull_subscribe("", stream=options["stream"], config=config)
        consumer: Any = loop.run_until_complete(subscribing)
        left = int(options["last"])
        while left:
            for message in loop.run_until_complete(consumer.fetch(min(1000, left), timeout=5)):
                meta, left = message.metadata, left - 1
                head = (meta.stream, message.subject, meta.sequence.stream, meta.timestamp)
                yield (*head, message.data)
        loop.run_until_complete(client.close())


@contextmanager
def warm_session(
    url: str,
    stream: str,
    count: int,
    *,
    fmt: str = "nats",
    partitions: int = 1,
    parquet: bool = False,
) -> Generator[Callable[[], None]]:
    """Give a function that reads so many messages, in a session that has read some of them."""
    spark = local_session(master="local[2]")
    spark.dataSource.register(TupleSource)
    spark.dataSource.register(FetchSource)
    read = partial(_run, spark, url, stream, fmt=fmt, partitions=partitions)
    with tempfile.TemporaryDirectory() as folder:
        try:
            read(min(count, _WARM_UP), out=None)
            yield partial(read, count, out=f"{folder}/table" if parquet else None)
        finally:
            spark.stop()


def _read(url: str, stream: str, count: int, *, fmt: str, partitions: int, parquet: bool) -> Figure:
    with warm_session(url, stream, count, fmt=fmt, partitions=partitions, parquet=parquet) as read:
        watch = Stopwatch()
        watch.start()
        read()
        return watch.stop(count)


def _run(
    spark: SparkSession,
    url: str,
    stream: str,
    count: int,
    *,
    fmt: str,
    partitions: int,
    out: str | None,
) -> None:
    reading = spark.read.format(fmt).options(servers=url, stream=stream)
    if fmt == "nats":
        reading = reading.options(endingOffsets=f"last_seq:{count}", minPartitions=partitions)
    else:
        reading = reading.option("last", count)
    table = reading.load()
    if out is None:
        table.write.format("noop").mode("overwrite").save()
    else:
        table.write.parquet(out)


async def _subject(
    url: str, stream: str, count: int, *, fmt: str = "nats", partitions: int = 1, parquet: bool
) -> Figure:
    read = partial(_read, fmt=fmt, partitions=partitions, parquet=parquet)
    return await asyncio.to_thread(read, url, stream, count)


SPARK: Subjects = {
    "spark, 1 task": partial(_subject, parquet=False),
    "spark, 2 tasks": partial(_subject, partitions=2, parquet=False),
    "spark, 2 tasks, Parquet": partial(_subject, partitions=2, parquet=True),
    "spark, tuples": partial(_subject, fmt="tuples", parquet=False),
    "spark, nats-py fetch": partial(_subject, fmt="fetch", parquet=False),
}


if __name__ == "__main__":
    run_subject(SPARK)
