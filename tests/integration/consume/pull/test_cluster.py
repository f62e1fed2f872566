"""Integration tests of pulls from a replicated consumer whose leader moves or dies."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import pytest
import pytest_asyncio

from natsstream import connect
from natsstream.errors import NatsStreamError
from natsstream.testing import NatsCluster
from tests.support.clusters import connect_to
from tests.support.eventually import eventually_async
from tests.support.pulling import has_pulls, is_settled, nothing_comes, take, tuned
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from natsstream import Consumer, JetStream

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

# Of an ack_wait: what comes within the test's time was given back.
LONG_S = 600


@pytest_asyncio.fixture
async def js(nats_cluster: NatsCluster) -> AsyncIterator[JetStream]:
    """A connection to the cluster that the whole run shares."""
    async with connect_to(nats_cluster) as js:
        yield js


async def replicated(js: JetStream, name: str, count: int, *, ack_wait: float = 30) -> Consumer:
    """Return a consumer of three replicas over a stream of `count` messages."""
    stream = await js.streams.ensure(name, subjects=[f"{name}.>"], replicas=3)
    if count:
        await fill(js, name, count, replicas=3)
    return await stream.consumers.ensure("work", ack_wait=ack_wait)


async def move_leader(js: JetStream, worker: Consumer) -> None:
    """Move the consumer's leader to another node; returns when there is another one."""
    before = await leader_of(worker)
    with suppress(NatsStreamError):
        await js.core.request(
            f"$JS.API.CONSUMER.LEADER.STEPDOWN.{worker.stream}.{worker.name}", timeout=2
        )
    await eventually_async(lambda: has_other_leader(worker, before), within_s=30)


async def leader_of(worker: Consumer) -> str:
    """Return the node that leads a consumer; empty while there is none."""
    raw = (await worker.info()).raw
    return cast("dict[str, str]", raw.get("cluster") or {}).get("leader", "")


async def has_other_leader(worker: Consumer, before: str) -> bool:
    """Tell whether another node leads."""
    with suppress(NatsStreamError):
        return await leader_of(worker) not in ("", before)
    return False


@pytest.mark.sampled_variants
@pytest.mark.parametrize("max_messages", [1, 2, 50])
async def test_flow_goes_on_when_the_leader_moves(
    js: JetStream, stream_name: str, max_messages: int
) -> None:
    """A message that is lost on its way comes again after the ack_wait; none comes never."""
    worker = await replicated(js, stream_name, 60, ack_wait=1)
    found: set[int] = set()
    async with (
        worker.consume(max_messages=max_messages, heartbeat=0.3) as messages,
        asyncio.timeout(60),
    ):
        for _ in range(2):
            found |= set(await take(messages, 5))
            await move_leader(js, worker)
        while len(found) < 60:
            found |= set(await take(messages, 1))
        # Acks that a change has lost: these messages come again.
        acking = asyncio.ensure_future(take(messages, 1_000_000))
        await eventually_async(lambda: is_settled(worker))
        acking.cancel()

    assert found == set(range(1, 61))


async def test_waiting_flow_gets_what_comes_after_the_leader_moved(
    js: JetStream, stream_name: str
) -> None:
    worker = await replicated(js, stream_name, 0, ack_wait=1)
    async with worker.consume(max_messages=1, heartbeat=0.3) as messages, asyncio.timeout(60):
        reading = asyncio.ensure_future(take(messages, 1))
        await asyncio.wait({reading}, timeout=0.1)
        await move_leader(js, worker)
        await fill(js, stream_name, 3, replicas=3)
        found = set(await reading)
        while len(found) < 3:
            found |= set(await take(messages, 1))

    assert found == {1, 2, 3}


async def test_fetch_waits_out_a_change_of_the_leader(js: JetStream, stream_name: str) -> None:
    worker = await replicated(js, stream_name, 0)
    fetching = asyncio.ensure_future(worker.fetch(3, timeout=60))
    await asyncio.wait({fetching}, timeout=0.1)
    await move_leader(js, worker)
    await fill(js, stream_name, 3, replicas=3)

    assert len(await fetching) == 3


@pytest.mark.proves("1c", "ack / double ack")
async def test_confirmed_acks_hold_when_the_leader_moves(js: JetStream, stream_name: str) -> None:
    worker = await replicated(js, stream_name, 20, ack_wait=1)
    messages = await worker.fetch(20, timeout=30)
    moving = asyncio.ensure_future(move_leader(js, worker))
    for message in messages:
        await message.ack(confirm=True, timeout=30)
    await moving

    assert len(messages) == 20
    assert await nothing_comes(worker, within_s=1.5)


async def test_no_message_of_a_cancelled_fetch_waits_for_its_ack_wait(
    js: JetStream, stream_name: str
) -> None:
    """The ack_wait is long, and twelve fetches are cancelled when messages are coming.

    Each pull is left to the next fetch. Withdrawn, it could lose what just comes from another node.
    """
    worker = tuned(await replicated(js, stream_name, 0, ack_wait=LONG_S), linger_s=60)
    found: list[int] = []
    for round_ in range(12):
        fetching = asyncio.ensure_future(worker.fetch(5, timeout=20))
        await asyncio.wait({fetching}, timeout=0.005)
        publishing = asyncio.ensure_future(js.publish(f"{stream_name}.0", b"x"))
        await asyncio.wait({fetching}, timeout=0.001 * round_)
        fetching.cancel()
        await asyncio.wait({fetching, publishing})
        if not fetching.cancelled():
            found += [message.sequence for message in fetching.result()]
    async with asyncio.timeout(60):
        while len(found) < 12:
            for message in await worker.fetch(12 - len(found), timeout=5):
                await message.ack()
                found.append(message.sequence)

    assert sorted(found) == list(range(1, 13))


async def test_leaving_a_busy_flow_loses_nothing_on_its_way(
    js: JetStream, stream_name: str
) -> None:
    """Each flow is left in the middle; all that it was sent is given back, and comes at once."""
    # A node may stand still for longer than the silence that is taken for the end of a pull.
    worker = await replicated(js, stream_name, 1_000, ack_wait=LONG_S)
    tuned(worker, busy_s=1.0, busy_max_s=30.0)
    found: set[int] = set()
    async with asyncio.timeout(60):
        while len(found) < 1_000:
            async with worker.consume(max_messages=60) as messages:
                found |= set(await take(messages, min(100, 1_000 - len(found))))

    assert found == set(range(1, 1_001))


async def test_flow_goes_on_when_the_leader_is_killed() -> None:
    """Nothing is said of the pulls that die with the leader: only heartbeats tell."""
    with NatsCluster() as cluster:
        async with connect_to(cluster) as js:
            worker = await replicated(js, "S", 60, ack_wait=1)
            exact = await (await js.streams.get("S")).consumers.ensure("exact", ack_wait=1)
            found: set[int] = set()
            async with (
                worker.consume(max_messages=2, heartbeat=0.3) as messages,
                exact.consume(max_messages=10, stop_after=40, heartbeat=0.3) as others,
            ):
                found |= set(await take(messages, 5))
                await take(others, 5)
                cluster.node(await leader_of(worker)).kill()
                async with asyncio.timeout(40):
                    while len(found) < 60:
                        found |= set(await take(messages, 1))
                    await take(others, 35)
                    assert await anext(others, None) is None

            assert found == set(range(1, 61))


async def fetch_until(worker: Consumer, count: int) -> list[int]:
    """Return the sequences of a loop of fetches, each at once after the one before."""
    found: list[int] = []
    while len(found) < count:
        with suppress(NatsStreamError):
            found += [message.sequence for message in await worker.fetch(20, timeout=1)]
    return found


async def flow_until(worker: Consumer, count: int) -> list[int]:
    """Return the sequences of a flow."""
    async with worker.consume(heartbeat=0.2) as messages:
        return await take(messages, count)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("way", [fetch_until, flow_until])
async def test_a_reader_hears_again_after_the_only_server_of_the_stream_was_killed(
    stream_name: str, way: Callable[[Consumer, int], Awaitable[list[int]]]
) -> None:
    """Its client is connected to another one, and learns nothing of it."""
    with NatsCluster() as cluster:
        async with connect_to(cluster) as js:
            stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
            await stream.consumers.create("work", durable=True, ack_wait=LONG_S)
            await asyncio.to_thread(cluster.wait_for_leader, stream_name)
        leader = cluster.leader_of(stream_name)
        assert leader is not None
        other = next(node for node in cluster.servers if node is not leader)
        async with connect(other.client_url, request_timeout=30) as js:
            worker = await (await js.streams.get(stream_name)).consumers.get("work")
            reading = asyncio.ensure_future(way(worker, 40))
            await eventually_async(lambda: has_pulls(worker))
            await asyncio.to_thread(leader.kill)
            await asyncio.to_thread(leader.start)
            await eventually_async(lambda: is_there(worker))
            await fill(js, stream_name, 40)
            async with asyncio.timeout(40):
                assert sorted(await reading) == list(range(1, 41))


async def is_there(worker: Consumer) -> bool:
    """Tell whether a consumer has a leader again."""
    with suppress(NatsStreamError):
        return bool(await worker.info())
    return False
