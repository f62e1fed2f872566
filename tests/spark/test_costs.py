"""Costs that do not grow with a read: requests of its plan, memory of its workers.

Without Spark: the reader is called as Spark's Python processes call it.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark_natsstream.batch import NatsReader
from pyspark_natsstream.executor import read_partition
from pyspark_natsstream.plan import PARTITIONS_MAX, Partition
from pyspark_natsstream.read_options import PENDING_BYTES, ReadOptions
from pyspark_natsstream.schema import default_schema
from pyspark_natsstream.streaming import NatsStreamReader

import natsstream as ns
from natsstream import blocking
from tests.support.eventually import eventually
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql.datasource import InputPartition

    from natsstream.testing import NatsServer

FEW = 10
# Spark keeps a partition for each task on the driver: 10,000 take 2 MB there.
PARTITION_BYTES_MAX = 200
# As Arrow more than two windows.
LONG = 150_000
SLOW_BATCHES = 10
# pyarrow's types lack this function.
arrow: Any = pa

SCHEMA = default_schema(include_headers=False)


def stored(server: NatsServer, count: int, size: int = 0) -> None:
    async def store() -> None:
        async with ns.connect(server.url) as js:
            await fill(js, "COSTS", count, size=size)

    asyncio.run(store())


def options(server: NatsServer, **more: str) -> ReadOptions:
    return ReadOptions.parse({"servers": server.url, "stream": "COSTS", **more})


def requests_of(server: NatsServer, act: Callable[[], object]) -> int:
    """Return how many requests to JetStream an act makes."""
    seen: list[str] = []
    with blocking.connect(server.url) as js, js.core.subscribe("$JS.API.>") as subscription:
        js.core.flush()
        act()
        js.publish("COSTS.end", b"")
        js.core.publish("$JS.API.END", b"")

        def has_ended() -> bool:
            message = subscription.next(timeout=1)
            if message is not None:
                seen.append(message.subject)
            return "$JS.API.END" in seen

        eventually(has_ended)
    return len(seen) - 1


@pytest.mark.parametrize("kind", ["batch", "streaming"])
def test_plan_of_ten_thousand_ranges_takes_the_requests_of_ten(
    fresh_server: NatsServer, kind: str
) -> None:
    stored(fresh_server, PARTITIONS_MAX)

    def plan(count: int) -> Sequence[InputPartition]:
        asked = options(fresh_server, minPartitions=str(count))
        if kind == "batch":
            return NatsReader(asked, SCHEMA).partitions()
        reader = NatsStreamReader(asked, SCHEMA)
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        found = reader.partitions(start, end)
        reader.stop()
        return found

    # A server that is slow to answer is asked again, now and then.
    few = min(requests_of(fresh_server, lambda: plan(FEW)) for _ in range(3))
    many = min(requests_of(fresh_server, lambda: plan(PARTITIONS_MAX)) for _ in range(3))

    assert few
    assert few == many
    ranges = plan(PARTITIONS_MAX)
    assert len(ranges) == PARTITIONS_MAX
    assert len(pickle.dumps(ranges[-1])) <= PARTITION_BYTES_MAX


def test_worker_holds_no_more_of_a_long_range_than_its_window(
    fresh_server: NatsServer,
) -> None:
    """However late Spark asks for the next batch."""
    stored(fresh_server, LONG, size=256)
    with blocking.connect(fresh_server.url) as js:
        created_ns = js.streams.get("COSTS").info().created_ns
    before = arrow.total_allocated_bytes()
    most = total = 0
    asked = Partition(stream="COSTS", first_seq=1, last_seq=LONG, created_ns=created_ns)
    for number, batch in enumerate(read_partition(options(fresh_server), SCHEMA, asked)):
        if number < SLOW_BATCHES:
            time.sleep(0.1)
        most = max(most, arrow.total_allocated_bytes() - before)
        total += batch.nbytes

    # What is in flight, as it came and as columns, and the batch that Spark has.
    assert most <= 4 * PENDING_BYTES
    assert total > 8 * PENDING_BYTES
