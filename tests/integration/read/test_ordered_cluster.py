"""Ordered consumers of a replicated stream: their consumer sits on one node, which may go away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream import Recreated, connect
from natsstream.errors import ConnectionLostError, NatsStreamError
from natsstream.read import follower
from natsstream.testing import NatsCluster
from tests.support.clusters import connect_to, step_down, wait_for_leaders
from tests.support.ordered import consumer_names, take_sequences
from tests.support.patience import set_patience
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import JetStream, OrderedConsumer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

COUNT = 20_000
SIZE = 1_024


@pytest.fixture
def cluster() -> Iterator[NatsCluster]:
    """A cluster of three for one test, which breaks it."""
    with NatsCluster() as cluster:
        yield cluster


@pytest_asyncio.fixture
async def cluster_js(cluster: NatsCluster) -> AsyncIterator[JetStream]:
    """A connection that may use each node."""
    async with connect_to(cluster) as js:
        yield js


async def node_of_consumer(js: JetStream, stream: str) -> str:
    """Return the name of the node that the only consumer of a stream is on."""
    (name,) = await consumer_names(js, stream)
    answer = await js._api.read(  # pyright: ignore[reportPrivateUsage]
        f"$JS.API.CONSUMER.INFO.{stream}.{name}", None, what="consumer"
    )
    return answer.part("cluster").text("leader")


@asynccontextmanager
async def tail_on_node(js: JetStream, stream: str, node: str) -> AsyncGenerator[OrderedConsumer]:
    """Open ordered consumers until one of them is on a node: the server chooses by chance."""
    for _ in range(50):
        async with (await js.streams.get(stream)).ordered() as tail:
            if await node_of_consumer(js, stream) == node:
                yield tail
                return
    raise AssertionError(f"no consumer was ever put onto {node}")


async def store(js: JetStream, subject: str, count: int) -> None:
    """Publish until as many messages were acknowledged, whatever the cluster does meanwhile."""
    stored = 0
    while stored < count:
        try:
            # One that an election swallows is never answered.
            await js.publish(subject, b"x", timeout=2)
        except NatsStreamError as error:
            if not error.retryable:
                raise
        else:
            stored += 1


async def test_tail_goes_on_when_the_node_of_its_consumer_is_killed(
    cluster: NatsCluster, cluster_js: JetStream
) -> None:
    """It dies in the middle of what is stored, and stays dead; then new messages are followed."""
    js = cluster_js
    stream = await fill(js, "S", COUNT, size=SIZE, replicas=3)

    async with stream.ordered() as tail:
        found = await take_sequences(tail, 1_000)
        node = cluster.node(await node_of_consumer(js, "S"))
        await asyncio.to_thread(node.kill)
        found += [message.sequence async for message in tail.initial()]
        await store(js, "S.0", 10)
        while len(found) < COUNT + 10:
            found += await take_sequences(tail, 1)

    assert found == list(range(1, found[-1] + 1))
    assert tail.report.resumes >= 1
    assert tail.report.lost == 0


async def test_tail_goes_on_when_the_leader_steps_down(
    nats_cluster: NatsCluster, stream_name: str
) -> None:
    """It does so three times while messages are read that were stored, others are published."""
    async with connect_to(nats_cluster) as js:
        stream = await fill(js, stream_name, COUNT, size=SIZE, replicas=3)

        async with stream.ordered() as tail:
            publishing = asyncio.ensure_future(store(js, f"{stream_name}.0", 200))
            found: list[int] = []
            for _ in range(3):
                found += await take_sequences(tail, 1_000)
                await step_down(js, nats_cluster, stream_name)
            await publishing
            last = (await stream.info()).state.last_seq
            found += await take_sequences(tail, last - len(found))
        await stream.delete()

    assert found == list(range(1, last + 1))
    assert tail.report.lost == 0


@pytest.mark.sampled_variants
@pytest.mark.parametrize("deliver_policy", ["all", "last_per_subject"])
async def test_what_was_acknowledged_is_among_the_initial_messages(
    nats_cluster: NatsCluster,
    stream_name: str,
    deliver_policy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The consumer may sit on a replica that has not got the message yet."""
    async with connect_to(nats_cluster) as js:
        wait_for_leaders(js, monkeypatch)
        await look_after_each_ack(js, stream_name, deliver_policy)
        await js.streams.delete(stream_name)


async def look_after_each_ack(js: JetStream, name: str, deliver_policy: str) -> None:
    """Store messages, and see that each is there for a tail that opens behind its ack."""
    stream = await fill(js, name, 0, replicas=3)
    for number in range(1, 51):
        ack = await js.publish(f"{name}.0", b"%d" % number)
        async with stream.ordered(deliver_policy=deliver_policy) as tail:  # pyright: ignore[reportArgumentType]
            found = [message.sequence async for message in tail.initial()]
        assert found[-1] == ack.sequence


async def test_replica_that_is_cut_off_does_not_end_the_tail_in_silence(
    cluster: NatsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sends heartbeats to the client that it serves, and gets no messages."""
    monkeypatch.setattr(follower, "_LOOK_EVERY_S", 0.5)
    async with connect_to(cluster) as other:
        await fill(other, "S", 10, replicas=3)
        leader = await asyncio.to_thread(cluster.wait_for_leader, "S")
        node = next(each for each in cluster.servers if each is not leader)
        async with (
            connect(node.client_url, request_timeout=30, reconnect_timeout=60) as js,
            tail_on_node(js, "S", node.name) as tail,
        ):
            found = await take_sequences(tail, 10)
            cluster.isolate(node)
            set_patience(js, request_timeout=1, reconnect_timeout=2)
            with pytest.raises(ConnectionLostError, match="first_seq=11"):
                await anext(tail)
            cluster.heal()
            set_patience(js, request_timeout=30, reconnect_timeout=60)
            await store(other, "S.0", 5)
            while len(found) < 15:
                with suppress(ConnectionLostError):
                    found += await take_sequences(tail, 1)
            # A replica that lags behind after the break may break the next one.
            async with aclosing(tail.events()) as events:
                first = await anext(events)

    assert found == list(range(1, 16))
    assert isinstance(first, Recreated)
    assert first.reason == "no_answer"


async def test_new_messages_alone_are_new_on_every_replica(
    nats_cluster: NatsCluster, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect_to(nats_cluster) as js:
        wait_for_leaders(js, monkeypatch)
        stream = await fill(js, stream_name, 0, replicas=3)

        for _ in range(30):
            before = await js.publish(f"{stream_name}.0", b"old")
            async with stream.ordered(deliver_policy="new") as tail:
                await js.publish(f"{stream_name}.0", b"new")
                assert await take_sequences(tail, 1) == [before.sequence + 1]
        await stream.delete()
