"""Push consumers when something breaks: deletion, reconnects, silence and leader changes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import (
    ConnectionClosedError,
    ConnectionLostError,
    ConsumerDeletedError,
    ConsumerExistsError,
    PermissionDeniedError,
    RequestTimeoutError,
)
from natsstream.testing import FaultProxy, NatsServer
from tests.support.clusters import step_down
from tests.support.eventually import eventually_async
from tests.support.patience import set_patience
from tests.support.pushing import fill_push, make_push, numbers, take_push, tuned_push

if TYPE_CHECKING:
    from natsstream import JetStream, PushMessages, ReadEvent, Stream
    from natsstream._wire.parser import Frame
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio


async def events_of(messages: PushMessages) -> list[str]:
    """Return the names of all events, after the block was left."""
    return [type(event).__name__ async for event in messages.events()]


@pytest.mark.proves("1c", "consumer deleted -> typed error")
@pytest.mark.finding(9)
@pytest.mark.parametrize("what", ["consumer", "stream"])
async def test_deletion_is_told_to_a_reader_that_waits(
    other: JetStream, stream: Stream, what: str
) -> None:
    consumer = await make_push(stream)

    async with asyncio.timeout(40), consumer.subscribe() as messages:
        reader = asyncio.ensure_future(anext(messages))
        await asyncio.sleep(0)
        if what == "stream":
            await other.streams.delete(stream.name)
        else:
            await stream.consumers.delete("push")
        with pytest.raises(ConsumerDeletedError):
            await reader
        with pytest.raises(ConsumerDeletedError):
            await anext(messages)

    events = await events_of(messages)
    assert events[-2:] == ["HeartbeatsMissed", "ConsumerDeleted"]
    # A server that stood still before was silent too.
    assert set(events[:-2]) <= {"HeartbeatsMissed"}


@pytest.mark.parametrize("patience", [0, 0.0001])
async def test_deletion_is_told_to_a_reader_that_only_looks_in(
    stream: Stream, patience: float
) -> None:
    """A call that ends before the server has answered does not end the look for the consumer."""
    consumer = await make_push(stream)

    async with asyncio.timeout(20), consumer.subscribe() as messages:
        await stream.consumers.delete("push")

        async def poll() -> None:
            while await messages.next(timeout=patience) is None:
                await asyncio.sleep(0.01)

        with pytest.raises(ConsumerDeletedError):
            await poll()


async def test_block_that_is_left_during_a_look_leaves_no_task(fresh_server: NatsServer) -> None:
    """The server does not answer: the look would go on for as long as a request may take."""
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url) as js:
            stream = await js.streams.create("S", subjects=["S.>"])
            consumer = await make_push(stream)
            tasks = asyncio.all_tasks()
            async with asyncio.timeout(40), consumer.subscribe() as messages:
                proxy.stall(direction="to_client")
                events = messages.events()
                reader = asyncio.ensure_future(anext(messages))
                assert type(await anext(events)).__name__ == "HeartbeatsMissed"
                reader.cancel()
                await asyncio.wait([reader])
                assert len(asyncio.all_tasks() - tasks) == 1

            assert asyncio.all_tasks() <= tasks
            proxy.heal()


async def test_strangers_on_the_deliver_subject_take_no_message_away(
    js: JetStream, stream: Stream
) -> None:
    """What a server that forwards them may let through, in one read with two real ones."""
    consumer = await make_push(stream, ack_policy="none")
    replies = ["1.1.1.5.1", "x", "1.x.y.1.0", "1.2.2.5.0"]

    async with asyncio.timeout(20), consumer.subscribe() as messages:
        await js.core.publish(f"deliver.{stream.name}", b"strange", reply="other")
        await js.core.publish(f"deliver.{stream.name}", b"strange")
        subscription = messages._subscription  # pyright: ignore[reportPrivateUsage] - its frames.
        assert subscription is not None
        sink = js._client.parser.sinks[subscription.sid]  # pyright: ignore[reportPrivateUsage]
        sink([(b"d", f"$JS.ACK.S.c.{each}".encode(), b"", b"1") for each in replies])
        found = await take_push(messages, 2, ack=False)
        await js.publish(f"{stream.name}.a", b"x")

    assert [message.sequence for message in found] == [1, 2]
    assert messages.missed == 0


async def test_deletion_without_heartbeats_is_found_in_the_silence(
    js: JetStream, stream: Stream
) -> None:
    consumer = await make_push(stream, flow_control=None, idle_heartbeat=None)
    await js.publish(f"{stream.name}.a", b"1")

    async with asyncio.timeout(20), tuned_push(consumer, silence_s=0.2) as messages:
        await take_push(messages, 1)
        await stream.consumers.delete("push")
        with pytest.raises(ConsumerDeletedError):
            await anext(messages)

    assert await events_of(messages) == ["ConsumerDeleted"]


async def test_reading_goes_on_after_a_reconnect(fresh_server: NatsServer) -> None:
    """The server sends on while the link is dead; what it sent then comes again."""
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url) as js, connect(fresh_server.url) as near:
            stream = await near.streams.create("S", subjects=["S.>"])
            await make_push(stream, ack_wait=1)
            consumer = await (await js.streams.get("S")).consumers.get("push")
            async with asyncio.timeout(40), consumer.subscribe() as messages:
                await fill_push(near, stream, 10)
                found = set(numbers(await take_push(messages, 10)))
                proxy.cut()
                for number in range(11, 31):
                    await near.publish("S.a", b"%d" % number)
                proxy.heal()
                while len(found) < 30:
                    found |= set(numbers(await take_push(messages, 1)))

    assert found == set(range(1, 31))
    assert "Reconnected" in await events_of(messages)


async def test_consumer_that_is_deleted_while_the_reader_is_away_is_told(
    fresh_server: NatsServer,
) -> None:
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url) as js, connect(fresh_server.url) as near:
            stream = await near.streams.create("S", subjects=["S.>"])
            await make_push(stream, flow_control=None, idle_heartbeat=None)
            consumer = await (await js.streams.get("S")).consumers.get("push")
            async with asyncio.timeout(20), consumer.subscribe() as messages:
                reader = asyncio.ensure_future(anext(messages))
                await asyncio.sleep(0)
                proxy.cut()
                await stream.consumers.delete("push")
                proxy.heal()
                with pytest.raises(ConsumerDeletedError):
                    await reader


async def test_server_that_does_not_come_back_is_told(fresh_server: NatsServer) -> None:
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url, reconnect_timeout=0.2) as js:
            stream = await js.streams.create("S", subjects=["S.>"])
            consumer = await make_push(stream)
            async with asyncio.timeout(20), consumer.subscribe() as messages:
                proxy.cut()
                with pytest.raises(ConnectionLostError):
                    await anext(messages)
                proxy.heal()
                await js.publish("S.a", b"7")
                assert numbers(await take_push(messages, 1)) == [7]


@pytest.mark.proves("1c", "status/notification events")
async def test_silence_is_told_and_the_reader_goes_on(fresh_server: NatsServer) -> None:
    """A frozen link: the connection stays, and neither messages nor heartbeats come."""
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url) as js, connect(fresh_server.url) as near:
            stream = await near.streams.create("S", subjects=["S.>"])
            await make_push(stream)
            consumer = await (await js.streams.get("S")).consumers.get("push")
            async with asyncio.timeout(40), consumer.subscribe() as messages:
                set_patience(js, request_timeout=0.5)
                reader = asyncio.ensure_future(anext(messages))
                events: list[ReadEvent] = []
                proxy.stall(direction="to_client")
                events.append(await anext(messages.events()))
                proxy.heal()
                await near.publish("S.a", b"7")
                message = await reader

    assert numbers([message]) == [7]
    assert type(events[0]).__name__ == "HeartbeatsMissed"


async def test_deliveries_that_did_not_arrive_are_counted(js: JetStream, stream: Stream) -> None:
    """Somebody else listens on the deliver subject before the reader is there."""
    consumer = await make_push(stream, ack_policy="none")

    async with consumer.subscribe() as messages:
        await fill_push(js, stream, 5)
        assert numbers(await take_push(messages, 5, ack=False)) == [1, 2, 3, 4, 5]
        subscription = messages._subscription  # pyright: ignore[reportPrivateUsage] - as if broken.
        assert subscription is not None
        sinks = js._client.parser.sinks  # pyright: ignore[reportPrivateUsage] - as if broken.
        sink = sinks[subscription.sid]
        lost: list[Frame] = []
        sinks[subscription.sid] = lost.extend
        await fill_push(js, stream, 3)

        async def are_lost() -> bool:
            return sum(frame[1].startswith(b"$JS.ACK.") for frame in lost) == 3

        await eventually_async(are_lost)
        sinks[subscription.sid] = sink

        async def is_counted() -> bool:
            return messages.missed == 3

        await eventually_async(is_counted)

    assert "DeliveriesMissed" in await events_of(messages)


async def test_deliver_subject_that_was_changed_meanwhile_is_followed(
    fresh_server: NatsServer,
) -> None:
    """The server takes the change only while nobody listens."""
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url) as js, connect(fresh_server.url) as near:
            stream = await near.streams.create("S", subjects=["S.>"])
            await make_push(stream)
            consumer = await (await js.streams.get("S")).consumers.get("push")
            async with asyncio.timeout(40), consumer.subscribe() as messages:
                with pytest.raises(ConsumerExistsError) as caught:
                    await stream.consumers.update("push", deliver_subject="deliver.new")
                reader = asyncio.ensure_future(anext(messages))
                await asyncio.sleep(0)
                proxy.cut()

                async def is_free() -> bool:
                    return not (await stream.consumers.get("push")).cached.is_push_bound

                await eventually_async(is_free)
                await stream.consumers.update("push", deliver_subject="deliver.new")
                await near.publish("S.a", b"7")
                proxy.heal()
                assert numbers([await reader]) == [7]

    assert "deliver_subject" in caught.value.hint
    assert "DeliverSubjectChanged" in await events_of(messages)


async def test_closed_connection_ends_the_reader(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url) as js:
        stream = await js.streams.create("S", subjects=["S.>"])
        consumer = await make_push(stream)
        messages = await consumer.subscribe().open()
        reader = asyncio.ensure_future(anext(messages))
        await asyncio.sleep(0)
    with pytest.raises(ConnectionClosedError):
        await asyncio.wait_for(reader, 30)
    await messages.close()


async def test_subscription_that_is_not_allowed_is_told() -> None:
    users = (
        "authorization { users = [{user: u, password: p, "
        'permissions: {publish: ">", subscribe: {deny: ["deliver.>"]}}}] }'
    )
    with NatsServer(config=users) as server:
        async with connect(server.url, user="u", password="p") as js:  # noqa: S106 - of a test.
            stream = await js.streams.create("S", subjects=["S.>"])
            consumer = await make_push(stream)

            with pytest.raises(PermissionDeniedError):
                await consumer.subscribe().open()


@pytest.mark.timeout(120)
async def test_leader_changes_lose_nothing(
    cluster_js: JetStream, nats_cluster: NatsCluster, stream_name: str
) -> None:
    """On three replicas, both leaders go while messages are on the way."""
    js = cluster_js
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"], replicas=3)
    consumer = await make_push(stream, ack_wait=2, idle_heartbeat=1)
    await fill_push(js, stream, 2_000)
    found: set[int] = set()
    changes = 0

    async with asyncio.timeout(100), consumer.subscribe() as messages:
        while len(found) < 2_000:
            message = await anext(messages)
            found |= set(numbers([message]))
            await message.ack()
            if len(found) >= 500 and changes == 0:
                changes = 1
                with suppress(RequestTimeoutError):  # A leader may take its answer with it.
                    await consumer.step_down(timeout=10)
            if len(found) >= 1_000 and changes == 1:
                changes = 2
                await step_down(js, nats_cluster, stream_name)

    assert found == set(range(1, 2_001))
    info = await consumer.info()
    assert info.cluster is not None
    assert len(info.cluster.replicas) == 2
    await js.streams.delete(stream_name)
