"""Integration tests of readers whose server stands still: its connections stay, nothing comes.

That there is no message is the server's own word; a reader takes no silence for it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import ConnectionLostError, RequestTimeoutError
from natsstream.testing import FaultProxy
from tests.support.eventually import eventually_async
from tests.support.patience import set_patience
from tests.support.pulling import has_pulls, sequences, take, worker_of
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from natsstream import Consumer, DeliveredMessage
    from natsstream.testing import NatsServer

pytestmark = [pytest.mark.asyncio, pytest.mark.spread]


@asynccontextmanager
async def frozen(server: NatsServer) -> AsyncGenerator[None]:
    """Let a server stand still."""
    server.pause()
    try:
        yield
    finally:
        server.resume()


# With heartbeats silence is noticed while there is time to ask anew. Of 5 s there are some anyway.
TIMEOUTS = [{"timeout": 0.3}, {"timeout": 1, "heartbeat": 0.1}]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("options", [*TIMEOUTS, {"timeout": 5}])
async def test_a_fetch_from_a_frozen_server_raises_whatever_its_timeout(
    fresh_server: NatsServer, options: dict[str, Any]
) -> None:
    async with connect(fresh_server.url) as js:
        worker = await worker_of(js, "S")
        async with frozen(fresh_server):
            with pytest.raises(RequestTimeoutError, match="did not answer a pull"):
                await worker.fetch(5, **options)
        await fill(js, "S", 1)
        async with asyncio.timeout(30):
            assert await worker.next(timeout=20) is not None


@pytest.mark.parametrize("options", [{"no_wait": True, "timeout": 0.1}, {"timeout": 0}])
async def test_a_fetch_that_does_not_wait_raises_when_the_server_is_frozen(
    fresh_server: NatsServer, options: dict[str, Any]
) -> None:
    async with connect(fresh_server.url, request_timeout=30) as js:
        worker = await worker_of(js, "S")
        set_patience(js, request_timeout=0.5)
        async with frozen(fresh_server):
            with pytest.raises(RequestTimeoutError, match="did not answer a pull"):
                await worker.fetch(5, **options)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("options", TIMEOUTS)
async def test_what_came_before_the_server_froze_is_returned_with_the_error(
    server: NatsServer, stream_name: str, options: dict[str, Any]
) -> None:
    async with connect(server.url) as direct:
        near = await worker_of(direct, stream_name, 2)
        with FaultProxy(server.port) as proxy:
            async with connect(proxy.url) as js:
                worker = await (await js.streams.get(stream_name)).consumers.get("work")
                fetching = asyncio.ensure_future(worker.fetch(5, **options))
                await eventually_async(lambda: has_pulls(near))
                await eventually_async(lambda: has_arrived(worker, 2))
                proxy.stall()
                found = await fetching

    assert sequences(found) == [1, 2]
    assert isinstance(found.error, RequestTimeoutError)
    assert not found.complete


async def has_arrived(worker: Consumer, count: int) -> bool:
    """Tell whether the answer to a question, sent behind the messages, is here."""
    return (await worker.info()).num_ack_pending == count


@pytest.mark.sampled_variants
@pytest.mark.parametrize("options", TIMEOUTS)
async def test_a_fetch_goes_on_with_a_server_that_froze_for_a_moment(
    fresh_server: NatsServer, options: dict[str, Any]
) -> None:
    """It may raise; the next one hears, and all messages come once or are given back."""
    async with connect(fresh_server.url) as js:
        worker = await worker_of(js, "S", ack_wait=600)
        async with frozen(fresh_server):
            with pytest.raises(RequestTimeoutError):
                await worker.fetch(20, **options)
        await fill(js, "S", 40)
        found: set[int] = set()
        async with asyncio.timeout(30):
            while len(found) < 40:
                for message in await worker.fetch(20, timeout=20):
                    await message.ack()
                    found.add(message.sequence)


async def flow(worker: Consumer) -> None:
    async with worker.consume(heartbeat=0.1) as messages:
        await take(messages, 1)


async def run(worker: Consumer) -> None:
    async def handle(message: DeliveredMessage) -> None:
        raise AssertionError(message)

    await worker.run(handle)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("way", [flow, run])
async def test_a_flow_raises_when_its_server_stays_frozen(
    fresh_server: NatsServer, way: Callable[[Consumer], Awaitable[None]]
) -> None:
    async with connect(fresh_server.url, reconnect_timeout=0.5) as js:
        worker = await worker_of(js, "S")
        reading = asyncio.ensure_future(way(worker))
        await eventually_async(lambda: has_pulls(worker))
        async with frozen(fresh_server), asyncio.timeout(40):
            with pytest.raises(ConnectionLostError):
                await reading


async def test_an_ordered_consumer_raises_when_its_server_stays_frozen(
    fresh_server: NatsServer,
) -> None:
    async with connect(fresh_server.url, reconnect_timeout=0.5) as js:
        stream = await fill(js, "S", 1)
        async with stream.ordered() as tail:
            assert (await anext(tail)).sequence == 1
            async with frozen(fresh_server), asyncio.timeout(40):
                with pytest.raises(ConnectionLostError):
                    await anext(tail)


async def test_a_read_raises_when_its_server_stays_frozen(fresh_server: NatsServer) -> None:
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url, reconnect_timeout=0.5) as js:
            stream = await fill(js, "S", 1_000, size=1_000)
            proxy.limit_rate(500_000, direction="to_client")

            async def read() -> None:
                async for message in stream.read():
                    if message.sequence == 10:
                        proxy.stall()

            async with asyncio.timeout(40):
                with pytest.raises(ConnectionLostError, match="read of stream"):
                    await read()
