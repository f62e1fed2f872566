"""Dead letters while something dies: the worker, a leader. Nothing is lost, nothing is double."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.consume.delivery.ack_kinds import Reject
from natsstream.errors import NatsStreamError
from tests.support.clusters import step_down
from tests.support.eventually import eventually_async
from tests.support.work import letters_of, make_work, settled

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.consume.dead_letters.queue import DeadLetterQueue
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.streams.consumers.consumer import Consumer
    from natsstream.testing import NatsCluster, NatsNode, NatsServer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]


async def reject(message: DeliveredMessage) -> None:
    """Handle nothing."""
    raise Reject(message.subject)


async def no_work(message: DeliveredMessage) -> None:
    """Handle a message at once."""


async def die(url: str, stream: str, queue: str, moment: str) -> None:
    """Run a worker in a process of its own, until it has killed itself."""
    program = [sys.executable, "-m", "tests.support.doomed_worker", url, stream, queue, moment]
    process = await asyncio.create_subprocess_exec(*program)
    async with asyncio.timeout(60):
        assert await process.wait() == -signal.SIGKILL


async def has_messages(js: JetStream, stream: str, count: int) -> bool:
    """Tell whether a stream has so many messages."""
    return (await (await js.streams.get(stream)).info()).state.messages == count


async def is_empty(queue: DeadLetterQueue) -> bool:
    """Tell whether there are no letters; the replica that is read may lag by a moment."""
    return await queue.count() == 0


async def reject_until_settled(consumer: Consumer, queue: str) -> None:
    """Reject all that a consumer still has."""
    async with consumer.worker(reject, dead_letter=queue):
        await settled(consumer, within_s=30)


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    ("moment", "retention"),
    [
        ("before_copy", "workqueue"),
        ("after_copy", "limits"),
        ("after_copy", "workqueue"),
        ("after_copy", "interest"),
        ("after_term", "interest"),
    ],
)
async def test_killed_worker_leaves_one_letter(
    js: JetStream, server: NatsNode, stream_name: str, moment: str, retention: str
) -> None:
    consumer = await make_work(js, stream_name, 2, retention=retention, ack_wait=0.5)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    # Message ids are forgotten before the message comes again.
    await js.streams.update(queue.name, duplicate_window=0.1)

    await die(server.url, stream_name, queue.name, moment)
    await reject_until_settled(consumer, queue.name)

    letters = await letters_of(queue)
    assert sorted(letter.sequence for letter in letters) == [1, 2]
    assert all(letter.is_copy for letter in letters)
    if retention != "limits":
        await eventually_async(lambda: has_messages(js, stream_name, 0))


async def test_letter_of_a_killed_worker_can_be_dropped_before_its_message_comes_again(
    js: JetStream, server: NatsNode, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 1, retention="workqueue", ack_wait=3)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    await die(server.url, stream_name, queue.name, "after_copy")
    (letter,) = await letters_of(queue)

    await queue.drop(letter)

    await settled(consumer)
    assert await queue.count() == 0


@pytest.mark.sampled_variants
@pytest.mark.parametrize("moment", ["before_copy", "after_copy", "after_term"])
async def test_killed_worker_of_a_replicated_stream_leaves_one_letter(
    cluster_js: JetStream, nats_cluster: NatsCluster, stream_name: str, moment: str
) -> None:
    js = cluster_js
    consumer = await make_work(js, stream_name, 2, retention="workqueue", replicas=3, ack_wait=1)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    await js.streams.update(queue.name, duplicate_window=0.1)

    await die(",".join(nats_cluster.urls), stream_name, queue.name, moment)
    await step_down(js, nats_cluster, queue.name)
    await reject_until_settled(consumer, queue.name)

    letters = await letters_of(queue)
    assert sorted(letter.sequence for letter in letters) == [1, 2]
    assert ((await queue.info()).config.replicas, len(letters)) == (3, 2)
    assert await queue.replay_all(to=f"{stream_name}.again") == 2
    await eventually_async(lambda: is_empty(queue))


async def test_stuck_message_of_a_replicated_stream_is_let_go_of(
    cluster_js: JetStream, nats_cluster: NatsCluster, stream_name: str
) -> None:
    js = cluster_js
    consumer = await make_work(
        js, stream_name, 2, retention="interest", replicas=3, max_deliver=1, ack_wait=0.3
    )
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    taken = 0
    while taken < 2:
        taken += len(await consumer.fetch(2 - taken, timeout=5))

    async def told() -> bool:
        with suppress(NatsStreamError):
            await consumer.fetch(1, timeout=0.5)
        return await queue.count() == 2

    await eventually_async(told)
    await step_down(js, nats_cluster, stream_name)
    await eventually_async(lambda: has_messages(js, stream_name, 2))

    assert await queue.drop_all() == 2

    await eventually_async(lambda: has_messages(js, stream_name, 0))


async def test_letters_are_whole_while_leaders_change(
    cluster_js: JetStream, nats_cluster: NatsCluster, stream_name: str
) -> None:
    js, count = cluster_js, 120
    consumer = await make_work(js, stream_name, 0, retention="workqueue", replicas=3, ack_wait=3)
    async with js.publisher(retry_for=30) as publisher:
        for number in range(count):
            await publisher.send(f"{stream_name}.x", b"%d" % number)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    told: list[BaseException] = []

    async with consumer.worker(
        reject, concurrency=4, dead_letter=queue.name, on_error=lambda error, _: told.append(error)
    ) as worker:
        for number in range(2):
            wanted = 20 + 30 * number

            async def ask(wanted: int = wanted) -> bool:
                return worker.report.dead_lettered >= wanted

            await eventually_async(ask, within_s=30)
            await step_down(js, nats_cluster, queue.name)
        await settled(consumer, within_s=40)

    letters = await letters_of(queue)
    assert sorted(letter.sequence for letter in letters) == list(range(1, count + 1))
    assert all(isinstance(error, NatsStreamError | Reject) for error in told)


@pytest.mark.parametrize("limits", [{}, {"max_age": 3600}])
async def test_acks_that_a_killed_server_forgot_are_no_letters_where_only_acks_delete(
    fresh_server: NatsServer, stream_name: str, limits: dict[str, Any]
) -> None:
    """The server finds the messages gone, and reports each as terminated."""
    async with connect(fresh_server.url) as js:
        consumer = await make_work(js, stream_name, 200, retention="workqueue", ack_wait=1)
        await js.streams.update(stream_name, **limits)
        queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
        reported = 0
        for _ in range(5):  # A server that had the time to save its acks forgets none.
            for message in (await consumer.fetch(200))[1:]:
                await message.ack(confirm=True)
            await eventually_async(lambda: has_messages(js, stream_name, 1))
            await asyncio.to_thread(fresh_server.kill)
            await asyncio.to_thread(fresh_server.start)
            async with consumer.worker(no_work):
                await settled(consumer, within_s=30)
            reported = (await queue.info()).state.messages
            if reported:
                break
            for _ in range(200):
                await js.publish(f"{stream_name}.x", b"")

        letters = await letters_of(queue)
        assert reported > 0
        if limits:
            assert len(letters) == reported
            assert {(letter.reason, letter.is_gone) for letter in letters} == {("deleted", True)}
        else:
            assert letters == []
            assert await queue.count() == 0
        assert await queue.drop_all() == len(letters)
        assert (await queue.info()).state.messages == 0
