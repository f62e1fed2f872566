"""Integration tests of readers after something that the server had sent was lost on the way.

The consumer's ack_wait is ten minutes, and messages are stored only after the loss: a reader gets
them because it asks anew, and not because they come again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import RequestTimeoutError
from natsstream.testing import FaultProxy
from tests.support.dropping import Relay, dropping, is_delivery, is_heartbeat, is_pull_end
from tests.support.eventually import eventually_async
from tests.support.pulling import has_pulls, is_idle, sequences, take, worker_of
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from natsstream import Consumer, DeliveredMessage, JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

ACK_WAIT_S = 600
Fetch = Callable[["Consumer"], Awaitable[list[int]]]


async def fetch(worker: Consumer) -> list[int]:
    return sequences(await worker.fetch(20, timeout=1))


async def next_one(worker: Consumer) -> list[int]:
    message = await worker.next(timeout=1)
    return [] if message is None else [message.sequence]


@asynccontextmanager
async def losing(
    server: NatsServer, name: str
) -> AsyncGenerator[tuple[Relay, JetStream, Consumer, Consumer]]:
    """Yield a relay, and a consumer as it is seen through it and beside it."""
    async with (
        dropping(server.port) as relay,
        connect(server.url) as direct,
        connect(relay.url) as js,
    ):
        near = await worker_of(direct, name, ack_wait=ACK_WAIT_S)
        far = await (await js.streams.get(name)).consumers.get("work")
        yield relay, direct, far, near


@pytest.mark.sampled_variants
@pytest.mark.parametrize("way", [fetch, next_one])
async def test_a_fetch_hears_again_after_a_lost_status(
    server: NatsServer, stream_name: str, way: Fetch
) -> None:
    """The one that follows at once asks for itself: the pull before it is over."""
    async with losing(server, stream_name) as (relay, direct, worker, _):
        relay.drop(is_pull_end)
        with pytest.raises(RequestTimeoutError, match="did not answer a pull"):
            await way(worker)
        assert len(relay.dropped) == 1
        fetching = asyncio.ensure_future(way(worker))
        await fill(direct, stream_name, 40)

        assert (await fetching)[:1] == [1]


async def test_ack_next_hears_again_after_a_lost_status(
    server: NatsServer, stream_name: str
) -> None:
    async with losing(server, stream_name) as (relay, direct, worker, _):
        await fill(direct, stream_name, 1)
        message = await worker.next()
        assert message is not None
        relay.drop(is_pull_end)
        with pytest.raises(RequestTimeoutError):
            await message.ack_next(timeout=1)
        fetching = asyncio.ensure_future(fetch(worker))
        await fill(direct, stream_name, 40, start=1)

        assert (await fetching)[:1] == [2]


async def test_a_fetch_hears_again_after_a_lost_message(
    server: NatsServer, stream_name: str
) -> None:
    """The server has filled the pull, so nothing ends it; what came is returned with the error."""
    async with losing(server, stream_name) as (relay, direct, worker, _):
        await fill(direct, stream_name, 20)
        relay.drop(is_delivery)
        found = await worker.fetch(20, timeout=1)
        assert sequences(found) == list(range(2, 21))
        assert isinstance(found.error, RequestTimeoutError)
        fetching = asyncio.ensure_future(fetch(worker))
        await fill(direct, stream_name, 20, start=20)

        assert await fetching == list(range(21, 41))


async def test_a_fetch_hears_again_after_the_link_was_held(
    server: NatsServer, stream_name: str
) -> None:
    async with connect(server.url) as direct:
        near = await worker_of(direct, stream_name, ack_wait=ACK_WAIT_S)
        with FaultProxy(server.port) as proxy:
            async with connect(proxy.url) as js:
                worker = await (await js.streams.get(stream_name)).consumers.get("work")
                held = asyncio.ensure_future(fetch(worker))
                await eventually_async(lambda: has_pulls(near))
                proxy.stall(direction="to_client")
                asyncio.get_running_loop().call_later(2, proxy.heal)
                with suppress(RequestTimeoutError):
                    await held
                fetching = asyncio.ensure_future(fetch(worker))
                await fill(direct, stream_name, 40)

                assert await fetching == list(range(1, 21))


async def test_a_cancelled_fetch_leaves_no_dead_pull_to_the_next(
    server: NatsServer, stream_name: str
) -> None:
    """Each takes over the pull of the one before, until its time should be over."""
    async with losing(server, stream_name) as (relay, direct, worker, near):
        relay.drop(is_pull_end)
        fetching = asyncio.ensure_future(worker.fetch(20, timeout=1))
        await eventually_async(lambda: has_pulls(near))
        await eventually_async(lambda: is_idle(near))
        await relay.wait_dropped()
        fetching.cancel()
        await asyncio.wait({fetching})
        fetching = asyncio.ensure_future(worker.fetch(20, timeout=1))
        await fill(direct, stream_name, 40)

        assert sequences(await fetching) == list(range(1, 21))


async def test_a_loop_of_fetches_leaves_no_pull_on_the_server(
    server: NatsServer, stream_name: str
) -> None:
    """Each of them loses its status."""
    async with losing(server, stream_name) as (relay, _, worker, near):
        for _ in range(3):
            relay.drop(is_pull_end)
            with pytest.raises(RequestTimeoutError):
                await worker.fetch(20, timeout=0.1)

        assert await eventually_async(lambda: is_idle(near))


async def consume(worker: Consumer, found: list[int]) -> None:
    async with worker.consume(max_messages=10, expires=0.5, heartbeat=0.1) as messages:
        while True:
            found += await take(messages, 1)


async def run(worker: Consumer, found: list[int]) -> None:
    async def handle(message: DeliveredMessage) -> None:
        found.append(message.sequence)

    await worker.run(handle)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("way", [consume, run])
@pytest.mark.parametrize("lost", [is_pull_end, is_heartbeat, is_delivery])
async def test_a_flow_goes_on_after_a_loss(
    server: NatsServer,
    stream_name: str,
    lost: Callable[[bytes, bytes], bool],
    way: Callable[[Consumer, list[int]], Awaitable[None]],
) -> None:
    """A pool's pulls are long; what it loses are heartbeats and messages."""
    if way is run and lost is is_pull_end:
        lost = is_heartbeat
    async with losing(server, stream_name) as (relay, direct, worker, near):
        found: list[int] = []
        relay.drop(lost, count=2)
        reading = asyncio.ensure_future(way(worker, found))
        await eventually_async(lambda: has_pulls(near))
        if lost is is_delivery:
            await fill(direct, stream_name, 20)
        await relay.wait_dropped()
        await fill(direct, stream_name, 40, start=20)

        async def is_all_there() -> bool:
            return len(set(found)) == (58 if lost is is_delivery else 40)

        await eventually_async(is_all_there)
        reading.cancel()
        await asyncio.wait({reading})
