"""Confirmed acks while the server forgets: none holds up a worker, and none is lost.

A server with one replica that is killed forgets its consumers' last tenth of a second. It answers
no ack of a delivery that it does not know of, so each would wait for its whole deadline.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import DeliveryForgottenError
from tests.support.eventually import eventually_async
from tests.support.work import api_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from natsstream import Consumer, JetStream
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

_COUNT = 2_000
# One confirmation that nobody answers must not cost its `request_timeout`: here that is for ever.
_NEVER_S = 600.0
_HANG_S = 100.0


async def filled(js: JetStream, name: str, *, count: int = _COUNT) -> Consumer:
    """Return the consumer `c` of a stream with many messages."""
    stream = await js.streams.ensure(name, subjects=[f"{name}.>"])
    consumer = await stream.consumers.ensure("c")
    async with js.publisher() as publisher:
        for number in range(count):
            await publisher.send(f"{name}.x", b"%d" % number)
    return consumer


async def restart(js: JetStream, server: NatsServer) -> float:
    """Kill the server and start it again; returns for how long the client was without it."""
    loop, client = asyncio.get_running_loop(), api_of(js).client
    connections, since = client.connections, loop.time()
    await loop.run_in_executor(None, server.kill)
    await loop.run_in_executor(None, server.start)

    async def is_back() -> bool:
        return client.connections > connections and client.is_connected

    await eventually_async(is_back)
    return loop.time() - since


async def work_through(
    js: JetStream, server: NatsServer, name: str, *, confirm: bool
) -> tuple[float, float]:
    """Handle all messages, with a kill half-way; returns seconds in all, and of the outage."""
    consumer = await filled(js, name)
    loop = asyncio.get_running_loop()
    handled: set[int] = set()
    is_half, is_done = asyncio.Event(), asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        await asyncio.sleep(0.002)  # The work, so that there is something to compare with.
        handled.add(message.sequence)
        if len(handled) == _COUNT // 2:
            is_half.set()
        if len(handled) == _COUNT:
            is_done.set()

    since = loop.time()

    def tell(error: BaseException, message: DeliveredMessage) -> None:
        del error, message  # What is forgotten is told, hundreds of times.

    async with consumer.worker(
        handle, concurrency=16, prefetch=256, confirm=confirm, on_error=tell
    ):
        await is_half.wait()
        outage_s = await restart(js, server)
        await is_done.wait()
        return loop.time() - since, outage_s


async def test_confirming_costs_no_waiting_when_the_server_forgets(
    fresh_server: NatsServer,
) -> None:
    """Side by side with a worker that does not confirm; the medians of three."""
    took: dict[bool, list[float]] = {False: [], True: []}
    outages: list[float] = []
    async with (
        asyncio.timeout(_HANG_S),
        connect(fresh_server.url, request_timeout=_NEVER_S) as js,
    ):
        for number in range(3):
            for confirm in (False, True):
                seconds, outage_s = await work_through(
                    js, fresh_server, f"W{number}{confirm}", confirm=confirm
                )
                took[confirm].append(seconds)
                outages.append(outage_s)
    plain_s, confirmed_s = (sorted(took[confirm])[1] for confirm in (False, True))
    # To confirm takes processor time too, three times as much on a busy machine.
    assert confirmed_s <= 6 * plain_s + max(outages), (took, outages)


async def test_log_has_a_line_for_an_outage_and_none_for_each_message(
    fresh_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "natsstream.worker")
    async with asyncio.timeout(_HANG_S), connect(fresh_server.url) as js:
        consumer = await filled(js, "W")
        handled: set[int] = set()

        async def handle(message: DeliveredMessage) -> None:
            handled.add(message.sequence)
            await asyncio.sleep(0.002)

        async def is_past(count: int) -> bool:
            return len(handled) >= count

        async with consumer.worker(handle, concurrency=16, prefetch=256, confirm=True) as worker:
            for count in (_COUNT // 4, _COUNT // 2):
                await eventually_async(lambda count=count: is_past(count), within_s=_HANG_S)
                await restart(js, fresh_server)
            await worker.wait_until_empty()

    told = [each.getMessage() for each in caplog.records if each.name == "natsstream.worker"]
    counts = [re.match(r"([\d,]+) messages of ", line) for line in told]
    assert len(told) <= 6, told
    total = sum(1 if found is None else int(found[1].replace(",", "")) for found in counts)
    assert total == worker.report.unconfirmed


async def test_ack_of_a_forgotten_delivery_is_told_at_once_and_its_message_comes_again(
    fresh_server: NatsServer,
) -> None:
    """One after another, as in a loop over `consume`; no worker is needed for it."""
    async with (
        asyncio.timeout(_HANG_S),
        connect(fresh_server.url, request_timeout=_NEVER_S) as js,
    ):
        consumer = await filled(js, "W", count=200)
        forgotten = await forget(js, fresh_server, consumer)
        for message in forgotten:
            with pytest.raises(DeliveryForgottenError):
                await message.ack(confirm=True)
            assert not message.is_settled
        again: set[int] = set()
        while not again.issuperset(each.sequence for each in forgotten):
            for message in await consumer.fetch(200, timeout=1):
                await message.ack(confirm=True)
                again.add(message.sequence)


async def test_ack_is_confirmed_where_the_forgotten_message_was_delivered_again(
    fresh_server: NatsServer,
) -> None:
    """The server does not tell two deliveries apart: an ack of either settles the message."""
    async with (
        asyncio.timeout(_HANG_S),
        connect(fresh_server.url, request_timeout=_NEVER_S) as js,
    ):
        consumer = await filled(js, "W", count=200)
        forgotten = await forget(js, fresh_server, consumer)
        wanted = {each.sequence for each in forgotten}
        again: set[int] = set()
        while not again >= wanted:
            again.update(each.sequence for each in await consumer.fetch(200, timeout=1))
        for message in forgotten:
            await message.ack(confirm=True)


async def forget(
    js: JetStream, server: NatsServer, consumer: Consumer
) -> Sequence[DeliveredMessage]:
    """Return messages whose delivery the server has forgotten.

    It writes a consumer's state ten times a second: what it delivers right behind the first message
    is written later, and the kill comes before.
    """
    for _ in range(10):
        await consumer.next(timeout=5)
        found = await consumer.fetch(10, timeout=5)
        await restart(js, server)
        info = await consumer.info()
        forgotten = [each for each in found if each.sequence > info.delivered.stream_seq]
        if forgotten:
            return forgotten
    raise AssertionError("the server has remembered everything")
