"""Connections for the integration tests: to the shared server, to one of its own, to a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from natsstream import connect
from tests.support.clusters import connect_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import JetStream
    from natsstream.testing import NatsCluster, NatsNode, NatsServer


REQUEST_TIMEOUT_S = 20.0
"""Seconds for an answer of the shared server: a busy machine has taken 7 for an ack."""


@pytest_asyncio.fixture
async def js(server: NatsNode) -> AsyncIterator[JetStream]:
    """A connection to the server that the whole run shares."""
    async with connect(server.url, request_timeout=REQUEST_TIMEOUT_S) as js:
        yield js


@pytest_asyncio.fixture
async def fresh_js(fresh_server: NatsServer) -> AsyncIterator[JetStream]:
    """A connection to the server of this test alone."""
    async with connect(fresh_server.url) as js:
        yield js


@pytest_asyncio.fixture
async def cluster_js(nats_cluster: NatsCluster) -> AsyncIterator[JetStream]:
    """A connection to the cluster that the whole run shares; it waits for elections."""
    async with connect_to(nats_cluster) as js:
        yield js
