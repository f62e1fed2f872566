"""Clients of one core stream converge whatever happens to servers and connections.

A seed chooses the faults and what is written. At the end the arrays of all clients are what the
server holds, each acknowledged write is there, and each change was told once and in order.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.testing import FaultProxy
from tests.support.clusters import connect_to, step_down
from tests.support.core_stream_crew import Crew
from tests.support.core_streams import clients_by, context_of, names_of

if TYPE_CHECKING:
    from natsstream import CoreStream
    from natsstream.testing import NatsCluster, NatsServer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

# A pause has to be long enough to be one; nothing waits for the end of a pause.
PAUSE_S = 0.5
PARTITION_S = 3.0
BETWEEN = 40
# Idle streams compare themselves with the server's often.
LOOK_EVERY_S = 1.0


async def trouble_server(fault: str, server: NatsServer, proxy: FaultProxy) -> None:
    """Let one fault happen to a server or to the connection of a client."""
    match fault:
        case "bounce":
            proxy.reset()
        case "cut" | "stall":
            proxy.cut() if fault == "cut" else proxy.stall()
            await asyncio.sleep(PAUSE_S)
            proxy.heal()
        case "kill":
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        case "restart":
            await asyncio.to_thread(server.restart)
        case _:
            server.pause()
            await asyncio.sleep(PAUSE_S)
            server.resume()


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(9))
async def test_clients_of_one_server_converge(fresh_server: NatsServer, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - no secret
    count = 2 + seed % 2
    proxies = [FaultProxy(fresh_server.port) for _ in range(count)]
    try:
        connections = [connect(each.start().url, request_timeout=5) for each in proxies]
        async with clients_by(connections, look_every=LOOK_EVERY_S) as clients:
            crew = Crew(clients, chance)
            for _ in range(4):
                await crew.reach(BETWEEN)
                fault = chance.choice(("bounce", "cut", "stall", "kill", "restart", "pause"))
                await trouble_server(fault, fresh_server, chance.choice(proxies))
            await crew.reach(BETWEEN)
            await crew.stop()
            await crew.check()
    finally:
        for each in proxies:
            each.stop()


async def trouble_cluster(fault: str, cluster: NatsCluster, client: CoreStream) -> None:
    """Let one fault happen to the leader of a core stream, or to the connections of its node."""
    stream = names_of(client).stream
    leader = await asyncio.to_thread(cluster.wait_for_leader, stream)
    match fault:
        case "bounce":
            leader.client_proxy.reset()
        case "kill":
            await asyncio.to_thread(leader.kill)
            await asyncio.to_thread(leader.start)
        case "step down":
            await step_down(context_of(client), cluster, stream)
        case "pause":
            leader.pause()
            await asyncio.sleep(PAUSE_S)
            leader.resume()
        case _:
            cluster.isolate(leader, clients=chance_of(fault))
            await asyncio.sleep(PARTITION_S)
            cluster.heal()
    await asyncio.to_thread(cluster.wait_until_ready)


def chance_of(fault: str) -> bool:
    """Tell whether a partition takes the node's clients with it."""
    return fault == "island"


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
async def test_clients_of_a_cluster_converge(nats_cluster_fresh: NatsCluster, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - no secret
    connections = [connect_to(nats_cluster_fresh) for _ in range(2 + seed % 2)]
    async with clients_by(connections, replicas=3, look_every=LOOK_EVERY_S) as clients:
        crew = Crew(clients, chance)
        for _ in range(2):
            await crew.reach(BETWEEN)
            fault = chance.choice(("bounce", "kill", "step down", "pause", "partition", "island"))
            await trouble_cluster(fault, nats_cluster_fresh, chance.choice(clients))
        await crew.reach(BETWEEN)
        await crew.stop()
        await crew.check()
