"""Schedules through killed servers and changes of leaders: what is due fires, and only once.

Schedules count in seconds, so these tests take as long as two or three of them and an election.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from natsstream import Schedule, connect
from natsstream.testing import NatsCluster
from natsstream.units import NS_PER_SECOND, parse_rfc3339
from tests.support.clusters import connect_to
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream import JetStream, Message, Stream
    from natsstream.testing import NatsServer, ServerOptions
    from natsstream.testing.nodes import ClusterNode

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

WITHIN_S = 60
# Longer than two intervals of the schedule that is missed.
DOWN_S = 2.5
ONCE_AFTER_S = 1.0


@pytest.fixture
def own_cluster(nats_server_options: ServerOptions) -> Iterator[NatsCluster]:
    """A cluster for one test, which kills its servers."""
    with NatsCluster(**nats_server_options) as cluster:
        yield cluster


async def make(js: JetStream, replicas: int, once_after_s: float = ONCE_AFTER_S) -> Stream:
    """Make a stream with a schedule for each second, and one for a moment that is soon."""
    stream = await js.streams.create(
        "S", subjects=["s.>"], allow_msg_schedules=True, replicas=replicas
    )
    await stream.publish("s.when.often", b"", schedule=Schedule.every(1, target="s.often"))
    once = Schedule.after(once_after_s, target="s.once")
    await stream.publish("s.when.once", b"", schedule=once)
    return stream


async def make_and_miss(js: JetStream, server: NatsServer) -> Stream:
    """Make the stream, and have the server down when the one for a moment is due."""
    once_after_s = ONCE_AFTER_S
    while True:
        due_s = time.time() + once_after_s
        stream = await make(js, 1, once_after_s)
        await asyncio.to_thread(server.kill)
        if time.time() < due_s:
            # It is this time that is to be missed.
            await asyncio.sleep(max(DOWN_S, due_s + 0.1 - time.time()))
            return stream
        # The machine was too slow, and it may have fired.
        await asyncio.to_thread(server.start)
        await stream.info()
        await stream.delete()
        once_after_s *= 2


async def published(stream: Stream, subject: str, since_ns: int, count: int) -> list[Message]:
    """Return what was published to a subject since a moment, once it is so many messages."""

    async def all_since() -> list[Message]:
        found = [each async for each in stream.read(filters=[subject])]
        late = [each for each in found if each.time_ns >= since_ns]
        return late if len(late) >= count else []

    return await eventually_async(all_since, within_s=WITHIN_S)


async def has_meta_leader(cluster: NatsCluster, killed: ClusterNode) -> bool:
    """Tell whether somebody leads the cluster, and not the one that was killed."""
    found = await asyncio.to_thread(cluster.meta_leader)
    return found is not None and found is not killed


async def test_what_was_due_while_the_server_was_down_fires_once_when_it_is_back(
    fresh_server: NatsServer,
) -> None:
    async with connect(fresh_server.url, request_timeout=30, reconnect_timeout=60) as js:
        stream = await make_and_miss(js, fresh_server)
        back_ns = time.time_ns()
        await asyncio.to_thread(fresh_server.start)

        often = await published(stream, "s.often", back_ns, 2)
        await published(stream, "s.once", back_ns, 1)

        # One that made up for each second that was missed would tell of moments that are over.
        nexts = [parse_rfc3339(each.headers["Nats-Schedule-Next"]) for each in often]
        assert nexts[0] >= back_ns // NS_PER_SECOND * NS_PER_SECOND
        assert len(set(nexts)) == len(nexts)
        assert len([each async for each in stream.read(filters=["s.once"])]) == 1
        assert [each.subject async for each in stream.schedules.list()] == ["s.when.often"]


async def test_schedules_fire_once_through_a_killed_leader(own_cluster: NatsCluster) -> None:
    async with connect_to(own_cluster) as js:
        stream = await make(js, 3)
        leader = await asyncio.to_thread(own_cluster.wait_for_leader, "S")
        killed_ns = time.time_ns()
        await asyncio.to_thread(leader.kill)
        # A read of all would wait for its deadline where nobody leads.
        await asyncio.to_thread(own_cluster.wait_for_leader, "S", other_than=leader)
        await eventually_async(lambda: has_meta_leader(own_cluster, leader), within_s=WITHIN_S)

        await published(stream, "s.once", 0, 1)
        often = await published(stream, "s.often", killed_ns, 2)

        nexts = [each.headers["Nats-Schedule-Next"] for each in often]
        assert len(set(nexts)) == len(nexts)
        assert len([each async for each in stream.read(filters=["s.once"])]) == 1
        assert [each.subject async for each in stream.schedules.list()] == ["s.when.often"]
