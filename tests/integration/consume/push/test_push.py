"""Reading push consumers: order, acks, groups, what is refused, and what is left behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.consume.delivery.source import PushSource, PushState
from natsstream.errors import ConfigError, ConflictError, PermissionDeniedError, UsageError
from natsstream.testing import FaultProxy, NatsServer
from tests.support.eventually import eventually_async
from tests.support.pushing import fill_push, make_push, numbers, take_push, tuned_push
from tests.support.streams import connection_of

if TYPE_CHECKING:
    from natsstream import Consumer, JetStream, Stream
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.consume.push.subscription import PushMessages

pytestmark = pytest.mark.asyncio

NEW_FORM = "feature_flags { js_ack_fc_v2: true }"
SLOW_S = 30.0


@pytest.mark.smoke
@pytest.mark.proves("1c", "push legacy, flow control, queue")
async def test_messages_come_in_order_and_are_settled(js: JetStream, stream: Stream) -> None:
    consumer = await make_push(stream)
    await fill_push(js, stream, 3_000)

    async with consumer.subscribe() as messages:
        found = await take_push(messages, 3_000)

        async def is_settled() -> bool:
            info = await consumer.info()
            return (info.num_ack_pending, info.ack_floor.stream_seq) == (0, 3_000)

        await eventually_async(is_settled)

    assert numbers(found) == list(range(1, 3_001))
    assert {message.delivered for message in found} == {1}
    assert (messages.dropped, messages.missed, messages.pending_count) == (0, 0, 0)


async def test_message_that_is_given_back_comes_again(js: JetStream, stream: Stream) -> None:
    consumer = await make_push(stream)
    await fill_push(js, stream, 1)

    async with consumer.subscribe() as messages:
        (first,) = await take_push(messages, 1, ack=False)
        await first.nak()
        (again,) = await take_push(messages, 1)

    assert (first.delivered, again.delivered, again.meta.stream_seq) == (1, 2, 1)
    assert messages.missed == 0


@pytest.mark.proves("1c", "push legacy, flow control, queue")
async def test_members_of_a_group_share_the_messages(
    js: JetStream, other: JetStream, stream: Stream
) -> None:
    consumer = await make_push(stream, deliver_group="workers", flow_control=None)
    found: dict[str, list[int]] = {"a": [], "b": []}

    async def read(js: JetStream, name: str, is_ready: asyncio.Event) -> None:
        own = await (await js.streams.get(stream.name)).consumers.get(consumer.name)
        async with own.subscribe() as messages:
            is_ready.set()
            async for message in messages:
                await message.ack()
                found[name] += numbers([message])
                if len(found["a"]) + len(found["b"]) == 400:
                    done.set()

    done, ready = asyncio.Event(), (asyncio.Event(), asyncio.Event())
    async with asyncio.TaskGroup() as group:
        readers = [
            group.create_task(read(js, "a", ready[0])),
            group.create_task(read(other, "b", ready[1])),
        ]
        for each in ready:
            await each.wait()
        await fill_push(js, stream, 400)
        async with asyncio.timeout(40):
            await done.wait()
        for reader in readers:
            reader.cancel()

    assert sorted(found["a"] + found["b"]) == list(range(1, 401))
    assert found["a"]
    assert found["b"]


async def test_leaving_the_block_gives_back_what_nobody_took(js: JetStream, stream: Stream) -> None:
    """Else the next reader would wait for `ack_wait`, a minute here."""
    consumer = await make_push(stream, ack_wait=60)
    await fill_push(js, stream, 50)

    async with consumer.subscribe() as messages:
        first = await take_push(messages, 10)
        while messages.pending_count < 40:
            await asyncio.sleep(0)
    async with asyncio.timeout(40), consumer.subscribe() as again:
        rest = await take_push(again, 40)

    assert numbers(first) == list(range(1, 11))
    assert sorted(numbers(rest)) == list(range(11, 51))


async def test_what_was_on_its_way_is_given_back_as_well(fresh_server: NatsServer) -> None:
    """Messages that the server had sent, and that arrive while the block is being left."""
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url) as far, connect(fresh_server.url) as near:
            stream = await near.streams.create("S", subjects=["S.>"])
            consumer = await make_push(stream, ack_wait=60, idle_heartbeat=5)
            async with asyncio.timeout(40):
                own = await (await far.streams.get("S")).consumers.get("push")
                # A reader that leaves waits a second, in which a busy machine may stand still.
                messages = await tuned_push(own, flush_s=30.0).open()
                proxy.stall(direction="to_client")
                await fill_push(near, stream, 10)

                async def are_sent() -> bool:
                    return (await consumer.info()).num_ack_pending == 10

                await eventually_async(are_sent)
                closing = asyncio.ensure_future(messages.close())
                await asyncio.sleep(0)
                proxy.heal()
                await closing
                async with consumer.subscribe() as again:
                    found = await take_push(again, 10)

    assert sorted(numbers(found)) == list(range(1, 11))
    assert {message.delivered for message in found} == {2}


async def test_leaving_the_block_leaves_nothing(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url, name="left") as js:
        stream = await js.streams.create("S", subjects=["S.>"])
        # A heartbeat that is late would be an event.
        consumer = await make_push(stream, idle_heartbeat=10)
        tasks = asyncio.all_tasks()
        subscriptions = connection_of(fresh_server, "left")["subscriptions"]
        for _ in range(50):
            async with consumer.subscribe() as messages:
                # One by one: what the server has queued when a reader leaves waits for ack_wait.
                await fill_push(js, stream, 1)
                await take_push(messages, 1)
                events = messages.events()
            assert [event async for event in events] == []
        with pytest.raises(RuntimeError, match="mine"):
            async with consumer.subscribe():
                raise RuntimeError("mine")

        async def is_clean() -> bool:
            left = connection_of(fresh_server, "left")["subscriptions"]
            is_bound = (await consumer.info()).is_push_bound
            return left == subscriptions and not is_bound and asyncio.all_tasks() <= tasks

        await eventually_async(is_clean)


async def test_drain_ends_after_what_has_arrived(js: JetStream, stream: Stream) -> None:
    consumer = await make_push(stream)
    await fill_push(js, stream, 100)

    async with consumer.subscribe() as messages:
        first = await take_push(messages, 1)
        while messages.pending_count < 99:
            await asyncio.sleep(0)
        await messages.drain()
        await js.publish(f"{stream.name}.a", b"101")
        rest = [message async for message in messages]
        assert await messages.next(timeout=0) is None

    assert numbers(first + rest) == list(range(1, 101))


async def test_closing_ends_a_loop_that_waits(stream: Stream) -> None:
    consumer = await make_push(stream)
    messages = await consumer.subscribe().open()

    async def read() -> list[DeliveredMessage]:
        return [message async for message in messages]

    reader = asyncio.ensure_future(read())
    await asyncio.sleep(0)
    await messages.close()
    await messages.close()

    assert await asyncio.wait_for(reader, 30) == []


async def test_a_loop_of_next_ends_by_an_error_and_does_not_stop_the_event_loop(
    stream: Stream,
) -> None:
    consumer = await make_push(stream)
    async with consumer.subscribe() as messages:

        async def read() -> None:
            while True:
                await messages.next(timeout=1)

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        await messages.drain()
        with pytest.raises(UsageError, match="has ended"):
            await reading


async def test_reader_that_is_cancelled_loses_nothing(js: JetStream, stream: Stream) -> None:
    consumer = await make_push(stream)
    found: list[DeliveredMessage] = []

    async with consumer.subscribe() as messages:
        assert await messages.next(timeout=0) is None
        assert await messages.next(timeout=0.01) is None
        for number in range(1, 21):
            reader = asyncio.ensure_future(anext(messages))
            await asyncio.sleep(0)
            await js.publish(f"{stream.name}.a", b"%d" % number)
            reader.cancel()
            await asyncio.wait([reader])
            if not reader.cancelled():
                found.append(reader.result())
        while len(found) < 20:
            found += await take_push(messages, 1, ack=False)

    assert numbers(found) == list(range(1, 21))


async def test_consumer_has_one_reader_unless_a_group_shares_it(
    other: JetStream, stream: Stream
) -> None:
    consumer = await make_push(stream)
    second = await (await other.streams.get(stream.name)).consumers.get("push")

    async with consumer.subscribe():
        with pytest.raises(ConflictError, match="another client") as raised:
            await second.subscribe().open()
        assert raised.value.retryable

    async def opens() -> bool:
        try:
            async with second.subscribe():
                return True
        except ConflictError:  # The server learns of the end of the first a moment later.
            return False

    assert await eventually_async(opens)


async def test_slow_answer_does_not_use_up_the_wait_for_a_reader_that_has_left(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look takes five seconds, by the clock, and tells of the reader before."""
    loop = asyncio.get_running_loop()
    clock, look = loop.time, PushSource.look
    looks = 0

    async def slow(source: PushSource) -> PushState:
        nonlocal looks
        looks += 1
        return replace(await look(source), is_bound=looks == 1)

    monkeypatch.setattr(PushSource, "look", slow)
    monkeypatch.setattr(loop, "time", lambda: clock() + (5 if looks else 0))
    async with (await make_push(stream)).subscribe():
        assert looks == 2


async def test_what_can_not_be_subscribed_to_is_refused(stream: Stream) -> None:
    pulled = await stream.consumers.create("pulled")
    flow = await stream.consumers.create(
        "flow",
        ack_policy="flow_control",
        deliver_subject=f"deliver.{stream.name}.f",
        flow_control=True,
        idle_heartbeat=1,
        max_ack_pending=10,
    )
    consumer = await make_push(stream)

    with pytest.raises(UsageError, match="does not push"):
        pulled.subscribe()
    with pytest.raises(UsageError, match="mirror or source"):
        flow.subscribe()
    for limit in ({"max_pending": 0}, {"max_pending_bytes": 0}):
        with pytest.raises(ConfigError):
            consumer.subscribe(**limit)
    with pytest.raises(UsageError, match="not subscribed"):
        consumer.subscribe().events()
    with pytest.raises(UsageError, match="not subscribed"):
        await anext(consumer.subscribe())


async def test_one_task_reads_and_a_block_opens_once(stream: Stream) -> None:
    consumer = await make_push(stream)

    async with consumer.subscribe() as messages:
        reader = asyncio.ensure_future(anext(messages))
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="another task"):
            await anext(messages)
        with pytest.raises(UsageError, match="opens once"):
            await messages.open()
        reader.cancel()
        await asyncio.wait([reader])
    with pytest.raises(UsageError, match="opens once"):
        await messages.open()


async def test_headers_alone_are_delivered(js: JetStream, stream: Stream) -> None:
    consumer = await make_push(stream, headers_only=True, ack_policy="none", filters=None)
    await js.publish(f"{stream.name}.a", b"12345", headers={"K": "v"})

    async with consumer.subscribe() as messages:
        message = await anext(messages)

    assert (message.data, message.headers["K"]) == (b"", "v")
    assert message.headers["Nats-Msg-Size"] == "5"


async def test_ack_subjects_of_the_second_form_are_read() -> None:
    with NatsServer(config=NEW_FORM) as server:
        async with connect(server.url) as js:
            stream = await js.streams.create("S", subjects=["S.>"])
            consumer = await make_push(stream)
            await fill_push(js, stream, 100)
            async with consumer.subscribe() as messages:
                found = await take_push(messages, 99)
                last = await anext(messages)
                await last.ack(confirm=True)

    assert numbers(found) == list(range(1, 100))
    assert last.reply.count(b".") > 8
    assert messages.missed == 0


async def take_slowly(messages: PushMessages, taken: list[int]) -> None:
    """Ack messages until that raises, and note which."""
    while True:
        taken += numbers(await take_push(messages, 1))
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("end", ["break", "drain"])
async def test_reader_that_ends_by_itself_tells_a_refused_ack_when_it_is_left(end: str) -> None:
    async def take(consumer: Consumer) -> None:
        async with consumer.subscribe() as messages:
            if end == "drain":
                while messages.pending_count < 5:
                    await asyncio.sleep(0.01)
                await messages.drain()
            async for message in messages:
                await message.ack()
                if end == "break":
                    break

    users = "authorization { users: [{ user: u, password: p, permissions: "
    with NatsServer(config=f'{users}{{publish: {{deny: "$JS.ACK.>"}}}}}}]}}') as server:
        async with connect(server.url, user="u", password="p") as js:  # noqa: S106 - of the test.
            stream = await js.streams.create("S", subjects=["S.>"])
            consumer = await make_push(stream)
            await fill_push(js, stream, 5)
            with pytest.raises(PermissionDeniedError):
                await take(consumer)


async def test_reader_whose_acks_are_refused_is_told_so() -> None:
    """Instead of the same messages again and again, and no word."""
    users = "authorization { users: [{ user: u, password: p, permissions: "
    taken = list[int]()
    with NatsServer(config=f'{NEW_FORM}\n{users}{{publish: {{deny: "$JS.ACK.>"}}}}}}]}}') as server:
        async with connect(server.url, user="u", password="p") as js:  # noqa: S106 - of the test.
            stream = await js.streams.create("S", subjects=["S.>"])
            consumer = await make_push(stream, ack_wait=0.5)
            await fill_push(js, stream, 100)
            async with consumer.subscribe() as messages:
                with pytest.raises(PermissionDeniedError, match="stream S") as raised:
                    await take_slowly(messages, taken)
                with pytest.raises(PermissionDeniedError):
                    await messages.next(timeout=0)

    assert len(taken) < 20
    assert raised.value.hint.endswith(f".S.{consumer.name}.>")


@pytest.mark.parametrize("kind", ["push", "pull"])
async def test_messages_are_replayed_at_the_pace_of_storing(
    js: JetStream, stream: Stream, kind: str
) -> None:
    """Three messages with a pause before the last one: it takes as long to get them all."""
    for wait_s in (0.0, 0.0, 0.6):
        await asyncio.sleep(wait_s)  # Not a wait for a fact: the pause is what is stored.
        await js.publish(f"{stream.name}.a", b"x")
    fields: dict[str, Any] = {"deliver_subject": f"deliver.{stream.name}"} if kind == "push" else {}
    loop = asyncio.get_running_loop()

    async def seconds(policy: Any) -> float:
        name = f"{kind}-{policy}"
        consumer = await stream.consumers.create(
            name, replay_policy=policy, ack_policy="none", **fields
        )
        began = loop.time()
        if kind == "push":
            async with consumer.subscribe() as messages:
                await take_push(messages, 3, ack=False)
        else:
            for _ in range(3):
                assert await consumer.next(timeout=10) is not None
        took = loop.time() - began
        await stream.consumers.delete(name)
        return took

    assert await seconds("original") >= 0.55
