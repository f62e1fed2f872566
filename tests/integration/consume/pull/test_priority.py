"""Integration tests of pulls for priority groups (ADR-42)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

import natsstream as ns
from natsstream import Pinned, Unpinned
from natsstream.errors import ConfigError, ServerError
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.pulling import (
    has_pulls,
    is_idle,
    nothing_comes,
    sequences,
    take,
    worker_of,
)
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import Consumer, DeliveredMessage, JetStream

pytestmark = pytest.mark.asyncio


async def pinned_worker(js: JetStream, name: str, count: int = 0) -> Consumer:
    """Return a consumer whose group is pinned to one client."""
    return await worker_of(
        js, name, count, priority_groups=["jobs"], priority_policy="pinned_client"
    )


@pytest.mark.proves("1c", "priority: overflow (min_pending/min_ack_pending)")
async def test_overflow_pulls_wait_until_enough_is_pending(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(
        js, stream_name, 3, priority_groups=["jobs"], priority_policy="overflow"
    )
    waiting = asyncio.ensure_future(worker.fetch(2, timeout=50, min_pending=5))
    done, _ = await asyncio.wait({waiting}, timeout=0.3)
    assert not done
    await fill(js, stream_name, 4, start=3)

    assert sequences(await waiting) == [1, 2]
    assert sequences(await worker.fetch(2, timeout=0.2, min_ack_pending=50)) == []
    assert sequences(await worker.fetch(2, min_ack_pending=2)) == [3, 4]


@pytest.mark.proves("1c", "priority: prioritized")
async def test_pulls_with_the_lower_priority_number_come_first(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(
        js, stream_name, priority_groups=["jobs"], priority_policy="prioritized"
    )
    late = asyncio.ensure_future(worker.fetch(1, timeout=50, priority=7))
    await eventually_async(lambda: has_pulls(worker))
    first = asyncio.ensure_future(worker.fetch(1, timeout=50, priority=0))
    await eventually_async(lambda: has_pulls(worker, 2))
    await fill(js, stream_name, 1)

    assert sequences(await first) == [1]
    assert not late.done()
    await fill(js, stream_name, 1, start=1)
    assert sequences(await late) == [2]


@pytest.mark.proves("1c", "priority: pinned client (id, 423) + unpin")
async def test_pinned_flow_gets_all_and_the_other_stands_by(
    js: JetStream, stream_name: str
) -> None:
    worker = await pinned_worker(js, stream_name, 50)
    async with worker.consume(max_messages=10) as messages:
        found = await take(messages, 20)
        async with worker.consume(max_messages=10) as other:
            standing_by = asyncio.ensure_future(anext(other))
            found += await take(messages, 30)
            assert not standing_by.done()
            async with aclosing(messages.events()) as events:
                assert isinstance(await anext(events), Pinned)
            standing_by.cancel()

    assert found == list(range(1, 51))


@pytest.mark.proves("1c", "status/notification events")
@pytest.mark.proves("1c", "priority: pinned client (id, 423) + unpin")
async def test_unpinned_flow_is_told_and_goes_on(js: JetStream, stream_name: str) -> None:
    worker = await pinned_worker(js, stream_name, 10)
    stream = await js.streams.get(stream_name)
    async with worker.consume(max_messages=4) as messages:
        found = await take(messages, 10)
        reading = asyncio.ensure_future(take(messages, 5))
        await stream.consumers.unpin("work", group="jobs")
        await fill(js, stream_name, 5, start=10)
        found += await reading
        async with aclosing(messages.events()) as events:
            kinds = [type(await anext(events)) for _ in range(3)]

    assert found == list(range(1, 16))
    assert kinds == [Pinned, Unpinned, Pinned]


async def pin_of(worker: Consumer) -> str:
    """Return the id of the pinned reader; empty for none."""
    return (await worker.info()).priority_groups[0].pinned_client_id


@pytest.mark.parametrize("end", ["leave", "cancel"])
async def test_reader_that_ends_gives_back_its_pin(
    js: JetStream, stream_name: str, end: str
) -> None:
    worker = await pinned_worker(js, stream_name, 5)
    has_read = asyncio.Event()

    async def read_some() -> None:
        async with worker.consume(max_messages=4) as messages:
            assert await take(messages, 5) == [1, 2, 3, 4, 5]
            has_read.set()
            if end == "cancel":
                await anext(messages)

    reading = asyncio.create_task(read_some())
    await has_read.wait()
    if end == "cancel":
        reading.cancel()
    await asyncio.wait({reading})

    assert await pin_of(worker) == ""
    async with worker.consume() as other:
        await fill(js, stream_name, 1, start=5)
        assert (await anext(other)).sequence == 6


async def test_worker_keeps_its_pin_until_its_last_handler_ends(
    js: JetStream, stream_name: str
) -> None:
    consumer = await pinned_worker(js, stream_name, 1)
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def handle(_: DeliveredMessage) -> None:
        begun.set()
        await may_end.wait()

    async with consumer.worker(handle) as worker:
        await begun.wait()
        stopping = asyncio.create_task(worker.stop())
        await eventually_async(lambda: is_idle(consumer))
        pin = await pin_of(consumer)
        may_end.set()
        await stopping

    assert pin
    assert await pin_of(consumer) == ""


async def test_pin_of_another_reader_is_left_alone(js: JetStream, stream_name: str) -> None:
    worker = await pinned_worker(js, stream_name, 1)
    async with worker.consume() as messages, worker.consume() as other:
        await take(messages, 1)
        await messages.stop()
        await (await js.streams.get(stream_name)).consumers.unpin("work", group="jobs")
        await fill(js, stream_name, 1, start=1)
        await take(other, 1)
        pin = await pin_of(worker)
        await messages.unpin()

        assert await pin_of(worker) == pin != ""


async def test_reader_that_may_not_unpin_says_so(caplog: pytest.LogCaptureFixture) -> None:
    user = '{user: u, password: p, permissions: {publish: {deny: "$JS.API.CONSUMER.UNPIN.>"}}}'
    with NatsServer(config=f"authorization {{ users: [{user}] }}") as server:
        async with ns.connect(server.url, user="u", password="p") as js:  # noqa: S106
            worker = await pinned_worker(js, "S", 1)
            async with worker.consume() as messages:
                await take(messages, 1)

    assert "the pin of group jobs could not be given back" in caplog.text


@pytest.mark.proves("1c", "next(one)")
async def test_pinned_fetches_of_one_handle_go_on_with_their_pin(
    js: JetStream, stream_name: str
) -> None:
    worker = await pinned_worker(js, stream_name, 10)
    found: list[int] = []
    for _ in range(5):
        messages = await worker.fetch(2, timeout=30)
        found += sequences(messages)
        for message in messages:
            await message.ack(confirm=True)
    other = await (await js.streams.get(stream_name)).consumers.get("work")
    await fill(js, stream_name, 1, start=10)

    assert found == list(range(1, 11))
    assert await nothing_comes(other, within_s=0.2)
    assert await worker.next(timeout=30) is not None


async def test_group_that_does_not_exist_is_refused(js: JetStream, stream_name: str) -> None:
    worker = await pinned_worker(js, stream_name, 1)
    with pytest.raises(ServerError):
        await worker.next(timeout=4, group="others")
    async with worker.consume(group="others") as messages:
        with pytest.raises(ServerError):
            await anext(messages)
    assert await eventually_async(lambda: is_idle(worker))


async def test_group_is_refused_where_the_consumer_has_none(
    js: JetStream, stream_name: str
) -> None:
    await fill(js, stream_name, 1)
    worker = await worker_of(js, stream_name)

    with pytest.raises(ConfigError, match="group needs a priority group"):
        await worker.next(timeout=2, group="jobs")
    with pytest.raises(ConfigError, match="group needs a priority group"):
        await worker.fetch(1, group="jobs")
    with pytest.raises(ConfigError, match="group needs a priority group"):
        worker.consume(group="jobs")
