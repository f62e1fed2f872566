"""Integration tests of a steady flow on one server that works."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import ConsumerDeleted, HeartbeatsMissed, LimitExceeded, connect
from natsstream.errors import (
    ConfigError,
    ConnectionClosedError,
    ConsumerDeletedError,
    UsageError,
)
from tests.support.eventually import eventually_async
from tests.support.pulling import (
    has_pulls,
    has_subscriptions,
    is_idle,
    is_settled,
    subscriptions,
    take,
    worker_of,
)
from tests.support.streams import consumer_count, fill

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.streams.consumers.consumer import Consumer
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


async def out(worker: Consumer) -> int:
    """Return how many messages are out and not settled."""
    return (await worker.info()).num_ack_pending


@pytest.mark.sampled_variants
@pytest.mark.proves("1c", "messages()/async iterator")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_messages": 1},
        {"max_messages": 2},
        {"max_messages": 7, "threshold": 0.9},
        {"max_messages": 10, "threshold": 0},
        {"max_bytes": 2_000},
        {"max_bytes": 1},
        {"max_messages": 5, "max_bytes": 300, "expires": 0.2},
    ],
)
async def test_each_message_comes_once_and_in_order(
    js: JetStream, stream_name: str, options: dict[str, Any]
) -> None:
    worker = await worker_of(js, stream_name, 300, size=100)
    async with worker.consume(**options) as messages:
        found = await take(messages, 300)
        await fill(js, stream_name, 5, start=300)
        found += await take(messages, 5)

    assert found == list(range(1, 306))
    assert await eventually_async(lambda: is_settled(worker))


async def test_message_larger_than_the_bytes_of_the_flow_comes_alone(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 3, size=100)
    await fill(js, stream_name, 2, size=10_000, start=3)
    await fill(js, stream_name, 3, size=100, start=5)
    async with worker.consume(max_bytes=1_000) as messages:
        assert await take(messages, 8) == list(range(1, 9))


@pytest.mark.parametrize("max_messages", [1, 10])
async def test_reader_that_stops_holds_no_more_than_its_window(
    js: JetStream, stream_name: str, max_messages: int
) -> None:
    worker = await worker_of(js, stream_name, 200)
    async with worker.consume(max_messages=max_messages) as messages:
        assert await take(messages, 1, ack=False) == [1]
        # Whatever was asked for comes before the answer to a question that is asked behind it.
        await js.account()
        await js.account()
        assert await out(worker) <= max_messages
        assert messages.waiting <= max_messages


@pytest.mark.proves("1c", "thresholds")
async def test_bytes_that_wait_are_bounded(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 100, size=10_000)
    async with worker.consume(max_bytes=50_000) as messages:
        await take(messages, 1, ack=False)
        await js.account()
        await js.account()
        assert await out(worker) <= 6


@pytest.mark.parametrize("window", [0, -5, "x", None, True])
async def test_a_flow_keeps_its_window_where_another_is_none(
    js: JetStream, stream_name: str, window: Any
) -> None:
    worker = await worker_of(js, stream_name, 20)
    async with worker.consume(max_messages=4, stop_after=20) as messages:
        with pytest.raises(ConfigError, match="max_messages is"):
            messages.resize(window)
        assert len([message async for message in messages]) == 20


@pytest.mark.smoke
@pytest.mark.proves("1c", "stop / drain / closed signal, stop-after-N")
async def test_flow_ends_after_exactly_so_many(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 100)
    async with worker.consume(max_messages=20, stop_after=33) as messages:
        found = [message.sequence async for message in messages]
        assert [message async for message in messages] == []

    assert found == list(range(1, 34))
    # Nothing beyond them was delivered.
    assert (await worker.info()).delivered.stream_seq == 33


@pytest.mark.proves("1c", "messages()/async iterator")
async def test_loop_that_was_left_goes_on_with_the_next_message(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 50)
    found: list[int] = []
    async with worker.consume(stop_after=50) as messages:
        while len(found) < 50:
            async for message in messages:
                found.append(message.sequence)
                if len(found) % 7 == 0:
                    break

    assert found == list(range(1, 51))


async def test_cancelled_waits_lose_nothing(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name)
    found: list[int] = []
    async with worker.consume(max_messages=4) as messages:
        filling = asyncio.ensure_future(fill(js, stream_name, 200))
        while len(found) < 200:
            try:
                async with asyncio.timeout(0.000_2 if len(found) % 2 else 30):
                    found.append((await anext(messages)).sequence)
            except TimeoutError:
                found += await take(messages, 1)
        await filling

    assert found == list(range(1, 201))


async def test_tasks_share_a_flow(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 200)
    found: list[int] = []

    async with worker.consume(max_messages=10, stop_after=200) as messages:

        async def read() -> int:
            count = 0
            async for message in messages:
                await message.ack()
                found.append(message.sequence)
                count += 1
                await asyncio.sleep(0)
            return count

        counts = await asyncio.gather(*(read() for _ in range(5)))

    assert sorted(found) == list(range(1, 201))
    assert all(counts)


async def test_leaving_gives_back_what_was_not_handed_out(js: JetStream, stream_name: str) -> None:
    """The ack_wait is long: others get the messages because they were given back."""
    worker = await worker_of(js, stream_name, 100, ack_wait=600)
    async with worker.consume() as messages:
        assert await take(messages, 5) == [1, 2, 3, 4, 5]
        await eventually_async(lambda: has_waiting(messages))
    assert messages.waiting == 0
    others = await worker.fetch(95, timeout=40)

    assert sorted(message.sequence for message in others) == list(range(6, 101))


async def has_waiting(messages: Any) -> bool:
    """Tell whether messages wait for their reader."""
    return messages.waiting > 0


@pytest.mark.proves("1c", "stop / drain / closed signal, stop-after-N")
async def test_draining_hands_out_what_has_arrived_and_ends(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 100)
    async with worker.consume(max_messages=40) as messages:
        found = await take(messages, 5)
        await messages.drain()
        await messages.drain()
        async for message in messages:
            await message.ack()
            found.append(message.sequence)

    assert found == list(range(1, len(found) + 1))
    assert 40 <= len(found) < 100
    assert await eventually_async(lambda: is_settled(worker))
    assert await is_idle(worker)


@pytest.mark.proves("1c", "stop / drain / closed signal, stop-after-N")
async def test_stopping_ends_loops_that_wait_and_events(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name)
    async with worker.consume() as messages:
        waiting = [asyncio.ensure_future(anext(messages, None)) for _ in range(3)]
        listening = asyncio.ensure_future(anext(messages.events(), None))
        await asyncio.wait(waiting, timeout=0.05)
        await messages.stop()
        await messages.stop()

        assert await asyncio.gather(*waiting) == [None] * 3
        assert await listening is None


@pytest.mark.parametrize("way", ["drain", "stop"])
async def test_cancelled_end_leaves_no_reader_waiting(
    js: JetStream, stream_name: str, way: str
) -> None:
    worker = await worker_of(js, stream_name)
    before = subscriptions(js)
    async with worker.consume() as messages:
        waiting = asyncio.ensure_future(anext(messages, None))
        ending = asyncio.ensure_future(getattr(messages, way)())
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait({ending})

        assert await waiting is None
        await eventually_async(lambda: has_subscriptions(js, before))


async def test_leaving_by_an_exception_frees_everything(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 20)
    before, tasks = subscriptions(js), len(asyncio.all_tasks())

    async def fail() -> None:
        async with worker.consume() as messages:
            await anext(messages)
            raise LookupError

    with pytest.raises(LookupError):
        await fail()

    assert subscriptions(js) == before
    assert len(asyncio.all_tasks()) == tasks
    assert await eventually_async(lambda: is_idle(worker))
    assert sorted(m.sequence for m in await worker.fetch(19, timeout=25)) == list(range(2, 21))


async def test_cancelled_block_frees_everything(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 20)
    before, tasks = subscriptions(js), len(asyncio.all_tasks())

    async def read() -> None:
        async with worker.consume() as messages:
            async for message in messages:
                await message.ack()

    for wait_s in (0.0, 0.0005, 0.002, 0.01, 0.05):
        reading = asyncio.ensure_future(read())
        await asyncio.wait({reading}, timeout=wait_s)
        reading.cancel()
        await asyncio.wait({reading})
        assert reading.cancelled()
        assert subscriptions(js) == before
    assert len(asyncio.all_tasks()) == tasks
    assert await eventually_async(lambda: is_idle(worker))


async def test_a_thousand_flows_leave_nothing(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name)
    before, tasks = subscriptions(js), len(asyncio.all_tasks())

    async def open_and_leave(count: int) -> None:
        for _ in range(count):
            async with worker.consume():
                pass

    await asyncio.gather(*(open_and_leave(50) for _ in range(20)))

    assert subscriptions(js) == before
    assert len(asyncio.all_tasks()) == tasks
    assert await consumer_count(await js.streams.get(stream_name)) == 1
    assert await eventually_async(lambda: is_idle(worker))


@pytest.mark.proves("1c", "consumer deleted -> typed error")
@pytest.mark.parametrize("what", ["consumer", "stream", "consumer before", "stream before"])
async def test_deletion_ends_a_flow_with_a_typed_error(
    js: JetStream, stream_name: str, what: str
) -> None:
    worker = await worker_of(js, stream_name, 3)
    stream = await js.streams.get(stream_name)
    delete = js.streams.delete(stream_name) if "stream" in what else stream.consumers.delete("work")
    if "before" in what:
        await delete
    async with worker.consume() as messages:
        if "before" not in what:
            assert await take(messages, 3) == [1, 2, 3]
            await delete
        async with asyncio.timeout(30):
            which = f"stream {stream_name}" if "stream" in what else "consumer work"
            with pytest.raises(ConsumerDeletedError, match=f"^{which} .*was deleted"):
                await anext(messages)
            with pytest.raises(ConsumerDeletedError):
                await anext(messages)
        async with aclosing(messages.events()) as events:
            assert isinstance(await anext(events), ConsumerDeleted)


@pytest.mark.parametrize("is_lost", [False, True])
async def test_deletion_in_one_write_with_a_pull_is_found(
    js: JetStream, stream_name: str, *, is_lost: bool
) -> None:
    """The pull goes with the deletion, or is lost, so that nothing but silence tells."""
    worker = await worker_of(js, stream_name)
    client = js._client  # pyright: ignore[reportPrivateUsage]
    write, delete = client.write, f"$JS.API.CONSUMER.DELETE.{stream_name}.work"

    def write_both(commands: bytes) -> bool:
        if b"MSG.NEXT" in commands:
            client.write = write
            commands = b"PUB %b 0\r\n\r\n%b" % (delete.encode(), b"" if is_lost else commands)
        return write(commands)

    client.write = write_both
    # One pull alone: a second one would find nobody.
    async with worker.consume(heartbeat=0.1, max_messages=1) as messages, asyncio.timeout(30):
        with pytest.raises(ConsumerDeletedError):
            await anext(messages)


async def test_limit_that_the_handle_does_not_know_is_adapted_to(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 30)
    stream = await js.streams.get(stream_name)
    await stream.consumers.update("work", max_batch=3, max_expires=0.2)
    async with worker.consume(max_messages=20) as messages:
        assert await take(messages, 30) == list(range(1, 31))
        async with aclosing(messages.events()) as events:
            event = await anext(events)

    assert isinstance(event, LimitExceeded)
    assert event.limit in ("max_batch", "max_expires")


async def test_flow_waits_while_too_many_pulls_are_open(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, max_waiting=1)
    first = asyncio.ensure_future(worker.next(timeout=50))
    await eventually_async(lambda: has_pulls(worker))
    async with worker.consume(max_messages=1, heartbeat=0.1) as messages:
        reading = asyncio.ensure_future(take(messages, 3))
        async with aclosing(messages.events()) as events:
            assert isinstance(await anext(events), HeartbeatsMissed)
            event = await anext(events)
        await fill(js, stream_name, 4)
        assert await first is not None
        assert len(await reading) == 3

    assert isinstance(event, LimitExceeded)
    assert event.limit == "max_waiting"


async def test_flow_goes_on_when_its_pulls_expire(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name)
    async with worker.consume(expires=0.1) as messages:
        for number in range(5):
            reading = asyncio.ensure_future(take(messages, 1))
            await asyncio.wait({reading}, timeout=0.15)
            await fill(js, stream_name, 1, start=number)
            assert await reading == [number + 1]


async def test_flow_that_is_not_open_says_how_to_open_it(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name)
    messages = worker.consume()
    with pytest.raises(UsageError, match="not open"):
        await anext(messages)
    async with messages:
        pass
    with pytest.raises(UsageError, match="opens once"):
        async with messages:
            pass


@pytest.mark.parametrize(
    "options",
    [
        {"max_messages": 0},
        {"max_messages": "5"},
        {"max_bytes": 0},
        {"threshold": 1},
        {"threshold": "x"},
        {"expires": 0},
        {"expires": -1},
        {"heartbeat": 20},
        {"stop_after": 0},
        {"stop_after": True},
        {"group": "x" * 17},
        {"priority": 3},
        {"min_pending": 1},
    ],
)
async def test_options_that_can_not_work_are_refused(
    js: JetStream, stream_name: str, options: dict[str, Any]
) -> None:
    worker = await worker_of(js, stream_name)
    with pytest.raises(ConfigError):
        worker.consume(**options)


async def test_closing_the_connection_ends_a_flow(server: NatsServer, stream_name: str) -> None:
    async with connect(server.url) as js:
        worker = await worker_of(js, stream_name)
        messages = worker.consume()
        await messages.__aenter__()
        reading = asyncio.ensure_future(anext(messages))
        await asyncio.wait({reading}, timeout=0.05)
    await asyncio.wait({reading}, timeout=30)

    with pytest.raises(ConnectionClosedError):
        await reading
    await messages.stop()
