"""Clients of one core stream converge whatever happens to servers and connections.

A seed chooses the faults and what is written. At the end the arrays of all clients are what the
server holds, each acknowledged write is there, and each change was told once and in order.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.testing import FaultProxy
from tests.support.clusters import connect_to
from tests.support.core_stream_crew import Crew
from tests.support.core_streams import clients_by, context_of, names_of
from tests.support.troubles import OF_CLUSTERS, OF_SERVERS, trouble_cluster, trouble_server

if TYPE_CHECKING:
    from natsstream.testing import NatsCluster, NatsServer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

BETWEEN = 40
# Idle streams compare themselves with the server's often.
LOOK_EVERY_S = 1.0


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
                fault = chance.choice(OF_SERVERS)
                await trouble_server(fault, fresh_server, chance.choice(proxies))
            await crew.reach(BETWEEN)
            await crew.stop()
            await crew.check()
    finally:
        for each in proxies:
            each.stop()


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
async def test_clients_of_a_cluster_converge(nats_cluster_fresh: NatsCluster, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - no secret
    connections = [connect_to(nats_cluster_fresh) for _ in range(2 + seed % 2)]
    async with clients_by(connections, replicas=3, look_every=LOOK_EVERY_S) as clients:
        crew = Crew(clients, chance)
        for _ in range(2):
            await crew.reach(BETWEEN)
            fault = chance.choice(OF_CLUSTERS)
            client = chance.choice(clients)
            stream = names_of(client).stream
            await trouble_cluster(fault, nats_cluster_fresh, context_of(client), stream)
        await crew.reach(BETWEEN)
        await crew.stop()
        await crew.check()
