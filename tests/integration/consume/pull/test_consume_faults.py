"""Integration tests of a steady flow whose server, connection or consumer goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import ConsumerDeleted, ConsumerRecreated, HeartbeatsMissed, Reconnected, connect
from natsstream.errors import ConnectionLostError, ConsumerDeletedError, NatsStreamError
from natsstream.testing import FaultProxy, NatsServer
from tests.support.eventually import eventually_async
from tests.support.pulling import has_pulls, is_settled, take, worker_of
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import ConsumerMessages, JetStream
    from natsstream.read.read_events import ReadEvent

pytestmark = pytest.mark.asyncio


def restart(server: NatsServer) -> None:
    server.restart()


def crash(server: NatsServer) -> None:
    server.kill()
    server.start()


async def events_until(messages: ConsumerMessages, kind: type[ReadEvent]) -> list[ReadEvent]:
    """Return the events of a flow up to the first of a kind."""
    found: list[ReadEvent] = []
    async with aclosing(messages.events()) as events:
        while not found or not isinstance(found[-1], kind):
            found.append(await anext(events))
    return found


async def read_all(messages: ConsumerMessages, last: int) -> dict[int, int]:
    """Return how often each sequence came, reading and acking until all up to `last` came."""
    found: dict[int, int] = {}
    while set(found) != set(range(1, last + 1)):
        message = await anext(messages)
        await message.ack()
        found[message.sequence] = found.get(message.sequence, 0) + 1
    return found


async def ack_all(messages: ConsumerMessages) -> None:
    """Ack what comes, until cancelled."""
    async for message in messages:
        await message.ack()


@pytest.mark.sampled_variants
@pytest.mark.parametrize("max_messages", [1, 20])
@pytest.mark.parametrize("fault", [restart, crash])
async def test_flow_goes_on_after_its_server_was_away(
    fresh_server: NatsServer, fault: Callable[[NatsServer], None], max_messages: int
) -> None:
    async with connect(fresh_server.url) as js:
        worker = await worker_of(js, "S", 50, durable=True, ack_wait=1)
        async with worker.consume(max_messages=max_messages) as messages:
            found = await take(messages, 10)
            await asyncio.to_thread(fault, fresh_server)
            reading = asyncio.ensure_future(read_all(messages, 50))
            events = await events_until(messages, Reconnected)
            reading.cancel()
            await asyncio.wait({reading})
            await fill_again(js)
            found += await take(messages, 1)
            assert any(isinstance(event, Reconnected) for event in events)


async def fill_again(js: JetStream) -> None:
    """Store more messages, which may take a moment after a crash."""
    for number in range(50, 60):
        for _ in range(50):
            with suppress(NatsStreamError):
                await js.publish("S.0", b"%d" % number)
                break


async def test_every_message_comes_while_the_connection_is_cut_again_and_again(
    server: NatsServer, stream_name: str
) -> None:
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as direct, connect(proxy.url) as js:
            await worker_of(direct, stream_name, 2_000, ack_wait=1)
            worker = await (await js.streams.get(stream_name)).consumers.get("work")
            async with worker.consume(max_messages=100) as messages:
                found: set[int] = set()
                async with asyncio.timeout(40):
                    while len(found) < 2_000:
                        message = await anext(messages)
                        await message.ack()
                        found.add(message.sequence)
                        if len(found) in (300, 900, 1_500):
                            proxy.reset()
                # Acks that a cut has lost: these messages come again.
                acking = asyncio.ensure_future(ack_all(messages))
                await eventually_async(lambda: is_settled(worker), within_s=15)
                acking.cancel()


async def test_exactly_so_many_are_handed_out_across_a_break(
    server: NatsServer, stream_name: str
) -> None:
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as direct, connect(proxy.url) as js:
            await worker_of(direct, stream_name, 300, ack_wait=1)
            worker = await (await js.streams.get(stream_name)).consumers.get("work")
            async with worker.consume(max_messages=20, stop_after=100) as messages:
                count = 0
                async for message in messages:
                    await message.ack()
                    count += 1
                    if count % 30 == 0:
                        proxy.reset()
            assert count == 100


@pytest.mark.proves("1c", "heartbeats")
@pytest.mark.proves("1c", "status/notification events")
async def test_paused_server_is_noticed_and_the_flow_goes_on(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url) as js:
        worker = await worker_of(js, "S")
        async with worker.consume(heartbeat=0.5, max_messages=3) as messages:
            reading = asyncio.ensure_future(take(messages, 5))
            await asyncio.wait({reading}, timeout=0.1)
            fresh_server.pause()
            events = await events_until(messages, HeartbeatsMissed)
            fresh_server.resume()
            await fill(js, "S", 5)

            assert await reading == [1, 2, 3, 4, 5]
            assert isinstance(events[-1], HeartbeatsMissed)


async def test_what_older_pulls_bring_too_much_is_given_back(fresh_server: NatsServer) -> None:
    """The pulls that were given up in the silence are served as well, once it is over."""
    async with connect(fresh_server.url) as js:
        worker = await worker_of(js, "S")
        async with worker.consume(heartbeat=0.5, max_messages=5, stop_after=5) as messages:
            first = asyncio.ensure_future(take(messages, 1))
            await asyncio.wait({first}, timeout=0.1)
            fresh_server.pause()
            await events_until(messages, HeartbeatsMissed)
            fresh_server.resume()
            await eventually_async(lambda: has_pulls(worker, 4))
            await fill(js, "S", 20)
            found = await first + [message.sequence async for message in messages]
        others = await worker.fetch(15, timeout=25)

    assert found == [1, 2, 3, 4, 5]
    assert sorted(message.sequence for message in others) == list(range(6, 21))


@pytest.mark.parametrize("what", ["consumer", "stream"])
async def test_deletion_while_disconnected_is_a_typed_error(
    server: NatsServer, stream_name: str, what: str
) -> None:
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as direct, connect(proxy.url) as js:
            await worker_of(direct, stream_name)
            stream = await direct.streams.get(stream_name)
            worker = await (await js.streams.get(stream_name)).consumers.get("work")
            async with worker.consume() as messages:
                reading = asyncio.ensure_future(anext(messages))
                await asyncio.wait({reading}, timeout=0.1)
                proxy.cut()
                await eventually_async(lambda: is_cut(js))
                await (
                    direct.streams.delete(stream_name)
                    if what == "stream"
                    else stream.consumers.delete("work")
                )
                proxy.heal()
                async with asyncio.timeout(30):
                    with pytest.raises(ConsumerDeletedError):
                        await reading
                events = await events_until(messages, ConsumerDeleted)
                assert len([each for each in events if isinstance(each, ConsumerDeleted)]) == 1


@pytest.mark.parametrize("what", ["consumer", "stream"])
async def test_flow_goes_on_with_what_was_made_anew_while_disconnected(
    server: NatsServer, stream_name: str, what: str
) -> None:
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as direct, connect(proxy.url) as js:
            await worker_of(direct, stream_name, 2)
            stream = await direct.streams.get(stream_name)
            worker = await (await js.streams.get(stream_name)).consumers.get("work")
            async with worker.consume() as messages:
                found = await take(messages, 2)
                reading = asyncio.ensure_future(take(messages, 1))
                proxy.cut()
                await eventually_async(lambda: is_cut(js))
                await (
                    direct.streams.delete(stream_name)
                    if what == "stream"
                    else stream.consumers.delete("work")
                )
                await worker_of(direct, stream_name, 1)
                proxy.heal()
                async with asyncio.timeout(30):
                    found += await reading
                events = await events_until(messages, ConsumerRecreated)

    # A new consumer begins at the beginning.
    assert found == [1, 2, 1]
    assert isinstance(events[-1], ConsumerRecreated)


async def is_cut(js: JetStream) -> bool:
    """Tell whether a connection has no server."""
    return not js.is_connected


async def test_server_that_stays_away_is_told_and_reading_again_goes_on(
    fresh_server: NatsServer,
) -> None:
    async with connect(fresh_server.url, reconnect_timeout=0.5) as js:
        worker = await worker_of(js, "S", 1, durable=True)
        async with worker.consume() as messages:
            await (await anext(messages)).ack(confirm=True)
            fresh_server.stop(keep_store=True)
            with pytest.raises(ConnectionLostError, match="was away"):
                await anext(messages)
            await asyncio.to_thread(fresh_server.start)
            await eventually_async(lambda: is_back(js))
            reading = asyncio.ensure_future(take_whatever(messages))
            await fill(js, "S", 1, start=1)
            assert await reading == [2]


async def take_whatever(messages: ConsumerMessages) -> list[int]:
    """Return the next message's sequence; reading goes on however often the server is away."""
    while True:
        with suppress(ConnectionLostError):
            return await take(messages, 1)


async def is_back(js: JetStream) -> bool:
    """Tell whether a connection has a server."""
    return js.is_connected


@pytest.mark.parametrize("way", ["stop", "drain"])
async def test_flow_ends_while_its_server_is_away(fresh_server: NatsServer, way: str) -> None:
    async with connect(fresh_server.url) as js:
        worker = await worker_of(js, "S")
        async with worker.consume() as messages:
            reading = asyncio.ensure_future(anext(messages, None))
            await asyncio.wait({reading}, timeout=0.1)
            fresh_server.kill()
            await eventually_async(lambda: is_cut(js))
            async with asyncio.timeout(30):
                await getattr(messages, way)()
                assert await reading is None
