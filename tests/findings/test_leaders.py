"""Finding 30: publishing while a stream's leader changes, on three real servers.

nats-py 2.16 sends once: of a run with four step-downs one message failed with
`NoStreamResponseError` and one with a timeout. While a stream has no leader nobody listens on its
subjects, so nothing was stored and sending again is safe (ADR-22).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import ConflictError, NoRespondersError, RequestTimeoutError
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
# An ack that has not come by then was lost with its leader, as a rule.
ACK_LOST_S = 2
AGAIN_S = 0.02


@pytest.fixture(scope="module")
def cluster() -> Iterator[NatsCluster]:
    """Three servers that the tests of this file share."""
    with NatsCluster() as made:
        yield made


async def publish_for_certain(js: JetStream, subject: str, number: int) -> PubAck:
    """Publish under an id; an ack that was lost with its leader is asked for once more.

    The message is told to wait for far longer than that: where nobody listens it must never fail.
    A server may still be storing the first one (10158): that is no failure, and asked again.
    """
    while True:
        with suppress(TimeoutError, ConflictError):
            async with asyncio.timeout(ACK_LOST_S):
                return await js.publish(
                    subject,
                    payload(number),
                    msg_id=str(number),
                    retry_attempts=RETRY_ATTEMPTS,
                    timeout=TIMEOUT_S,
                )
        await asyncio.sleep(AGAIN_S)


@pytest.mark.finding(30)
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


@pytest.mark.finding(30)
async def test_message_waits_for_the_next_leader(cluster: NatsCluster, stream_name: str) -> None:
    """The leader is killed, and one more: nobody listens until one of them is back."""
    async with connect_to(cluster) as watcher:
        await watcher.streams.create(stream_name, subjects=[stream_name], replicas=3)
    leader = await asyncio.to_thread(cluster.wait_for_leader, stream_name)
    near, other = (node for node in cluster.servers if node is not leader)
    async with connect(near.client_url, request_timeout=TIMEOUT_S) as js:
        await js.publish(stream_name, b"1", retry_attempts=RETRY_ATTEMPTS)
        for node in (leader, other):
            await asyncio.to_thread(node.kill)
        # Sent once, as nats-py does, it fails.
        await publish_once_until_it_is_refused(js, stream_name)
        waiting = asyncio.ensure_future(
            js.publish(stream_name, b"2", retry_attempts=RETRY_ATTEMPTS, timeout=TIMEOUT_S)
        )
        for node in (other, leader):
            await asyncio.to_thread(node.start, deadline_s=30)
        ack = await waiting

    assert ack.stream == stream_name


async def publish_once_until_it_is_refused(js: JetStream, subject: str) -> None:
    """Publish until a message is refused because nobody listens; none can be stored here."""
    while True:
        with suppress(RequestTimeoutError):  # Its way to the dead leader is not closed yet.
            with pytest.raises(NoRespondersError):
                await js.publish(subject, b"once", retry_attempts=0, timeout=0.5)
            return
