"""Leaders and replicas: stepping down, and what single servers and full clusters answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream.errors import (
    ConfigError,
    MessageNotFoundError,
    NotFoundError,
    NotPermittedError,
    ServerError,
    StreamSealedError,
)
from tests.support.clusters import connect_to
from tests.support.eventually import eventually_async
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import JetStream, Stream
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio


async def cluster_of(stream: Stream) -> dict[str, Any]:
    """Return what the stream's info says of its replicas."""
    return cast("dict[str, Any]", (await stream.info()).raw["cluster"])


async def are_current(stream: Stream) -> bool:
    """Return True once both followers have all; the servers prefer none that is behind."""
    replicas = (await cluster_of(stream))["replicas"]
    return len(replicas) == 2 and all(each["current"] for each in replicas)


@pytest.mark.proves("1a", "leader step-down, peer remove, balance")
@pytest.mark.finding(32)
async def test_step_down_returns_the_next_leader(
    nats_cluster: NatsCluster, stream_name: str
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await js.streams.ensure(stream_name, replicas=3)
        await asyncio.to_thread(nats_cluster.wait_for_leader, stream_name)
        before = (await cluster_of(stream))["leader"]

        after = await stream.step_down()

        assert after is not None
        assert after == (await cluster_of(stream))["leader"]
        assert after != before
        await stream.delete()


async def test_step_down_that_does_not_wait_asks_once_and_names_nobody(
    nats_cluster: NatsCluster, stream_name: str
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await js.streams.ensure(stream_name, replicas=3)
        await asyncio.to_thread(nats_cluster.wait_for_leader, stream_name)
        before = (await cluster_of(stream))["leader_since"]

        assert await stream.step_down(wait=False) is None

        async def has_another() -> bool:
            now = await cluster_of(stream)
            since = now.get("leader_since")  # Also missing for a moment, beside a leader.
            return bool(now.get("leader")) and since is not None and since != before

        await eventually_async(has_another)
        await stream.delete()


@pytest.mark.proves("1a", "leader step-down, peer remove, balance")
async def test_preferred_server_leads_afterwards(
    nats_cluster: NatsCluster, stream_name: str
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await js.streams.ensure(stream_name, replicas=3)
        await asyncio.to_thread(nats_cluster.wait_for_leader, stream_name)
        await eventually_async(lambda: are_current(stream))
        other = (await cluster_of(stream))["replicas"][0]["name"]

        assert await stream.step_down(preferred=other) == other
        assert await stream.step_down(preferred=other) == other  # It leads already.
        await stream.delete()


async def test_step_down_to_a_server_that_is_not_there_changes_nothing(
    nats_cluster: NatsCluster, stream_name: str
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await js.streams.ensure(stream_name, replicas=3)
        await asyncio.to_thread(nats_cluster.wait_for_leader, stream_name)

        with pytest.raises(ServerError, match="nowhere"):
            await stream.step_down(preferred="nowhere")
        with pytest.raises(ServerError, match="no replacement"):
            await stream.step_down(tags=["nowhere"])
        await stream.delete()


async def test_stream_of_one_replica_keeps_its_leader(
    nats_cluster: NatsCluster, stream_name: str
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await js.streams.ensure(stream_name, replicas=1)

        assert await stream.step_down() == (await cluster_of(stream))["leader"]
        await stream.delete()


async def test_peer_is_not_removed_where_nobody_can_take_its_replica(
    nats_cluster: NatsCluster, stream_name: str
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await js.streams.ensure(stream_name, replicas=3)
        await asyncio.to_thread(nats_cluster.wait_for_leader, stream_name)
        peer = (await cluster_of(stream))["replicas"][0]["name"]

        with pytest.raises(ServerError) as caught:
            await stream.remove_peer(peer)
        with pytest.raises(NotFoundError):
            await stream.remove_peer("nowhere")

        assert "too few servers" in caught.value.hint
        await stream.delete()


@pytest.mark.proves("1a", "leader step-down, peer remove, balance")
async def test_replica_of_a_removed_peer_moves_to_another_server(
    nats_cluster: NatsCluster, stream_name: str
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await fill(js, stream_name, 5, replicas=2)
        await asyncio.to_thread(nats_cluster.wait_for_leader, stream_name)
        removed = (await cluster_of(stream))["replicas"][0]["name"]

        await stream.remove_peer(removed)

        async def has_moved() -> bool:
            now = await cluster_of(stream)
            names = {now.get("leader"), *(each["name"] for each in now.get("replicas") or ())}
            return removed not in names and len(names - {None}) == 2

        await eventually_async(has_moved)
        assert [message.sequence async for message in stream.read()] == [1, 2, 3, 4, 5]
        await stream.delete()


async def test_replicated_stream_tells_refusals_apart_as_a_single_one_does(
    nats_cluster: NatsCluster, stream_name: str
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await fill(js, stream_name, 3, replicas=3)
        await stream.delete_message(2)
        for sequence in (2, 99):
            with pytest.raises(MessageNotFoundError):
                await stream.delete_message(sequence)
        assert await stream.purge(keep=1) == 1
        await js.streams.update(stream_name, deny_delete=True, deny_purge=True)
        with pytest.raises(NotPermittedError):
            await stream.delete_message(3)
        with pytest.raises(NotPermittedError):
            await stream.purge()
        await stream.seal()
        with pytest.raises(StreamSealedError):
            await stream.purge()
        await stream.delete()


async def test_server_without_cluster_says_so(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 1)

    for call in (stream.step_down(), stream.remove_peer("n1")):
        with pytest.raises(ServerError) as caught:
            await call
        assert "not part of a cluster" in caught.value.hint


@pytest.mark.parametrize(
    "arguments",
    [{"preferred": 3}, {"tags": "ssd"}, {"timeout": 0}, {"cluster": b"c"}, {"wait": "yes"}],
)
async def test_step_down_refuses_wrong_arguments(
    js: JetStream, stream_name: str, arguments: dict[str, Any]
) -> None:
    stream = await fill(js, stream_name, 1)

    with pytest.raises(ConfigError):
        await stream.step_down(**arguments)
