"""Integration tests of those who read a steady flow: several at once, and how it ends for them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import HeartbeatsMissed, connect
from natsstream.errors import ConfigError
from natsstream.testing import FaultProxy
from tests.support.eventually import eventually_async
from tests.support.pulling import (
    has_pulls,
    has_subscriptions,
    is_idle,
    sequences,
    subscriptions,
    take,
    worker_of,
)
from tests.support.standstill import prove
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import ConsumerMessages, JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

# Of an ack_wait: what comes within the test's time was given back.
LONG_S = 600


async def is_full(messages: ConsumerMessages, count: int) -> bool:
    """Tell whether at least so many messages wait for their readers."""
    return messages.waiting >= count


async def read_on(messages: ConsumerMessages, found: list[int]) -> None:
    """Read and ack to the end of a flow."""
    async for message in messages:
        await message.ack()
        found.append(message.sequence)


async def test_stopping_hands_out_nothing_more(js: JetStream, stream_name: str) -> None:
    """Also of the run that the reader is at; it does not wait for its messages."""
    worker = await worker_of(js, stream_name, 100, ack_wait=LONG_S)
    async with worker.consume(max_messages=100) as messages:
        await take(messages, 1)
        await eventually_async(lambda: is_full(messages, 40))
        stopping = asyncio.ensure_future(messages.stop())
        await asyncio.sleep(0)
        found: list[int] = []
        await read_on(messages, found)
        await stopping
    others = await worker.fetch(99, timeout=40)

    assert found == []
    assert sorted(sequences(others)) == list(range(2, 101))


async def test_handing_over_keeps_what_is_at_its_last_delivery(
    js: JetStream, stream_name: str
) -> None:
    """Readers get nothing meanwhile, then that, as far as they wanted it."""
    worker = await worker_of(js, stream_name, 30, ack_wait=LONG_S)
    for message in await worker.fetch(10):
        await message.nak()
    async with worker.consume(max_messages=30, stop_after=25) as messages:
        found = await take(messages, 3)
        await eventually_async(lambda: is_full(messages, 22))
        again = [message.sequence for message in messages.buffered() if message.delivered == 2]
        ending = asyncio.ensure_future(messages.hand_over(2))
        await asyncio.sleep(0)
        reading = asyncio.ensure_future(read_on(messages, found))
        assert messages.waiting == 22
        await asyncio.sleep(0)
        assert len(found) == 3
        await ending
        await reading
    assert again
    assert found[3:] == again
    assert messages.returned == 22 - len(again)
    others = await worker.fetch(30, timeout=5)
    assert sorted(sequences(others)) == sorted(set(range(1, 31)) - set(found))


async def test_reader_goes_on_after_a_cancelled_hand_over(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 3)
    async with worker.consume() as messages:
        found = await take(messages, 3)
        for wrong in (0, True, len):
            with pytest.raises(ConfigError, match="last_delivery"):
                await messages.hand_over(cast("Any", wrong))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await messages.hand_over(None)
        await read_on(messages, found)
    assert found == [1, 2, 3]


async def test_what_cannot_be_given_back_is_not_counted(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 10, ack_policy="none")
    async with worker.consume() as messages:
        await take(messages, 1)
        await eventually_async(lambda: is_full(messages, 9))
    assert messages.returned == 0


async def test_readers_side_by_side_hold_no_more_than_the_window(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name)
    async with worker.consume(max_messages=10) as messages:
        readers = [asyncio.ensure_future(anext(messages)) for _ in range(5)]
        await fill(js, stream_name, 100)
        await asyncio.gather(*readers)
        await js.account()
        await js.account()
        # Those that the readers have in hand, and the window.
        assert messages.waiting <= 10
        assert (await worker.info()).num_ack_pending <= 15


async def test_draining_reader_gets_all_that_is_on_its_way(
    server: NatsServer, stream_name: str
) -> None:
    """The reader is faster than the link, on which messages are under way for a tenth of a second.

    The ack_wait is long: what a drained flow had been sent and did not hand out would come then.
    """
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as direct, connect(proxy.url) as js:
            near = await worker_of(direct, stream_name, ack_wait=LONG_S)
            worker = await (await js.streams.get(stream_name)).consumers.get("work")
            proxy.delay(0.1, direction="to_client")
            found: list[int] = []
            async with worker.consume(max_messages=20) as messages:
                reading = asyncio.ensure_future(read_on(messages, found))
                await eventually_async(lambda: has_pulls(near, 2))
                await fill(direct, stream_name, 20)
                await messages.drain()
                await reading
            if len(found) < 20:
                found += sequences(await near.fetch(20 - len(found), timeout=40))
            assert await near.fetch(1, no_wait=True) == []

    assert sorted(found) == list(range(1, 21))


@pytest.mark.parametrize("first", ["drain", "stop"])
async def test_second_end_returns_when_the_first_is_done(
    js: JetStream, stream_name: str, first: str
) -> None:
    worker = await worker_of(js, stream_name)
    async with worker.consume() as messages:
        await eventually_async(lambda: has_pulls(worker, 2))
        ending = asyncio.ensure_future(getattr(messages, first)())
        await asyncio.sleep(0)
        await messages.stop()
        assert ending.done()
        assert await is_idle(worker)


@pytest.mark.parametrize("way", ["drain", "stop", "leave"])
async def test_end_that_is_cancelled_anywhere_gives_all_back(
    js: JetStream, stream_name: str, way: str
) -> None:
    """The ack_wait is long; each round is cancelled one step of the loop later."""
    worker = await worker_of(js, stream_name, 60, ack_wait=LONG_S)
    before = subscriptions(js)
    found: set[int] = set()

    async def use() -> None:
        async with worker.consume(max_messages=60) as messages:
            found.update(await take(messages, 1))
            await eventually_async(lambda: is_full(messages, 20))
            left.set()
            if way != "leave":
                await getattr(messages, way)()

    for steps in range(12):
        left = asyncio.Event()
        using = asyncio.ensure_future(use())
        await left.wait()
        for _ in range(steps):
            await asyncio.sleep(0)
        using.cancel()
        await asyncio.wait({using})
    await eventually_async(lambda: has_subscriptions(js, before))
    while len(found) < 60 and (rest := await worker.fetch(60 - len(found), timeout=40)):
        found.update(sequences(rest))

    assert found == set(range(1, 61))


async def test_paused_consumer_is_no_break(js: JetStream, stream_name: str) -> None:
    """The server sends heartbeats for a consumer that is paused."""

    async def wait(lease_s: float) -> None:
        name = f"{stream_name}_{lease_s:.0f}"
        worker = await worker_of(js, name, 2)
        stream = await js.streams.get(name)
        await stream.consumers.pause("work", until=datetime.now(UTC) + timedelta(seconds=60))
        # Silence of two and a half heartbeats would be the lease.
        async with worker.consume(heartbeat=0.4 * lease_s) as messages:
            reading = asyncio.ensure_future(take(messages, 2))
            done, _ = await asyncio.wait({reading}, timeout=2 * lease_s)
            assert not done
            await stream.consumers.resume("work")
            assert await reading == [1, 2]
            await messages.drain()
            kinds = [type(event) async for event in messages.events()]

        assert HeartbeatsMissed not in kinds

    await prove(js, wait)
