"""A dead-letter stream that has lost its quorum, while the messages still come.

The work has one replica, on the only server that is left; the letters have three. Nothing is said
to be stored that is not, and no message is given up before its letter is there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import NatsStreamError, Reject, connect
from natsstream.testing.cluster import ClusterNode
from tests.support.clusters import connect_to
from tests.support.eventually import eventually_async
from tests.support.work import letters_of, make_work, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream import DeliveredMessage
    from natsstream.testing import NatsCluster

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(240)]

# A node comes back, finds its peers and elects: that takes seconds each.
_WITHIN_S = 90.0


@pytest.mark.sampled_variants
@pytest.mark.parametrize("leads", [True, False], ids=["leader_left", "leader_gone"])
@pytest.mark.parametrize(
    ("end", "begin"),
    [(ClusterNode.kill, ClusterNode.start), (ClusterNode.pause, ClusterNode.resume)],
    ids=["killed", "frozen"],
)
async def test_letter_without_a_quorum_is_not_counted_and_its_message_comes_again(
    nats_cluster_fresh: NatsCluster,
    stream_name: str,
    end: Callable[[ClusterNode], object],
    begin: Callable[[ClusterNode], object],
    leads: bool,  # noqa: FBT001 - a case of the test.
) -> None:
    cluster, name = nats_cluster_fresh, f"{stream_name}_DLQ"
    async with connect_to(cluster) as js:
        # Else the server gives a message that is held up to others; it comes again by a nak.
        await make_work(js, stream_name, 0, retention="workqueue", ack_wait=60)
        queue = await js.dead_letters.ensure(name, replicas=3)
        left = await asyncio.to_thread(cluster.wait_for_leader, stream_name)
        others = [node for node in cluster.servers if node is not left]
        leader = left if leads else others[0]
        if await asyncio.to_thread(cluster.wait_for_leader, name) is not leader:
            await (await js.streams.get(name)).step_down(preferred=leader.name)

    deliveries: list[int] = []
    told: list[BaseException] = []

    async def reject(message: DeliveredMessage) -> None:
        deliveries.append(message.delivered)
        raise Reject("no")

    def note(error: BaseException, _: DeliveredMessage) -> None:
        if isinstance(error, NatsStreamError) and not isinstance(error, Reject):
            told.append(error)

    async with connect(left.url, request_timeout=2, reconnect_timeout=60) as js:
        consumer = await (await js.streams.get(stream_name)).consumers.get("c")
        async with consumer.worker(
            reject, dead_letter=name, on_error=note, backoff=[0.01]
        ) as worker:
            for node in others:
                await asyncio.to_thread(end, node)
            try:
                await js.publish(f"{stream_name}.x", b"1")

                async def came_again() -> bool:
                    return len(deliveries) > 1

                await eventually_async(came_again, within_s=_WITHIN_S)
                report = worker.report
                counted = (report.dead_lettered, report.letters_found, report.terminated)
                assert counted == (0, 0, 0)
                assert report.unstored == len(told) > 0
            finally:
                for node in others:
                    await asyncio.to_thread(begin, node)
            await asyncio.to_thread(cluster.wait_until_ready, deadline_s=_WITHIN_S)

            async def is_counted() -> bool:
                return worker.report.dead_lettered + worker.report.letters_found == 1

            await eventually_async(is_counted, within_s=_WITHIN_S)
        await settled(consumer, within_s=_WITHIN_S)
        queue = await js.dead_letters.open(name)
        assert [letter.sequence for letter in await letters_of(queue)] == [1]
        assert (await (await js.streams.get(stream_name)).info()).state.messages == 0
