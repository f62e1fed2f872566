"""The stream of a producer's test, on one server and on a cluster of three."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import pytest
import pytest_asyncio

from tests.support.producers import Place

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsCluster, NatsNode


class Servers(NamedTuple):
    """A connection, how many replicas streams have there, and the port of a server."""

    js: JetStream
    replicas: int
    port: int


@pytest.fixture(params=["R1", "R3"])
def servers(request: pytest.FixtureRequest) -> Servers:
    """One server, and three."""
    if request.param == "R1":
        node = cast("NatsNode", request.getfixturevalue("server"))
        return Servers(request.getfixturevalue("js"), 1, node.port)
    cluster = cast("NatsCluster", request.getfixturevalue("nats_cluster"))
    return Servers(request.getfixturevalue("cluster_js"), 3, cluster.servers[0].port)


@pytest_asyncio.fixture
async def place(servers: Servers, stream_name: str) -> Place:
    """A stream of this test, with one replica and with three."""
    made = Place(servers.js, stream_name, servers.replicas, servers.port)
    await made.make()
    return made
