"""A client of the library on a cluster whose links break under it."""

from __future__ import annotations

import asyncio

import pytest

import natsstream as ns
from natsstream.testing import NatsCluster
from tests.support.eventually import eventually_async

# An election takes a moment, and several seconds on a machine that is busy with other tests.
REQUEST_TIMEOUT_S = 30.0
WAIT_S = 50.0


@pytest.mark.asyncio
async def test_client_that_is_cut_off_goes_on_at_another_node() -> None:
    with NatsCluster() as cluster:
        async with (
            ns.connect(cluster.url, request_timeout=REQUEST_TIMEOUT_S) as js,
            asyncio.timeout(WAIT_S),
        ):
            await js.streams.ensure("ORDERS", subjects=["orders"], replicas=3)
            assert (await js.publish("orders", b"1")).sequence == 1
            (first,) = (n for n in cluster.servers if n.client_proxy.connection_count)

            cluster.isolate(first, peers=False, clients=True)

            async def publish_again() -> bool:
                try:
                    return (await js.publish("orders", b"2", msg_id="2")).sequence == 2
                except ns.TransportError:
                    return False

            assert await eventually_async(publish_again, within_s=WAIT_S)
            assert first.client_proxy.connection_count == 0

            async def is_at_one_node() -> bool:
                return sum(n.client_proxy.connection_count for n in cluster.servers) == 1

            await eventually_async(is_at_one_node)


@pytest.mark.asyncio
async def test_client_comes_back_to_the_only_node_that_it_knows() -> None:
    with NatsCluster() as cluster:
        for node in cluster.servers[1:]:
            node.client_proxy.cut()  # The client may learn the addresses, but not use them.
        url = cluster.servers[0].client_url
        async with (
            ns.connect(url, request_timeout=REQUEST_TIMEOUT_S) as js,
            asyncio.timeout(WAIT_S),
        ):
            await js.streams.ensure("ORDERS", subjects=["orders"], replicas=3)
            cluster.servers[0].client_proxy.cut()
            cluster.heal()

            async def publish_again() -> bool:
                try:
                    return (await js.publish("orders", b"1")).sequence > 0
                except ns.TransportError:
                    return False

            assert await eventually_async(publish_again, within_s=WAIT_S)
