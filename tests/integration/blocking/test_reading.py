"""Reading by `for`: every item, in order, and nothing left behind."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
import time
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from natsstream import blocking
from natsstream.blocking.portal import Portal
from natsstream.blocking.proxies import wrap
from tests.support.eventually import eventually
from tests.support.loops import turn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

RUN_TIMEOUT_S = 20.0


def test_for_gives_every_message_in_order(stream: blocking.Stream) -> None:
    read = [(message.sequence, message.data) for message in stream.read()]

    assert read == [(number, str(number).encode()) for number in range(1, 2_001)]


def test_each_loop_over_a_range_is_a_read_of_its_own(stream: blocking.Stream) -> None:
    some = stream.read(first_seq=11, last_seq=20)

    assert [message.sequence for message in some] == [*range(11, 21)]
    assert [message.sequence for message in some] == [*range(11, 21)]
    assert some.report.messages == 10


def test_batches_and_tables_have_every_row(stream: blocking.Stream) -> None:
    batches = list(stream.read().batches(columns=["sequence", "time"], time_unit="us"))
    table = stream.read(last_seq=3).to_arrow(["data"])

    assert sum(batch.num_rows for batch in batches) == 2_000
    assert batches[0].schema.names == ["sequence", "time"]
    assert table.to_pylist() == [{"data": b"1"}, {"data": b"2"}, {"data": b"3"}]


def test_a_range_is_an_arrow_stream_for_other_libraries(stream: blocking.Stream) -> None:
    """Each use is a read of its own."""
    ten = stream.read(first_seq=11, last_seq=20)

    for _ in range(2):
        assert pa.table(ten).column("sequence").to_pylist() == [*range(11, 21)]
    assert pl.DataFrame(ten)["data"].to_list() == [str(each).encode() for each in range(11, 21)]
    found = duckdb.execute("select count(*), max(sequence), any_value(subject) from ten").fetchall()
    assert found == [(10, 20, next(iter(ten)).subject)]
    assert ten.schema(["sequence"]).names == ["sequence"]
    assert pa.table(stream.read(first_seq=1, last_seq=0)).schema == ten.schema()


def test_an_arrow_stream_that_is_left_early_deletes_the_consumer(stream: blocking.Stream) -> None:
    batches = pa.RecordBatchReader.from_stream(stream.read())
    assert batches.read_next_batch().num_rows > 0
    del batches

    eventually(lambda: stream.info().state.consumer_count == 0)


def test_leaving_a_loop_early_deletes_the_consumer(stream: blocking.Stream) -> None:
    for message in stream.read():
        if message.sequence == 3:
            break

    eventually(lambda: stream.info().state.consumer_count == 0)


def test_an_iterator_that_is_dropped_deletes_the_consumer(stream: blocking.Stream) -> None:
    messages = iter(stream.read())
    next(messages)

    del messages

    eventually(lambda: stream.info().state.consumer_count == 0)


def test_error_in_a_loop_deletes_the_consumer(stream: blocking.Stream) -> None:
    def fail() -> None:
        for message in stream.read():
            _ = 1 // (message.sequence - 3)

    with pytest.raises(ZeroDivisionError):
        fail()

    eventually(lambda: stream.info().state.consumer_count == 0)


def test_items_before_an_error_come_before_the_error(portal: Portal) -> None:
    async def failing() -> AsyncGenerator[int]:
        for number in range(1_000):
            yield number
        raise ZeroDivisionError

    taken: list[int] = []
    with pytest.raises(ZeroDivisionError):
        taken.extend(wrap(failing(), portal))

    assert taken == [*range(1_000)]


def test_item_comes_while_the_iterator_waits_for_the_next(portal: Portal) -> None:
    is_taken = threading.Event()

    async def live() -> AsyncGenerator[int]:
        yield 1
        async with asyncio.timeout(RUN_TIMEOUT_S):
            while not is_taken.is_set():
                await asyncio.sleep(0)
        yield 2

    items = wrap(live(), portal)
    first = next(items)
    is_taken.set()

    assert [first, *items] == [1, 2]


@pytest.mark.parametrize(
    ("item", "limit"), [(1, 5 * 2_048), (memoryview(bytes(1 << 20)), 5)], ids=["small", "large"]
)
def test_slow_reader_holds_a_limited_number_of_items(
    portal: Portal, item: object, limit: int
) -> None:
    # A memoryview tells its size as an Arrow batch does.
    made = 0

    async def endless() -> AsyncGenerator[object]:
        nonlocal made
        while True:
            made += 1
            yield item
            if made % 7 == 0:
                await asyncio.sleep(0)

    items = wrap(endless(), portal)
    next(items)
    seen = -1
    while seen != made:
        seen = made
        portal.call(turn)

    assert made <= limit


@pytest.mark.sampled_variants
@pytest.mark.parametrize("seed", range(4))
def test_every_item_comes_when_either_side_is_slow(portal: Portal, seed: int) -> None:
    # Switching threads at nearly each step looks for a wake-up that gets lost.
    rng = random.Random(seed)  # noqa: S311 - not for secrets.
    count = 30_000

    async def numbers() -> AsyncGenerator[int]:
        for number in range(count):
            yield number
            if rng.random() < 0.02:
                await asyncio.sleep(rng.choice((0, 0, 0.0005)))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        taken: list[int] = []
        for number in wrap(numbers(), portal):
            taken.append(number)
            if number % 997 == 0:
                time.sleep(0.001)
    finally:
        sys.setswitchinterval(before)

    assert taken == [*range(count)]


def test_a_second_loop_over_an_open_iterator_goes_on_where_the_first_ended(
    portal: Portal,
) -> None:
    class Feed:
        """Its own iterator, as a consumer's feed is."""

        def __init__(self) -> None:
            self._next = 0

        def __aiter__(self) -> Feed:
            return self

        async def __anext__(self) -> int:
            self._next += 1
            if self._next > 1_000:
                raise StopAsyncIteration
            return self._next

    feed = wrap(Feed(), portal)
    taken: list[int] = []
    for number in feed:
        taken.append(number)
        if number == 10:
            break
    taken.append(next(feed))
    taken.extend(feed)

    assert taken == [*range(1, 1_001)]
