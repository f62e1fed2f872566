"""Integration tests of pulls and the limits of a consumer, those of its handle and newer ones."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import HeartbeatsMissed, LimitExceeded, connect
from natsstream.errors import ConfigError, PullLimitError
from tests.support.eventually import eventually_async
from tests.support.pulling import has_pulls, sequences, take, worker_of
from tests.support.standstill import prove
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import ConsumerMessages, JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest.mark.proves("1c", "pull limits max_batch / max_expires / max_bytes")
@pytest.mark.parametrize("is_known", [True, False])
async def test_flow_asks_for_no_more_bytes_than_the_consumer_allows(
    js: JetStream, stream_name: str, *, is_known: bool
) -> None:
    limits: dict[str, Any] = {"max_bytes": 2_000}
    worker = await worker_of(js, stream_name, 30, size=500, **(limits if is_known else {}))
    await (await js.streams.get(stream_name)).consumers.update("work", **limits)
    async with worker.consume(max_bytes=1_000_000) as messages:
        assert await take(messages, 30) == list(range(1, 31))
        await messages.drain()
        kinds = [type(event) async for event in messages.events()]

    assert kinds == ([] if is_known else [LimitExceeded])


async def test_flow_adapts_to_each_new_limit(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 100)
    stream = await js.streams.get(stream_name)
    async with worker.consume(max_messages=40) as messages:
        found = await take(messages, 10)
        for limit in (10, 5, 2):
            await stream.consumers.update("work", max_batch=limit)
            found += await take(messages, 30)

    assert found == list(range(1, 101))


@pytest.mark.proves("1c", "fetch_no_wait")
async def test_fetch_without_waiting_takes_all_that_is_there_in_parts(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 25, max_batch=10)
    assert sequences(await worker.fetch(40, no_wait=True)) == list(range(1, 26))
    assert await worker.fetch(40, no_wait=True) == []


async def test_long_fetch_that_finds_no_place_is_a_retryable_error(
    js: JetStream, stream_name: str
) -> None:
    """The server refuses pulls with heartbeats by silence."""
    worker = await worker_of(js, stream_name, max_waiting=1)
    first = asyncio.ensure_future(worker.next(timeout=50))
    await eventually_async(lambda: has_pulls(worker))

    with pytest.raises(PullLimitError, match="max_waiting") as told:
        await worker.next(timeout=20, heartbeat=0.1)
    assert (told.value.limit, told.value.retryable) == ("max_waiting", True)
    await fill(js, stream_name, 1)
    assert await first is not None


async def kinds_of(messages: ConsumerMessages, count: int) -> list[type]:
    """Return what kinds the next events of a flow have."""
    async with aclosing(messages.events()) as events:
        return [type(await anext(events)) for _ in range(count)]


async def test_flow_that_finds_no_place_waits_for_longer_than_it_waits_for_a_connection(
    server: NatsServer, stream_name: str
) -> None:
    async def wait_longer(lease_s: float) -> None:
        async with connect(server.url, reconnect_timeout=0.6 * lease_s) as js:
            name = f"{stream_name}_{lease_s:.0f}"
            worker = await worker_of(js, name, max_waiting=1)
            first = asyncio.ensure_future(worker.next(timeout=50))
            await eventually_async(lambda: has_pulls(worker))
            # Three silences are longer than the wait for a connection.
            heartbeat_s = 0.2 * lease_s
            async with worker.consume(max_messages=1, heartbeat=heartbeat_s) as messages:
                reading = asyncio.ensure_future(take(messages, 3))
                telling = asyncio.ensure_future(kinds_of(messages, 6))
                await asyncio.wait({reading, telling}, return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    telling.cancel()
                    await reading
                kinds = await telling
                await fill(js, name, 4)
                assert await first is not None
                assert len(await reading) == 3

        assert kinds == [HeartbeatsMissed, LimitExceeded] * 3

    async with connect(server.url) as near:
        await prove(near, wait_longer)


@pytest.mark.parametrize(
    "options",
    [{"timeout": 1e12}, {"max_bytes": 1 << 63}, {"timeout": True}],
)
async def test_fetch_refuses_what_no_server_can_read(
    js: JetStream, stream_name: str, options: dict[str, Any]
) -> None:
    worker = await worker_of(js, stream_name)
    with pytest.raises(ConfigError):
        await worker.fetch(1, **options)


@pytest.mark.parametrize("options", [{"expires": 1e12}, {"max_bytes": 1 << 63}])
async def test_flow_refuses_what_no_server_can_read(
    js: JetStream, stream_name: str, options: dict[str, Any]
) -> None:
    worker = await worker_of(js, stream_name)
    with pytest.raises(ConfigError):
        worker.consume(**options)
