"""Counting through lost answers, killed servers and changes of leaders: each addition once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import NatsStreamError, connect
from natsstream.errors import RequestTimeoutError, TransportError
from natsstream.testing import FaultProxy, NatsCluster
from tests.support.clusters import connect_to, step_down

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream import Counters, JetStream
    from natsstream.testing import NatsServer, ServerOptions

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]


@pytest.fixture
def own_cluster(nats_server_options: ServerOptions) -> Iterator[NatsCluster]:
    """A cluster for one test, which kills its servers."""
    with NatsCluster(**nats_server_options) as cluster:
        yield cluster


async def add_for_certain(counters: Counters, subject: str, number: int) -> int:
    """Add 1 with an id until there is an answer; returns the total that it tells."""
    while True:
        try:
            return await counters.incr(subject, 1, msg_id=f"add-{number}", timeout=2)
        except NatsStreamError as error:
            if not error.retryable:
                raise
            await asyncio.sleep(0.01)


async def test_lost_answer_adds_once_when_it_is_asked_again(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    near = await js.counters.ensure(stream_name, subjects=[stream_name], storage="memory")

    with FaultProxy(server.port) as proxy:
        async with connect(proxy.url) as far:
            counters = far.counters
            assert await counters.incr(stream_name, 5) == 5
            proxy.stall(direction="to_client")
            with pytest.raises((RequestTimeoutError, TransportError), match="stored or not"):
                await counters.incr(stream_name, 10, msg_id="once", timeout=0.1)
            proxy.heal()
            again = await counters.incr(stream_name, 10, msg_id="once", timeout=30)

    assert again == 15
    held = await near.get(stream_name)
    assert held is not None
    assert held.value == 15


async def test_totals_are_right_through_kills_of_leaders(own_cluster: NatsCluster) -> None:
    async with connect_to(own_cluster) as js:
        counters = await js.counters.ensure("HITS", subjects=["hits"], replicas=3)
        total = 0
        leader = await asyncio.to_thread(own_cluster.wait_for_leader, "HITS")
        for number in range(120):
            if number == 40:
                await asyncio.to_thread(leader.kill)
            if number == 80:
                await asyncio.to_thread(leader.start)
                await step_down(js, own_cluster, "HITS")
            total = await add_for_certain(counters, "hits", number)

        assert total == 120
        held = await counters.get("hits")
        assert held is not None
        assert held.value == 120
        assert await counters.incr("hits", 1, msg_id="add-7") == 120
