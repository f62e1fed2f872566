"""A model of what a consumer promises, against random work with breaks and changes of leaders.

Random publishes, acks, confirmed acks, naks, terms and messages that are left alone, while the
connection breaks and leaders step down. Afterwards:

- nothing whose ack or term was confirmed has come again;
- what came again says so: `delivered` is above 1;
- nothing is lost: each message was settled in some delivery, and nothing is left.

A single server that is killed with SIGKILL may forget acks of the last 0.1 s, also confirmed ones:
it writes a consumer's state to disk after it has answered. That is not a part of this test.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import NatsStreamError, TransportError
from natsstream.testing import FaultProxy
from tests.support.clusters import connect_to, step_down
from tests.support.work import api_of, make_work, settled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream
    from natsstream.streams.consumers.consumer import Consumer
    from natsstream.streams.delivery.delivered import DeliveredMessage
    from natsstream.testing import NatsCluster, NatsNode

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

ACTIVE_S = 3.0
ACK_WAIT_S = 1.0
# What was on its way, or waited here, when its ack was confirmed.
ON_ITS_WAY_S = 0.9


class Model:
    """What is known of each message."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a seed that makes it the same again.
        self.published: set[int] = set()
        self.seen: dict[int, int] = {}
        self.settled: set[int] = set()
        self.confirmed: dict[int, float] = {}
        self.broken: list[str] = []
        self.is_calm = False

    def take(self, message: DeliveredMessage) -> None:
        """Note a delivery, and whether it breaks a promise."""
        sequence, now = message.sequence, asyncio.get_running_loop().time()
        if self.seen.get(sequence) and message.delivered <= 1:
            self.broken.append(f"{sequence} came again without saying so")
        if now - self.confirmed.get(sequence, now) > ON_ITS_WAY_S:
            self.broken.append(f"{sequence} was confirmed and came again")
        self.seen[sequence] = self.seen.get(sequence, 0) + 1

    async def settle(self, message: DeliveredMessage) -> None:
        """Do something with a delivery by chance; only what is final once all is calm."""
        self.take(message)
        verdict = self.chance.choices(
            ["ack", "confirm", "term", "nak", "later", "leave"],
            [4, 4, 1, 0, 0, 0] if self.is_calm else [4, 4, 1, 2, 1, 1],
        )[0]
        sequence = message.sequence
        try:
            if verdict == "ack":
                await message.ack()
                self.settled.add(sequence)
            elif verdict in ("confirm", "term"):
                if verdict == "confirm":
                    await message.ack(confirm=True, timeout=5)
                else:
                    await message.term(reason="by chance", confirm=True, timeout=5)
                self.settled.add(sequence)
                self.confirmed.setdefault(sequence, asyncio.get_running_loop().time())
            elif verdict == "nak":
                await message.nak()
            elif verdict == "later":
                await message.nak(delay=0.1)
        except TransportError:
            pass  # Not known: it may come again.


async def publish_for_a_while(js: JetStream, subject: str, model: Model) -> None:
    """Publish until the time is over; what was not acked is sent again with its id."""
    loop = asyncio.get_running_loop()
    end, number = loop.time() + ACTIVE_S, 0
    while loop.time() < end:
        number += 1
        for _ in range(20):
            with suppress(NatsStreamError):
                ack = await js.publish(subject, b"%d" % number, msg_id=f"{number}", timeout=2)
                model.published.add(ack.sequence)
                break
        await asyncio.sleep(model.chance.random() * 0.01)


async def play(
    near: JetStream, consumer: Consumer, model: Model, disturb: Callable[[], Awaitable[object]]
) -> None:
    """Publish, settle and disturb, then let all come to its end."""

    async def read() -> None:
        async with consumer.consume(max_messages=8) as messages:
            async for message in messages:
                await model.settle(message)

    readers = [asyncio.create_task(read()) for _ in range(3)]
    publishing = asyncio.create_task(publish_for_a_while(near, f"{consumer.stream}.x", model))
    try:
        while not publishing.done():
            await asyncio.sleep(0.2 + model.chance.random() * 0.5)
            await disturb()
        await publishing
        model.is_calm = True
        stream = await near.streams.get(consumer.stream)
        await settled(await stream.consumers.get("c"), within_s=30)
        # Nothing comes after longer than ack_wait any more.
        await asyncio.sleep(ACK_WAIT_S + 0.3)
    finally:
        for task in (*readers, publishing):
            task.cancel()
        ends = await asyncio.gather(*readers, publishing, return_exceptions=True)
    assert [end for end in ends if not isinstance(end, asyncio.CancelledError | None)] == []
    assert model.broken == []
    assert model.published <= model.seen.keys()
    assert model.published <= model.settled
    assert len(model.confirmed) > 10
    assert sum(model.seen.values()) > len(model.seen)


@pytest.mark.parametrize("seed", [1, 2])
async def test_consumer_keeps_its_promises_over_broken_connections(
    server: NatsNode, stream_name: str, seed: int
) -> None:
    model = Model(seed)
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as near, connect(proxy.url) as js:
            await make_work(near, stream_name, 0, ack_wait=ACK_WAIT_S, retention="workqueue")
            consumer = await (await js.streams.get(stream_name)).consumers.get("c")

            async def disturb() -> None:
                proxy.cut()
                await asyncio.sleep(model.chance.random() * 0.2)
                proxy.heal()

            await play(near, consumer, model, disturb)


@pytest.mark.parametrize(
    ("seed", "breaks"),
    [(3, ["leaders"]), (4, ["cuts"]), (5, ["cuts", "leaders"])],
    ids=["leaders", "cuts", "both"],
)
async def test_replicated_consumer_keeps_its_promises(
    nats_cluster: NatsCluster, stream_name: str, seed: int, breaks: list[str]
) -> None:
    model = Model(seed)
    async with AsyncExitStack() as stack:
        proxies = [stack.enter_context(FaultProxy(each.port)) for each in nats_cluster.servers]
        near = await stack.enter_async_context(connect_to(nats_cluster))
        js = await stack.enter_async_context(
            connect([each.url for each in proxies], request_timeout=15)
        )
        await make_work(near, stream_name, 0, ack_wait=ACK_WAIT_S, replicas=3)
        consumer = await (await js.streams.get(stream_name)).consumers.get("c")

        async def cut() -> None:
            for each in proxies:
                each.cut()
            await asyncio.sleep(model.chance.random() * 0.2)
            for each in proxies:
                each.heal()

        async def change_leader() -> None:
            if model.chance.random() < 0.5:
                await step_down(near, nats_cluster, stream_name)
            else:
                # A consumer that is just choosing its leader does not answer.
                subject = f"$JS.API.CONSUMER.LEADER.STEPDOWN.{stream_name}.c"
                with suppress(NatsStreamError):
                    await api_of(near).client.request(subject, timeout=1)

        ways = {"cuts": cut, "leaders": change_leader}

        async def disturb() -> None:
            await asyncio.gather(*(ways[each]() for each in breaks))

        await play(near, consumer, model, disturb)
