"""Faults that happen to servers, and to the connections of their clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.clusters import step_down

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import FaultProxy, NatsCluster, NatsServer

OF_SERVERS = ("bounce", "cut", "stall", "kill", "restart", "pause")
"""Faults of one server."""
OF_CLUSTERS = ("bounce", "kill", "step down", "pause", "partition", "island")
"""Faults of a cluster; an island takes the clients of its node with it."""

# A pause has to be long enough to be one; nothing waits for the end of a pause.
PAUSE_S = 0.5
PARTITION_S = 3.0


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


async def trouble_cluster(fault: str, cluster: NatsCluster, js: JetStream, stream: str) -> None:
    """Let one fault happen to the leader of a stream, or to the connections of its node."""
    leader = await asyncio.to_thread(cluster.wait_for_leader, stream)
    match fault:
        case "bounce":
            leader.client_proxy.reset()
        case "kill":
            await asyncio.to_thread(leader.kill)
            await asyncio.to_thread(leader.start)
        case "step down":
            await step_down(js, cluster, stream)
        case "pause":
            leader.pause()
            await asyncio.sleep(PAUSE_S)
            leader.resume()
        case _:
            cluster.isolate(leader, clients=fault == "island")
            await asyncio.sleep(PARTITION_S)
            cluster.heal()
    await asyncio.to_thread(cluster.wait_until_ready)
