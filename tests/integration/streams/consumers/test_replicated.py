"""Consumers on three replicas: made, changed, paused and reset across changes of the leader."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream.errors import ConfigError, ConsumerExistsError, ServerError, UnavailableError
from natsstream.testing import NatsCluster
from tests.support.clusters import connect_to, step_down
from tests.support.eventually import eventually_async
from tests.support.raw_pulls import pull

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import Consumer, ConsumerInfo, JetStream, Listing, Stream

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def stream(cluster_js: JetStream, stream_name: str) -> AsyncIterator[Stream]:
    """A stream of three replicas."""
    subjects = [f"{stream_name}.>"]
    yield await cluster_js.streams.ensure(stream_name, subjects=subjects, replicas=3)
    await cluster_js.streams.delete(stream_name)


async def settle(consumer: Consumer, count: int) -> None:
    """Take messages and wait until their acks are stored; elections are waited out."""
    messages = await consumer.fetch(count, timeout=30)
    assert len(messages) == count
    for message in messages:
        await message.ack(confirm=True)


async def test_configuration_and_progress_survive_changes_of_the_leader(
    cluster_js: JetStream, nats_cluster: NatsCluster, stream: Stream
) -> None:
    js, consumers = cluster_js, stream.consumers
    consumer = await consumers.ensure("c", ack_wait=60, metadata={"team": "x"}, max_batch=7)
    for number in range(4):
        await js.publish(f"{stream.name}.a", b"%d" % number)
    await settle(consumer, 2)

    await (await consumers.get("c")).step_down()
    await step_down(js, nats_cluster, stream.name)
    updated = await consumers.ensure("c", ack_wait=30, metadata={"team": "y"})

    config = updated.cached.config
    assert (config.ack_wait, config.max_batch, (config.metadata or {})["team"]) == (30, 7, "y")
    assert [each.name for each in updated.change.fields] == ["ack_wait", "metadata"]

    async def progress() -> tuple[int, int]:
        info = await updated.info()
        return info.ack_floor.stream_seq, info.num_pending

    async def has_kept() -> bool:
        return await progress() == (2, 2)

    await eventually_async(has_kept)
    info = await updated.info()
    assert info.cluster is not None
    assert info.cluster.leader
    assert len(info.cluster.replicas) == 2


async def test_create_is_strict_and_ensure_is_safe_side_by_side(stream: Stream) -> None:
    consumers = stream.consumers

    made = await asyncio.gather(*(consumers.ensure("c", ack_wait=5) for _ in range(8)))

    assert len({consumer.cached.created_ns for consumer in made}) == 1
    with pytest.raises(ConsumerExistsError):
        await consumers.create("c", ack_wait=6)


async def test_pause_and_reset_hold_on_every_replica(cluster_js: JetStream, stream: Stream) -> None:
    js, consumers = cluster_js, stream.consumers
    consumer = await consumers.ensure("c")
    for number in range(3):
        await js.publish(f"{stream.name}.a", b"%d" % number)
    await settle(consumer, 3)

    await consumers.pause("c", duration=3600)
    await (await consumers.get("c")).step_down()
    assert (await consumers.get("c")).cached.pause.is_paused
    await consumers.resume("c")
    assert await consumers.reset("c", sequence=2) == 2

    found: list[bytes] = []

    async def has_again() -> bool:
        found.extend([data for _, data in await pull(js, stream.name, "c", batch=3)])
        return len(found) >= 2

    await eventually_async(has_again)
    assert found == [b"1", b"2"]


async def test_consumer_has_fewer_replicas_on_request(stream: Stream) -> None:
    consumer = await stream.consumers.ensure("single", replicas=1, memory_storage=True)

    assert consumer.cached.cluster is not None
    assert consumer.cached.cluster.replicas == ()
    assert (await stream.consumers.ensure("single", replicas=1)).change.action == "unchanged"


async def test_step_down_returns_the_next_leader(stream: Stream) -> None:
    consumer = await stream.consumers.ensure("c")

    async def followers() -> list[str]:
        cluster = (await consumer.info()).cluster
        replicas = () if cluster is None else cluster.replicas
        return [each.name for each in replicas if each.is_current] * (len(replicas) == 2)

    other = (await eventually_async(followers))[0]
    with pytest.raises(ServerError, match="nowhere"):
        await consumer.step_down(preferred="nowhere")
    after = await consumer.step_down(preferred=other)
    again = await consumer.step_down(preferred=other)
    await eventually_async(followers)
    last = await consumer.step_down()

    assert (after, again) == (other, other)
    assert last not in (None, other)
    cluster = (await consumer.info()).cluster
    assert cluster is not None
    assert cluster.leader == last
    assert await consumer.step_down(wait=False) is None


async def test_consumer_of_one_replica_keeps_its_leader(stream: Stream) -> None:
    consumer = await stream.consumers.ensure("single", replicas=1)
    cluster = (await consumer.info()).cluster
    assert cluster is not None

    assert await consumer.step_down() == cluster.leader


@pytest.mark.parametrize("arguments", [{"preferred": 3}, {"tags": "ssd"}, {"wait": 1}])
async def test_step_down_refuses_wrong_arguments(stream: Stream, arguments: dict[str, Any]) -> None:
    consumer = await stream.consumers.ensure("c")

    with pytest.raises(ConfigError):
        await consumer.step_down(**arguments)


async def names_in(listing: Listing[ConsumerInfo]) -> set[str]:
    """Return the names of the consumers that a listing describes."""
    return {info.name async for info in listing}


@pytest.mark.proves("1c", "list + names, paged")
@pytest.mark.timeout(120)
async def test_consumers_that_do_not_answer_are_told(stream_name: str) -> None:
    """A node goes down with its consumers of one replica: they are named, not left out.

    The servers wait four seconds for an answer.
    """
    with NatsCluster() as cluster:
        async with connect_to(cluster) as js:
            stream = await js.streams.ensure(stream_name, replicas=3)
            names = [f"c{number}" for number in range(5)]
            leaders: dict[str, str] = {}
            for name in names:
                await stream.consumers.ensure(name, replicas=1)
                info = (await stream.consumers.get(name)).cached
                assert info.cluster is not None
                leaders[name] = info.cluster.leader
            lost = leaders["c0"]
            gone = {name for name, leader in leaders.items() if leader == lost}
            await asyncio.to_thread(cluster.node(lost).kill)

            listing = stream.consumers.list(on_missing="report")
            # Side by side: each waits for the servers' four seconds.
            listed, refused = await asyncio.gather(
                names_in(listing), names_in(stream.consumers.list()), return_exceptions=True
            )

            assert (listed, set(listing.missing)) == (set(names) - gone, gone)
            assert isinstance(refused, UnavailableError)
            assert all(name in refused.message for name in gone)
            assert {name async for name in stream.consumers.names()} == set(names)
