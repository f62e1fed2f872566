"""Consumers whose `ack_wait` or `max_deliver` is changed while their messages are handled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.consume.delivery import delivered, lease_look
from natsstream.consume.work import in_progress
from natsstream.errors import LeaseLostError
from natsstream.events import PermissionDenied
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async, holds
from tests.support.work import letters_of, make_work

if TYPE_CHECKING:
    from natsstream import Consumer, JetStream
    from natsstream.consume.delivery.delivered import DeliveredMessage

pytestmark = pytest.mark.asyncio

LEASE_S = 0.5


async def change(js: JetStream, consumer: Consumer, **settings: Any) -> None:
    """Update a consumer by another handle, as an operator does."""
    await (await js.streams.get(consumer.stream)).consumers.update("c", **settings)


def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (delivered, in_progress, lease_look):
        monkeypatch.setattr(module, "LOOK_EVERY_S", 0.05)


async def test_lowered_lease_is_kept_up_by_a_worker_that_runs(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_often(monkeypatch)
    consumer = await make_work(js, stream_name, 3, ack_wait=60)
    begun: list[int] = []
    go_on = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        begun.append(message.sequence)
        await go_on.wait()

    # One is handled, and two wait for it.
    async with consumer.worker(handle, concurrency=1, prefetch=3) as worker:
        await holds(lambda: begun)
        await change(js, consumer, ack_wait=LEASE_S)
        await asyncio.sleep(4 * LEASE_S)
        go_on.set()
        await holds(lambda: worker.report.acked == 3)
        assert (await consumer.info()).delivered.consumer_seq == 3
    assert begun == [1, 2, 3]
    assert worker.report.lost_leases == 0


async def test_message_that_comes_again_is_not_handled_beside_itself(
    js: JetStream, stream_name: str
) -> None:
    """The lease ends before the worker's next look."""
    told: list[BaseException] = []
    consumer = await make_work(js, stream_name, 1, ack_wait=60)
    begun: list[int] = []
    go_on = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        begun.append(message.delivered)
        await go_on.wait()

    async with consumer.worker(handle, on_error=lambda error, _: told.append(error)) as worker:
        await holds(lambda: begun)
        await change(js, consumer, ack_wait=LEASE_S)

        async def came_again() -> bool:
            return (await consumer.info()).delivered.consumer_seq > 1

        await eventually_async(came_again)
        await asyncio.sleep(4 * LEASE_S)
        # From then on its lease is kept up.
        assert (await consumer.info()).delivered.consumer_seq == 2
        go_on.set()
        await worker.wait_until_empty()

    assert begun == [1]
    assert (worker.report.received, worker.report.acked, worker.report.lost_leases) == (1, 1, 1)
    assert [type(each) for each in told] == [LeaseLostError]
    assert (await consumer.info()).num_ack_pending == 0


async def test_message_that_comes_again_while_its_handler_fails_is_tried_again(
    js: JetStream, stream_name: str
) -> None:
    """The first delivery's nak counts for the second one, which was left out."""
    consumer = await make_work(js, stream_name, 1, ack_wait=60)
    begun: list[int] = []
    go_on = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        begun.append(message.delivered)
        if message.delivered == 1:
            await go_on.wait()
            raise ValueError

    async with consumer.worker(handle, backoff=[0.01]) as worker:
        await holds(lambda: begun)
        await change(js, consumer, ack_wait=LEASE_S)
        await holds(lambda: worker._in_progress.is_lost(next(iter(worker._in_progress._heard))))  # pyright: ignore[reportPrivateUsage]
        await asyncio.sleep(2 * LEASE_S)
        assert begun == [1]
        go_on.set()
        await worker.wait_until_empty()
    assert begun == [1, 3]
    assert (worker.report.retried, worker.report.acked) == (1, 1)


async def test_handler_that_gives_its_message_back_meanwhile_gets_it_again(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 1)
    begun: list[int] = []
    go_on = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        begun.append(message.delivered)
        if message.delivered == 1:
            await message.nak()
            await go_on.wait()
        go_on.set()

    async with consumer.worker(handle) as worker:
        await holds(lambda: worker.report.acked == 1)
    assert begun == [1, 2]


async def test_handle_that_was_opened_before_the_change_has_workers_that_know_it(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 0, ack_wait=60)
    await change(js, consumer, ack_wait=LEASE_S)
    begun: list[int] = []
    go_on = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        begun.append(message.delivered)
        await go_on.wait()

    async with consumer.worker(handle) as worker:
        in_progress = worker._in_progress  # pyright: ignore[reportPrivateUsage]
        await holds(lambda: in_progress._lease_s == LEASE_S)  # pyright: ignore[reportPrivateUsage]
        await js.publish(f"{stream_name}.x", b"")
        await holds(lambda: begun)
        await asyncio.sleep(3 * LEASE_S)
        go_on.set()
        await holds(lambda: worker.report.acked == 1)
    assert begun == [1]


async def test_lowered_lease_is_kept_up_while_a_message_is_processed(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_often(monkeypatch)
    consumer = await make_work(js, stream_name, 1, ack_wait=60)
    message = await consumer.next()
    assert message is not None
    async with message.processing():
        await change(js, consumer, ack_wait=LEASE_S)
        await asyncio.sleep(4 * LEASE_S)
        assert (await consumer.info()).num_redelivered == 0
        assert message.lease_s == LEASE_S
    assert await consumer.next(timeout=2 * LEASE_S) is None


async def test_lowered_max_deliver_still_ends_with_a_letter(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_often(monkeypatch)
    consumer = await make_work(js, stream_name, 1, ack_wait=60, max_deliver=9)
    begun: list[int] = []
    go_on = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        begun.append(message.delivered)
        await go_on.wait()
        raise ValueError

    dead = f"{stream_name}_DLQ"
    async with consumer.worker(handle, backoff=[0.01], max_attempts=5, dead_letter=dead) as worker:
        await holds(lambda: begun)
        await change(js, consumer, max_deliver=2)
        outcomes = worker._outcomes  # pyright: ignore[reportPrivateUsage]
        await holds(lambda: outcomes.policy.max_deliver == 2)
        go_on.set()
        await holds(lambda: worker.report.dead_lettered == 1)
    assert begun == [1, 2]
    [letter] = await letters_of(await js.dead_letters.open(dead))
    assert (letter.reason, letter.deliveries) == ("attempts", 2)


RIGHTS = """
authorization { users: [
  { user: admin, password: x }
  { user: worker, password: x, permissions: { publish: { deny: ["$JS.API.CONSUMER.INFO.>"] } } } ] }
"""


async def test_worker_that_may_not_look_works_on(
    stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_often(monkeypatch)
    with NatsServer(config=RIGHTS) as server:
        urls = [server.url.replace("//", f"//{user}:x@") for user in ("admin", "worker")]
        async with connect(urls[0]) as admin, connect(urls[1]) as js:
            await make_work(admin, stream_name, 2)
            events = js.events()
            stream = await js.streams.get(stream_name)
            consumer = await stream.consumers.create("mine")

            async def handle(_: DeliveredMessage) -> None:
                await asyncio.sleep(0.5)

            async with consumer.worker(handle) as worker:
                await holds(lambda: worker.report.acked == 2)
        denied = [event async for event in events if isinstance(event, PermissionDenied)]
    assert len(denied) == 1
    assert worker.report.failure is None
