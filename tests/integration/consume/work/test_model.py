"""A model of what a consumer promises, against random work with breaks and changes of leaders.

Random publishes, acks, confirmed acks, naks, terms and messages that are left alone, while the
connection breaks and leaders step down. Afterwards:

- nothing whose ack or term was confirmed was sent again: what the server sent is numbered by it, so
  that what waited here, or was on its way, is told from what was sent afterwards;
- what came again says so: no two deliveries of a message have the same number in `delivered`;
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
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.streams.consumers.consumer import Consumer
    from natsstream.testing import NatsCluster, NatsNode

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

ACTIVE_S = 3.0
ACK_WAIT_S = 1.0
# Only a hang takes this long.
WITHIN_S = 30.0
LOOK_EVERY_S = 0.03
# Of each, there must have been some.
FEW = 10


class Model:
    """What is known of each message."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a seed that makes it the same again.
        self.published: set[int] = set()
        self.seen: dict[int, list[int]] = {}
        self.sent: list[tuple[int, int]] = []
        self.settled: set[int] = set()
        self.confirmed: dict[int, float] = {}
        self.looks: list[tuple[float, int]] = []
        self.is_calm = False

    def take(self, message: DeliveredMessage) -> None:
        """Note a delivery."""
        self.seen.setdefault(message.sequence, []).append(message.delivered)
        self.sent.append((message.sequence, message.meta.consumer_seq))

    @property
    def n_again(self) -> int:
        """Deliveries that were not the first of their message."""
        return sum(len(each) - 1 for each in self.seen.values())

    async def look(self, consumer: Consumer) -> None:
        """Note again and again how many deliveries the server has made, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            asked_at = loop.time()
            with suppress(NatsStreamError):
                info = await consumer.info()
                self.looks.append((asked_at, info.delivered.consumer_seq))
            await asyncio.sleep(LOOK_EVERY_S)

    def broken(self) -> list[str]:
        """Return the promises that were broken."""
        found = [
            f"{sequence} came again without saying so: {numbers}"
            for sequence, numbers in self.seen.items()
            if len(set(numbers)) < len(numbers)
        ]
        for sequence, consumer_seq in self.sent:
            confirmed_at = self.confirmed.get(sequence)
            if confirmed_at is None:
                continue
            made = [count for asked_at, count in self.looks if asked_at > confirmed_at]
            if made and consumer_seq > made[0]:
                found.append(f"{sequence} was confirmed and sent again")
        return found

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
                    await message.ack(confirm=True, timeout=WITHIN_S)
                else:
                    await message.term(reason="by chance", confirm=True, timeout=WITHIN_S)
                self.settled.add(sequence)
                self.confirmed.setdefault(sequence, asyncio.get_running_loop().time())
            elif verdict == "nak":
                await message.nak()
            elif verdict == "later":
                await message.nak(delay=0.1)
        except TransportError:
            pass  # Not known: it may come again.


async def publish_for_a_while(js: JetStream, subject: str, model: Model) -> None:
    """Publish until the time is over and enough was done; what was not acked is sent again."""
    loop = asyncio.get_running_loop()
    end, number = loop.time() + ACTIVE_S, 0
    while loop.time() < end or len(model.confirmed) <= FEW or not model.n_again:
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
    stream = await near.streams.get(consumer.stream)
    told = await stream.consumers.get("c")
    looking = asyncio.create_task(model.look(told))
    try:
        while not publishing.done():
            await asyncio.sleep(0.2 + model.chance.random() * 0.5)
            await disturb()
        await publishing
        model.is_calm = True
        await settled(told, within_s=WITHIN_S)
        # Nothing comes after longer than ack_wait any more.
        await asyncio.sleep(ACK_WAIT_S + 0.3)
    finally:
        tasks = (*readers, publishing, looking)
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [end for end in ends if not isinstance(end, asyncio.CancelledError | None)] == []
    assert model.broken() == []
    assert model.published <= model.seen.keys()
    assert model.published <= model.settled
    assert len(model.confirmed) > FEW
    assert model.n_again


@pytest.mark.sampled_variants
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


@pytest.mark.sampled_variants
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
