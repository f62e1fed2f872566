"""What a read holds in memory: bounded by bytes, whatever the sizes in the stream are."""

from __future__ import annotations

import tracemalloc
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from natsstream import Message, connect
from natsstream.read import session
from tests.support.eventually import eventually_async
from tests.support.quiet import sent_until_quiet
from tests.support.streams import connection_of, consumer_count, fill

if TYPE_CHECKING:
    import pyarrow as pa

    from natsstream import JetStream, Stream
    from natsstream.testing import NatsServer

pytestmark = [pytest.mark.asyncio, pytest.mark.sampled]

MIB = 1 << 20


def has_large(item: Message | pa.RecordBatch) -> bool:
    """Tell whether a message, or one of a batch, has a megabyte."""
    return len(item.data) == MIB if isinstance(item, Message) else item.nbytes >= MIB


@pytest.mark.finding(4)
@pytest.mark.parametrize("way", ["messages", "batches"])
@pytest.mark.parametrize("small", [0, 20_000], ids=["even_sizes", "large_after_small"])
async def test_reader_that_stops_reading_holds_a_few_pulls(
    server: NatsServer, stream_name: str, small: int, way: str
) -> None:
    """Counts what the server has sent when the reader takes the first large item and no more."""
    async with connect(server.url, name=stream_name) as js:
        await fill(js, stream_name, small)
        stream = await fill(js, stream_name, 120, size=MIB, start=small)
        before = connection_of(server, stream_name)["out_bytes"]
        messages = stream.read()
        items = aiter(messages) if way == "messages" else messages.batches(["data"])
        async with aclosing(items):
            while not has_large(await anext(items)):
                pass

            held = await sent_until_quiet(server, stream_name) - before
            async for _ in items:
                pass

    assert held < 64 * MIB
    assert messages.report.messages == small + 120
    assert messages.report.resumes == 0


async def test_reader_has_no_more_in_flight_than_it_was_allowed(
    server: NatsServer, stream_name: str
) -> None:
    async with connect(server.url, name=stream_name) as js:
        stream = await fill(js, stream_name, 20_000, size=1_000)
        before = connection_of(server, stream_name)["out_bytes"]
        messages = stream.read(max_pending_bytes=4 * MIB)
        async with aclosing(aiter(messages)) as items:
            await anext(items)

            held = await sent_until_quiet(server, stream_name) - before
            async for _ in items:
                pass

    assert MIB < held <= 6 * MIB  # The message that was taken had asked for another pull.
    assert messages.report.messages == 20_000


async def test_reader_whose_consumer_has_expired_goes_on(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer without pulls is deleted by the server, here after a second instead of sixty."""
    monkeypatch.setattr(session, "_INACTIVE_THRESHOLD_S", 1.0)
    stream = await fill(js, stream_name, 60, size=MIB)
    messages = stream.read()
    found: list[int] = []

    async with aclosing(aiter(messages)) as items:
        async for message in items:
            found.append(message.sequence)
            if len(found) == 1:
                await eventually_async(lambda: has_no_consumer(stream))

    assert found == list(range(1, 61))
    assert messages.report.resumes > 0


async def has_no_consumer(stream: Stream) -> bool:
    """Tell whether the server has no consumer on a stream."""
    return await consumer_count(stream) == 0


async def peak_of_batches(stream: Stream, count: int) -> int:
    """Return how much memory Python had at most while it read messages as columns."""
    tracemalloc.start()
    try:
        async for batch in stream.read(last_seq=count).batches():
            assert batch.num_rows
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def test_memory_does_not_grow_with_the_range(server: NatsServer, stream_name: str) -> None:
    async with connect(server.url) as js:
        stream = await fill(js, stream_name, 200_000, size=100)
        await peak_of_batches(stream, 1_000)

        few = await peak_of_batches(stream, 50_000)
        many = await peak_of_batches(stream, 200_000)

    assert many < 1.5 * few + 8 * MIB
