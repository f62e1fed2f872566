"""Integration tests of pulls while the link or the server stands still for a while.

The ack_wait is ten minutes: whoever gets a message gets it because it was given back.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.api.consumer_info import ConsumerInfo
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.testing import FaultProxy
from tests.support.eventually import eventually_async
from tests.support.pulling import (
    has_pulls,
    has_subscriptions,
    sequences,
    subscriptions,
    tuned,
    worker_of,
)
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import Consumer
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

ACK_WAIT_S = 600


async def leave_flow(worker: Consumer, freeze: asyncio.Event, frozen: asyncio.Event) -> None:
    """Leave a flow whose messages do not arrive."""
    async with worker.consume(max_messages=20):
        freeze.set()
        await frozen.wait()


async def cancel_fetch(worker: Consumer, freeze: asyncio.Event, frozen: asyncio.Event) -> None:
    """Cancel a fetch whose messages do not arrive."""
    fetch = asyncio.ensure_future(worker.fetch(20, timeout=60))
    freeze.set()
    await frozen.wait()
    fetch.cancel()
    with suppress(asyncio.CancelledError):
        await fetch


@pytest.mark.parametrize("way", [leave_flow, cancel_fetch])
async def test_what_a_frozen_link_held_is_given_back_when_it_goes_on(
    server: NatsServer,
    stream_name: str,
    way: Callable[[Consumer, asyncio.Event, asyncio.Event], Awaitable[None]],
) -> None:
    """Whoever has left does not wait for it; what was on its way is not lost until ack_wait."""
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as direct, connect(proxy.url) as js:
            near = await worker_of(direct, stream_name, ack_wait=ACK_WAIT_S)
            worker = await (await js.streams.get(stream_name)).consumers.get("work")
            tuned(worker, flush_s=0.05, linger_s=0.05)
            before = subscriptions(js)
            freeze, frozen = asyncio.Event(), asyncio.Event()
            leaving = asyncio.ensure_future(way(worker, freeze, frozen))
            await freeze.wait()
            await eventually_async(lambda: has_pulls(near))
            proxy.stall(direction="to_client")
            await fill(direct, stream_name, 20)
            await eventually_async(lambda: are_out(near, 20))
            frozen.set()
            await leaving
            await asyncio.sleep(0.5)  # Far longer than those who leave wait for the server.
            proxy.heal()
            others = await near.fetch(20, timeout=40)
            await eventually_async(lambda: has_subscriptions(js, before))

    assert sorted(sequences(others)) == list(range(1, 21))


async def are_out(worker: Consumer, count: int) -> bool:
    """Tell whether so many messages are out."""
    return (await worker.info()).num_ack_pending == count


async def test_answer_that_comes_behind_the_question_where_it_stays_is_taken(
    server: NatsServer, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server stands still beyond the fetch's time and grace, and goes on when it is asked."""
    with FaultProxy(server.port) as proxy:
        async with connect(proxy.url) as js:
            worker = await worker_of(js, stream_name, 3, ack_wait=ACK_WAIT_S)
            # Once asked, a busy machine may take long to answer.
            await tuned(worker, grace_s=30).fetch(1, no_wait=True)
            check = ConsumerSource.check_exists

            async def heal_and_check(source: ConsumerSource, timeout: float) -> ConsumerInfo | None:
                proxy.heal()
                return await check(source, max(timeout, 30))

            monkeypatch.setattr(ConsumerSource, "check_exists", heal_and_check)
            proxy.stall()

            assert sequences(await worker.fetch(10, timeout=0.1)) == [2, 3]


async def test_flow_that_was_left_keeps_no_subscription_when_its_connection_breaks(
    server: NatsServer, stream_name: str
) -> None:
    """It waits for the link's last word, which a broken one never has."""
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as direct, connect(proxy.url) as js:
            near = await worker_of(direct, stream_name)
            worker = await (await js.streams.get(stream_name)).consumers.get("work")
            tuned(worker, flush_s=0.05, withdrawn_s=600)
            before = subscriptions(js)
            async with worker.consume():
                await eventually_async(lambda: has_pulls(near))
                proxy.stall(direction="to_client")
            assert subscriptions(js) == before + 1
            proxy.cut()
            await eventually_async(lambda: has_subscriptions(js, before))
            proxy.heal()
