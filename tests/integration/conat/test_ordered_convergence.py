"""The same over the ordered feed: a core stream without republishing, and any stream.

A seed chooses the faults, what is written, and the stream's limits.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.testing import FaultProxy
from tests.support.clusters import connect_to
from tests.support.core_stream_crew import Crew
from tests.support.core_streams import (
    clients_by,
    context_of,
    create_without_feed,
    names_of,
    new_name,
)
from tests.support.over_crew import OverCrew
from tests.support.overs import foreign
from tests.support.troubles import OF_CLUSTERS, OF_SERVERS, trouble_cluster, trouble_server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from natsstream import Connection, JetStream
    from natsstream.testing import NatsCluster, NatsServer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(400)]

BETWEEN = 40
LOOK_EVERY_S = 1.0
LIMITS: list[dict[str, Any]] = [
    {},
    {"max_msgs_per_subject": 1},
    {"max_msgs_per_subject": 3},
    {"max_msgs": 30},
    {"max_msgs": 30, "max_msgs_per_subject": 10},
    {"max_msgs_per_subject": 1, "discard": "new"},
]


@asynccontextmanager
async def over_crew(
    js: JetStream, views: list[Connection], writers: list[Connection], seed: int, **fields: Any
) -> AsyncGenerator[tuple[OverCrew, str]]:
    """Let writers write to a new stream that views follow."""
    limits = LIMITS[seed % len(LIMITS)]
    async with foreign(js, **limits, **fields) as stream, AsyncExitStack() as stack:
        contexts = [await stack.enter_async_context(each) for each in views]
        opened = [
            await stack.enter_async_context(
                await each.core_stream.over(stream.name, look_every=LOOK_EVERY_S)
            )
            for each in contexts
        ]
        hands = [await stack.enter_async_context(each) for each in writers]
        is_compact = limits.get("max_msgs_per_subject") == 1
        crew = OverCrew(stream, opened, hands, Random(seed), is_compact=is_compact)  # noqa: S311 - no secret
        try:
            yield crew, stream.name
        finally:
            await crew.stop()


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
async def test_views_over_a_stream_converge(fresh_server: NatsServer, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - no secret
    proxies = [FaultProxy(fresh_server.port) for _ in range(2)]
    try:
        views = [connect(each.start().url, request_timeout=5) for each in proxies]
        writers = [connect(fresh_server.url, request_timeout=5) for _ in range(2)]
        async with (
            connect(fresh_server.url) as js,
            over_crew(js, views, writers, seed) as (crew, _),
        ):
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
async def test_views_over_a_stream_of_a_cluster_converge(
    nats_cluster_fresh: NatsCluster, seed: int
) -> None:
    chance = Random(seed)  # noqa: S311 - no secret
    views, writers = ([connect_to(nats_cluster_fresh) for _ in range(2)] for _ in range(2))
    async with (
        connect_to(nats_cluster_fresh) as js,
        over_crew(js, views, writers, seed, replicas=3) as (crew, stream),
    ):
        for _ in range(2):
            await crew.reach(BETWEEN)
            await trouble_cluster(chance.choice(OF_CLUSTERS), nats_cluster_fresh, js, stream)
        await crew.reach(BETWEEN)
        await crew.stop()
        await crew.check()


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
async def test_clients_without_a_feed_converge(fresh_server: NatsServer, seed: int) -> None:
    chance, name = Random(seed), new_name()  # noqa: S311 - no secret
    proxies = [FaultProxy(fresh_server.port) for _ in range(2)]
    try:
        async with connect(fresh_server.url) as js:
            await create_without_feed(js, name)
        connections = [connect(each.start().url, request_timeout=5) for each in proxies]
        async with clients_by(connections, name=name, look_every=LOOK_EVERY_S) as clients:
            crew = Crew(clients, chance)
            for _ in range(4):
                await crew.reach(BETWEEN)
                fault = chance.choice(OF_SERVERS)
                await trouble_server(fault, fresh_server, chance.choice(proxies))
            await crew.reach(BETWEEN)
            await crew.stop()
            await crew.check()
            assert all(each.conflates for each in clients)
    finally:
        for each in proxies:
            each.stop()


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(3))
async def test_clients_of_a_cluster_without_a_feed_converge(
    nats_cluster_fresh: NatsCluster, seed: int
) -> None:
    chance, name = Random(seed), new_name()  # noqa: S311 - no secret
    async with connect_to(nats_cluster_fresh) as js:
        await create_without_feed(js, name, replicas=3)
    connections = [connect_to(nats_cluster_fresh) for _ in range(2)]
    async with clients_by(connections, name=name, look_every=LOOK_EVERY_S) as clients:
        crew = Crew(clients, chance)
        for _ in range(2):
            await crew.reach(BETWEEN)
            client, fault = chance.choice(clients), chance.choice(OF_CLUSTERS)
            stream = names_of(client).stream
            await trouble_cluster(fault, nats_cluster_fresh, context_of(client), stream)
        await crew.reach(BETWEEN)
        await crew.stop()
        await crew.check()
