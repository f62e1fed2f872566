"""Consumers whose `ack_wait` or `max_deliver` is changed while their messages are handled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.consume.delivery import delivered, lease_look
from natsstream.consume.delivery.ack_kinds import Reject
from natsstream.consume.work import in_progress, outcomes
from natsstream.errors import LeaseLostError, RequestTimeoutError
from natsstream.events import PermissionDenied
from natsstream.testing import FaultProxy, NatsServer
from tests.support.eventually import holds
from tests.support.work import letters_of, make_work

if TYPE_CHECKING:
    from natsstream import Consumer, JetStream
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.testing import NatsNode

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


@pytest.mark.parametrize("way", ["worker", "processing"])
async def test_handlers_that_are_shorter_than_a_look_learn_of_it(
    js: JetStream, stream_name: str, way: str
) -> None:
    """Between the reminders, each 5 s, nothing is held; the handle knows the old lease."""
    consumer = await make_work(js, stream_name, 0, ack_wait=60)
    await change(js, consumer, ack_wait=LEASE_S)
    seen: list[int] = []

    async def handle(message: DeliveredMessage) -> None:
        seen.append(message.delivered)
        await asyncio.sleep(3 * LEASE_S)

    await js.publish(f"{stream_name}.x", b"")
    if way == "worker":
        async with consumer.worker(handle) as worker:
            await holds(lambda: worker.report.acked == 1)
    else:
        message = await consumer.next()
        assert message is not None
        async with message.processing():
            other = await (await js.streams.get(stream_name)).consumers.get("c")
            again = asyncio.create_task(other.next(timeout=3 * LEASE_S))
            await handle(message)
            assert await again is None
    assert seen == [1]
    assert (await consumer.info()).num_redelivered == 0
    assert await consumer.next(timeout=2 * LEASE_S) is None


async def test_lease_that_ends_before_the_look_is_told(js: JetStream, stream_name: str) -> None:
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
        await holds(lambda: worker._in_progress._lease_s == LEASE_S)  # pyright: ignore[reportPrivateUsage]
        count = len(begun)
        assert count > 1
        await asyncio.sleep(4 * LEASE_S)
        assert len(begun) - count <= 1  # One may have been on its way.
        go_on.set()
        await worker.wait_until_empty()

    assert 1 <= worker.report.lost_leases <= len(begun)
    assert {type(each) for each in told} == {LeaseLostError}
    assert not any("event loop" in str(each) for each in told)


@pytest.mark.parametrize("keepalive", [True, False])
async def test_worker_that_handles_something_looks_every_few_seconds(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch, *, keepalive: bool
) -> None:
    """Not more often, also where reminders are; and not at all without messages."""
    monkeypatch.setattr(lease_look, "LOOK_EVERY_S", 1.0)
    consumer = await make_work(js, stream_name, 0, ack_wait=0.3)
    begun = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        del message
        begun.set()
        await asyncio.sleep(2)

    async with (
        js.core.subscribe(f"$JS.API.CONSUMER.INFO.{stream_name}.c") as looks,
        consumer.worker(handle, keepalive=keepalive, max_attempts=1) as worker,
    ):
        await asyncio.sleep(1)
        await js.core.flush()
        assert looks.pending_count == 0
        await js.publish(f"{stream_name}.x", b"")
        await holds(lambda: worker.report.acked == 1)
        await js.core.flush()
        assert 2 <= looks.pending_count <= 5
    tasks = asyncio.all_tasks()
    assert not [task for task in tasks if "look" in task.get_name()]


async def test_consumer_that_is_made_anew_has_another_lease(
    server: NatsNode, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_often(monkeypatch)
    begun: list[int] = []
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as near, connect(proxy.url) as js:
            await make_work(near, stream_name, 0, ack_wait=60)
            stream = await near.streams.get(stream_name)
            consumer = await (await js.streams.get(stream_name)).consumers.get("c")

            async def handle(message: DeliveredMessage) -> None:
                begun.append(message.sequence)
                await asyncio.sleep(3 * LEASE_S)

            async with consumer.worker(handle) as worker:
                proxy.cut()
                await stream.consumers.delete("c")
                await stream.consumers.create("c", ack_wait=2 * LEASE_S)
                for _ in range(2):
                    await near.publish(f"{stream_name}.x", b"")
                proxy.heal()
                await holds(lambda: worker.report.acked == 2)
    assert sorted(begun) == [1, 2]
    assert worker.report.lost_leases == 0


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
        rules = worker._outcomes  # pyright: ignore[reportPrivateUsage]
        await holds(lambda: rules.policy.max_deliver == 2)
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


async def test_letter_that_cannot_be_stored_at_a_lowered_max_deliver_is_held(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given back, the message would not come again."""
    look_often(monkeypatch)
    monkeypatch.setattr(outcomes, "_UNSTORED_DELAY_S", 0.01)
    consumer = await make_work(js, stream_name, 1, ack_wait=60, max_deliver=9)
    store = outcomes.store_letter
    tries: list[str] = []

    async def fail_first(*args: Any, **options: Any) -> bool:
        tries.append("try")
        if len(tries) == 1:
            raise RequestTimeoutError("not now")
        return await store(*args, **options)

    monkeypatch.setattr(outcomes, "store_letter", fail_first)
    begun: list[int] = []
    go_on = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        begun.append(message.delivered)
        await go_on.wait()
        raise Reject

    async with consumer.worker(handle, dead_letter=f"{stream_name}_DLQ") as worker:
        await holds(lambda: begun)
        await change(js, consumer, max_deliver=1)
        rules = worker._outcomes  # pyright: ignore[reportPrivateUsage]
        await holds(lambda: rules.policy.max_deliver == 1)
        go_on.set()
        await holds(lambda: worker.report.dead_lettered == 1)
    assert (begun, len(tries), worker.report.unstored) == ([1], 2, 1)


async def test_lowered_max_deliver_leaves_what_is_here_to_the_handler(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was delivered while that was legal."""
    look_often(monkeypatch)
    consumer = await make_work(js, stream_name, 2, ack_wait=60, max_deliver=9)
    for _ in range(3):
        for message in await consumer.fetch(2):
            await message.nak()
    begun: list[int] = []
    go_on = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        begun.append(message.delivered)
        await go_on.wait()

    async with consumer.worker(handle, concurrency=1, prefetch=2, max_attempts=5) as worker:
        await holds(lambda: begun)
        await change(js, consumer, max_deliver=3)
        rules = worker._outcomes  # pyright: ignore[reportPrivateUsage]
        await holds(lambda: rules.policy.max_deliver == 3)
        go_on.set()
        await holds(lambda: worker.report.acked == 2)
    assert begun == [4, 4]


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
