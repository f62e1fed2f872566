"""Finding 30: publishing while a stream's leader changes, on three real servers.

nats-py 2.16 sends once: of a run with four step-downs one message failed with
`NoStreamResponseError` and one with a timeout. While a stream has no leader nobody listens on its
subjects, so nothing was stored and sending again is safe (ADR-22).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import NoRespondersError, RequestTimeoutError
from natsstream.testing import NatsCluster
from tests.support.clusters import connect_to, step_down
from tests.support.streams import payload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream import JetStream, PubAck

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(180)]

STEP_DOWNS = 4
PUBLISHERS = 8
# An election takes a moment, and on a busy machine several seconds.
RETRY_ATTEMPTS = 200
TIMEOUT_S = 40


@pytest.fixture(scope="module")
def cluster() -> Iterator[NatsCluster]:
    """Three servers that the tests of this file share."""
    with NatsCluster() as made:
        yield made


async def publish_for_certain(js: JetStream, subject: str, number: int) -> PubAck:
    """Publish under an id; an ack that was lost with its leader is asked for once more."""
    while True:
        try:
            return await js.publish(
                subject,
                payload(number),
                msg_id=str(number),
                retry_attempts=RETRY_ATTEMPTS,
                timeout=2,
            )
        except RequestTimeoutError:
            continue


async def test_leader_changes_under_load_fail_no_message(
    cluster: NatsCluster, stream_name: str
) -> None:
    async with connect_to(cluster) as js:
        stream = await js.streams.create(stream_name, subjects=[stream_name], replicas=3)
        stored: dict[int, int] = {}
        is_over = asyncio.Event()

        async def publish_on(worker: int) -> None:
            number = worker
            while not is_over.is_set():
                ack = await publish_for_certain(js, stream_name, number)
                stored[ack.sequence] = number
                number += PUBLISHERS

        async with asyncio.TaskGroup() as workers:
            for worker in range(PUBLISHERS):
                workers.create_task(publish_on(worker))
            for _ in range(STEP_DOWNS):
                await step_down(js, cluster, stream_name)
                await publish_for_certain(js, stream_name, -1 - len(stored))
            is_over.set()

        held = {m.sequence: int(m.data.split()[0]) async for m in stream.read()}
    assert stored.items() <= held.items()
    assert len(set(held.values())) == len(held)


async def test_message_waits_for_the_next_leader(cluster: NatsCluster, stream_name: str) -> None:
    """The leader is killed: until another one is elected, nobody listens."""
    async with connect_to(cluster) as watcher:
        await watcher.streams.create(stream_name, subjects=[stream_name], replicas=3)
    leader = await asyncio.to_thread(cluster.wait_for_leader, stream_name)
    others = [node.client_url for node in cluster.servers if node is not leader]
    async with connect(others) as js:
        await js.publish(stream_name, b"1")
        await asyncio.to_thread(leader.kill)
        try:
            # Sent once, as nats-py does, it fails.
            once = await publish_once_until_it_is_refused(js, stream_name)
            ack = await js.publish(
                stream_name, b"2", retry_attempts=RETRY_ATTEMPTS, timeout=TIMEOUT_S
            )
        finally:
            await asyncio.to_thread(leader.start)
            await asyncio.to_thread(cluster.wait_until_ready)

    assert once
    assert ack.stream == stream_name


async def publish_once_until_it_is_refused(js: JetStream, subject: str) -> bool:
    """Tell whether a message was refused because nobody listens, before the next leader came."""
    while True:
        try:
            await js.publish(subject, b"once", retry_attempts=0, timeout=0.5)
        except NoRespondersError:
            return True
        except RequestTimeoutError:
            continue
        return False
