"""Findings 21 and 27: what is left behind, on the server and in the program.

21: nats-py 2.16 never deletes the consumers of its ordered reads: 40 calls of `kv.keys()` left 40
of them for five minutes. 27: tasks of its push subscriptions outlive `nc.close()`.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import NatsStreamError, connect
from tests.support.eventually import eventually_async
from tests.support.ordered import take_sequences
from tests.support.streams import connections_of, consumer_count, fill

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream, Stream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

READERS = 40


async def by_break(stream: Stream) -> None:
    """Leave a loop in the middle."""
    async with stream.ordered() as tail:
        async for message in tail:
            if message.sequence == 10:
                break


async def by_error(stream: Stream) -> None:
    """Leave a loop by an error of its body."""
    with suppress(LookupError):
        async with stream.ordered() as tail:
            async for _ in tail:
                raise LookupError


async def by_close(stream: Stream) -> None:
    """Close it by hand, without a block."""
    tail = await stream.ordered().__aenter__()
    await take_sequences(tail, 10)
    await tail.close()


async def by_cancelling(stream: Stream) -> None:
    """Cancel the task that waits for the next message."""
    has_begun = asyncio.Event()

    async def follow() -> None:
        async with stream.ordered() as tail:
            async for message in tail:
                if message.sequence == 10:
                    has_begun.set()

    task = asyncio.ensure_future(follow())
    await has_begun.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def by_leaving_a_range(stream: Stream) -> None:
    """Leave a bounded read in the middle."""
    async with aclosing(aiter(stream.read())) as messages:
        async for message in messages:
            if message.sequence == 10:
                break


def subscriptions_of(server: NatsServer, name: str) -> int:
    """Return how many subscriptions the connection with a client name has."""
    (connection,) = connections_of(server, name)
    return cast("int", connection["subscriptions"])


@pytest.mark.sampled_variants
@pytest.mark.finding(21)
@pytest.mark.parametrize(
    "way",
    [by_break, by_error, by_close, by_cancelling, by_leaving_a_range],
    ids=lambda f: f.__name__,
)
async def test_forty_readers_leave_no_consumer(
    js: JetStream, server: NatsServer, stream_name: str, way: Callable[[Stream], Awaitable[None]]
) -> None:
    stream = await fill(js, stream_name, 20)
    await js.core.flush()
    tasks, subscriptions = asyncio.all_tasks(), subscriptions_of(server, stream_name)

    for _ in range(READERS):
        await way(stream)

    async def is_clean() -> bool:
        return await consumer_count(stream) == 0 and asyncio.all_tasks() <= tasks

    await eventually_async(is_clean)
    await js.core.flush()
    assert subscriptions_of(server, stream_name) == subscriptions


@pytest.mark.finding(27)
async def test_closed_connection_leaves_nothing_of_what_was_open(
    server: NatsServer, stream_name: str
) -> None:
    """Readers wait in all ways, and none of them is closed by itself: the connection is."""
    before = asyncio.all_tasks()
    async with connect(server.url) as other:
        stream = await fill(other, stream_name, 20)
        await other.streams.create(f"{stream_name}_other")
        js = await connect(server.url, name=stream_name).open()
        tail = await (await js.streams.get(stream_name)).ordered().__aenter__()
        await take_sequences(tail, 20)
        listening = await js.core.subscribe(f"{stream_name}_core").open()
        waiting: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(anext(tail, None)),
            asyncio.ensure_future(anext(listening, None)),
            asyncio.ensure_future(events_until_the_end(js)),
        ]
        publisher = await js.publisher().__aenter__()
        await publisher.send(f"{stream_name}_other", b"x")
        assert await consumer_count(stream) == 1

        await js.close()

        async with asyncio.timeout(30):
            ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert [end for end in ends if not isinstance(end, NatsStreamError | None)] == []
        await tail.close()

        async def is_gone() -> bool:
            return not connections_of(server, stream_name)

        await eventually_async(is_gone)

    async def is_clean() -> bool:
        return asyncio.all_tasks() <= before

    await eventually_async(is_clean)


async def events_until_the_end(js: JetStream) -> None:
    """Read the connection's events until there are no more."""
    async with js.events() as events:
        async for _ in events:
            pass
