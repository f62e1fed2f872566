"""Workers whose handlers, options or dead-letter streams are not as they should be."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.consume.delivery.ack_kinds import Reject, Retry
from natsstream.consume.work import prefetch
from natsstream.errors import (
    ConsumerDeletedError,
    LeaseLostError,
    PermissionDeniedError,
    UsageError,
)
from natsstream.testing import FaultProxy, NatsServer
from tests.support.eventually import holds
from tests.support.work import letters_of, make_work, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream import JetStream
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.consume.work.worker import Worker
    from natsstream.streams.consumers.consumer import Consumer
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


class Unset(Reject):
    """A verdict of a caller who forgot `super().__init__`."""

    def __init__(self) -> None:  # pyright: ignore[reportMissingSuperCall] - on purpose.
        pass


class UnsetRetry(Retry):
    """The same, of the other kind."""

    def __init__(self) -> None:  # pyright: ignore[reportMissingSuperCall] - on purpose.
        pass


class MuteError(Exception):
    """Fails to describe itself."""

    def __str__(self) -> str:
        raise ValueError


class Base(BaseException):
    """What no handler should raise."""


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    "make",
    [
        lambda: Reject(ValueError("no text")),  # pyright: ignore[reportArgumentType] - on purpose.
        lambda: Reject(MuteError()),  # pyright: ignore[reportArgumentType] - on purpose.
        Unset,
        UnsetRetry,
        MuteError,
        lambda: ValueError("\ud800\r\nA: b"),
        lambda: StopAsyncIteration(1),
    ],
)
async def test_whatever_a_handler_raises_becomes_a_letter(
    js: JetStream, stream_name: str, make: Callable[[], Exception]
) -> None:
    consumer = await make_work(js, stream_name, 2)
    queue = f"{stream_name}_DLQ"

    async def handle(message: DeliveredMessage) -> None:
        del message
        raise make()

    async with consumer.worker(handle, dead_letter=queue, max_attempts=1) as worker:
        await holds(lambda: worker.report.dead_lettered == 2)

    assert len(await letters_of(await js.dead_letters.open(queue))) == 2


async def test_coroutine_that_a_handler_returns_is_a_failure_and_no_success(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 1)
    told: list[BaseException] = []

    async def work(message: DeliveredMessage) -> None:
        del message

    async def handle(message: DeliveredMessage) -> Any:
        if message.delivered == 1:
            return work(message)  # Without an await, nothing has been done.
        return "done"

    async with consumer.worker(
        handle, backoff=[0.01], on_error=lambda error, _: told.append(error)
    ) as worker:
        await holds(lambda: worker.report.acked == 1)

    assert worker.report.failures == 1
    assert isinstance(told[0], UsageError)
    assert "await" in told[0].hint


async def test_base_exception_ends_the_run_and_gives_the_message_back(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 3)

    async def handle(message: DeliveredMessage) -> None:
        if message.delivered == 1 and message.data == b"0":
            raise Base

    with pytest.raises(Base):
        await consumer.run(handle)

    async def work() -> None:
        async with consumer.worker(bases) as worker:
            await holds(lambda: worker.report.returned >= 1)

    with pytest.raises(Base):
        await work()

    async with consumer.worker(take):
        await settled(consumer)


async def bases(message: DeliveredMessage) -> None:
    """Fail as nothing should."""
    raise Base(message)


async def take(message: DeliveredMessage) -> None:
    """Handle a message."""
    del message


async def test_block_that_nobody_waits_in_tells_at_its_end_what_ended_the_work(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 1)

    async def work() -> None:
        async with consumer.worker(take) as worker:
            await holds(lambda: worker.report.acked == 1)
            await (await js.streams.get(stream_name)).consumers.delete("c")
            await holds(lambda: not worker.is_running)

    with pytest.raises(ConsumerDeletedError):
        await work()


async def test_letter_that_can_not_be_stored_in_the_last_delivery_is_held_until_it_can(
    js: JetStream, stream_name: str
) -> None:
    # The server would not deliver it again, were it given back.
    consumer = await make_work(js, stream_name, 1, max_deliver=1, ack_wait=0.5)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ")
    await js.streams.update(queue.name, max_msgs=1, discard="new")
    await js.core.publish(f"$DLQ.{queue.name}.full", b"")

    async def handle(message: DeliveredMessage) -> None:
        raise Reject(message.subject)

    async with consumer.worker(handle, dead_letter=queue.name) as worker:
        await holds(lambda: worker.report.unstored >= 1)
        await js.streams.update(queue.name, max_msgs=-1)
        await holds(lambda: worker.report.dead_lettered == 1)

    assert [letter.reason for letter in await letters_of(queue)] == ["rejected"]


async def test_lease_that_was_lost_while_a_message_waited_is_told(
    server: NatsNode, stream_name: str
) -> None:
    told: list[int] = []
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as near, connect(proxy.url) as js:
            await make_work(near, stream_name, 2, ack_wait=0.4)
            consumer = await (await js.streams.get(stream_name)).consumers.get("c")
            begun, go_on = asyncio.Event(), asyncio.Event()

            async def handle(message: DeliveredMessage) -> None:
                del message
                begun.set()
                await go_on.wait()

            def on_error(error: BaseException, message: DeliveredMessage) -> None:
                if isinstance(error, LeaseLostError):
                    told.append(message.sequence)

            async with consumer.worker(
                handle, concurrency=1, prefetch=2, on_error=on_error
            ) as worker:
                await begun.wait()
                # The other one waits, and was reminded of.
                in_progress = worker._in_progress  # pyright: ignore[reportPrivateUsage]
                await holds(lambda: in_progress._heard_waiting)  # pyright: ignore[reportPrivateUsage]
                proxy.cut()
                await asyncio.sleep(0.8)  # Twice the lease.
                go_on.set()
                await holds(lambda: worker.report.lost_leases >= 2)
                proxy.heal()
                await holds(lambda: js.is_connected)

    assert {1, 2} <= set(told)


async def test_lease_that_a_blocked_event_loop_lost_is_told_with_the_way_out(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = await make_work(js, stream_name, 1, ack_wait=0.4)

    async def handle(message: DeliveredMessage) -> None:
        if message.delivered == 1:
            time.sleep(0.9)  # noqa: ASYNC251 - the mistake that is meant.

    async with consumer.worker(handle) as worker:
        await holds(lambda: worker.report.lost_leases == 1 and worker.report.acked >= 1)

    told = [each.getMessage() for each in caplog.records if each.name == "natsstream.worker"]
    lost = next(each for each in told if "may be redelivered" in each)
    named = f"message 1 of consumer c of stream {stream_name}"
    assert lost.startswith(f"{named}: the event loop was blocked for ")
    assert lost.count(named) == 1
    assert "asyncio.to_thread" in lost


async def test_lease_of_a_slow_handler_without_keepalive_is_not_blamed_on_the_loop(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 1, ack_wait=0.4)
    told: list[BaseException] = []

    async def handle(message: DeliveredMessage) -> None:
        await asyncio.sleep(0.9 if message.delivered == 1 else 0)

    async with consumer.worker(
        handle, keepalive=False, on_error=lambda error, _: told.append(error)
    ) as worker:
        await holds(lambda: worker.report.lost_leases == 1)

    assert "no in_progress reached the server" in str(told[0])
    assert "to_thread" not in str(told[0])


async def test_quick_handlers_ask_further_ahead_and_slow_ones_leave_work_to_others(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a starved machine no handler is quick by the real measure.
    monkeypatch.setattr(prefetch, "AHEAD_S", 60.0)
    consumer = await make_work(js, stream_name, 0)
    async with js.publisher() as publisher:
        for number in range(3_000):
            await publisher.send(f"{stream_name}.x", b"%d" % number)
    most = 0
    is_slow, go_on = False, asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        nonlocal most
        del message
        if is_slow:
            await go_on.wait()
            return
        incoming = worker._incoming  # pyright: ignore[reportPrivateUsage] - what it holds.
        most = max(most, len(incoming.buffered()) if incoming is not None else 0)

    async with consumer.worker(handle, concurrency=4) as worker:
        await holds(lambda: worker.report.acked == 3_000)
        assert most > 64
    is_slow = True
    for number in range(40):
        await js.publish(f"{stream_name}.x", b"%d" % number)
    async with consumer.worker(handle, concurrency=4) as slow:
        await holds(lambda: slow.report.running == 4)
        is_slow = False
        async with consumer.worker(handle, concurrency=4) as other:
            # Four are held and four wait there.
            await holds(lambda: other.report.acked >= 32)
            go_on.set()
            await holds(lambda: slow.report.acked + other.report.acked == 40)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("seed", range(6))
async def test_worker_that_is_ended_at_any_moment_leaves_nothing_behind(
    js: JetStream, stream_name: str, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - a seed that makes it the same again.
    consumer = await make_work(js, stream_name, 60)
    before = asyncio.all_tasks()
    seen = Counter[int]()

    async def handle(message: DeliveredMessage) -> None:
        await asyncio.sleep(chance.random() * 0.01)
        if chance.random() < 0.1:
            raise Retry(delay=0.01)
        seen[message.sequence] += 1

    for _ in range(8):
        run = asyncio.create_task(consumer.run(handle, concurrency=5, stop_timeout=0.005))
        await asyncio.sleep(chance.random() * 0.03)
        for _ in range(chance.randint(1, 3)):
            run.cancel()
            await asyncio.sleep(chance.choice([0, 0, 0.002]))
        with contextlib.suppress(asyncio.CancelledError):
            await run
        assert asyncio.all_tasks() == before
    async with consumer.worker(handle, concurrency=5):
        await settled(consumer, within_s=20)

    assert len(seen) == 60


ACCOUNT = """
accounts { A { jetstream: enabled, users: [
  { user: admin, password: x }
  { user: worker, password: x, permissions: {
    publish: ["$JS.API.CONSUMER.>", "$JS.API.STREAM.INFO.>", "$JS.ACK.>", "$DLQ.>"]
    subscribe: ["_INBOX.>"] } } ] } }
"""


RIGHTS = """
accounts { A { jetstream: enabled, users: [
  { user: admin, password: x }
  { user: mute, password: x, permissions: { publish: [%s], subscribe: ["_INBOX.>"] } }
  { user: whole, password: x, permissions: {
    publish: [%s, "$JS.ACK.%s.c.>"], subscribe: ["_INBOX.>"] } } ] } }
"""


def rights_without_ack(stream: str) -> str:
    """Return what the guide names, but for the acks."""
    names = ("STREAM.INFO.{}", "CONSUMER.INFO.{}.c", "CONSUMER.MSG.NEXT.{}.c")
    return ", ".join(f'"$JS.API.{name.format(stream)}"' for name in names)


@pytest.mark.parametrize("confirm", [False, True])
async def test_worker_whose_acks_are_refused_ends_with_the_error(
    stream_name: str, *, confirm: bool
) -> None:
    """It would handle the same messages for ever, and count each as acked."""
    few, told, seen = rights_without_ack(stream_name), list[str](), list[bytes]()
    with NatsServer(config=RIGHTS % (few, few, stream_name)) as server:
        urls = [server.url.replace("//", f"//{user}:x@") for user in ("admin", "mute", "whole")]
        async with connect(urls[0]) as admin:
            await make_work(admin, stream_name, 500, ack_wait=2)

        async def handle(message: DeliveredMessage) -> None:
            seen.append(message.data)
            await asyncio.sleep(0.05)

        async def open_consumer(js: JetStream) -> Consumer:
            return await (await js.streams.get(stream_name)).consumers.get("c")

        def note(error: BaseException, message: DeliveredMessage) -> None:
            del message
            told.append(type(error).__name__)

        async with connect(urls[1]) as js, asyncio.timeout(30):
            consumer = await open_consumer(js)
            worker = consumer.worker(handle, confirm=confirm, on_error=note)
            with pytest.raises(PermissionDeniedError, match=r"consumer c of .*JS\.ACK") as raised:
                async with worker:
                    await worker.wait_until_empty()
            assert f"$JS.ACK.{stream_name}.c.>" in raised.value.hint
            assert worker.report.failure is raised.value
            assert worker.report.unconfirmed >= 1
            assert worker.report.acked <= (0 if confirm else 50)
            # `in_progress` of messages that wait is refused as well.
            assert len(told) in (range(1, worker.report.unconfirmed + 1) if confirm else [0])
            assert set(told) <= {"PermissionDeniedError"}
            assert len(seen) < 100
            with pytest.raises(PermissionDeniedError):
                await consumer.run(handle, until_empty=True, confirm=confirm)

        async with connect(urls[2]) as js, asyncio.timeout(60):
            consumer = await open_consumer(js)
            await consumer.run(handle, until_empty=True, confirm=confirm, concurrency=50)
        assert set(seen) == {b"%d" % number for number in range(500)}


@pytest.mark.parametrize("how", ["drain", "stop"])
async def test_worker_that_ends_by_itself_tells_a_refused_ack(stream_name: str, how: str) -> None:
    few = rights_without_ack(stream_name)
    with NatsServer(config=RIGHTS % (few, few, stream_name)) as server:
        urls = [server.url.replace("//", f"//{user}:x@") for user in ("admin", "mute")]
        async with connect(urls[0]) as admin, connect(urls[1]) as js:
            await make_work(admin, stream_name, 3)
            consumer = await (await js.streams.get(stream_name)).consumers.get("c")

            is_free = asyncio.Event()

            async def handle(message: DeliveredMessage) -> None:
                del message
                await is_free.wait()

            async def work() -> Worker:
                async with consumer.worker(handle, concurrency=3) as worker:
                    await holds(lambda: worker.report.running == 3)
                    is_free.set()
                    await (worker.drain() if how == "drain" else worker.stop())
                return worker

            with pytest.raises(PermissionDeniedError):
                await work()


async def test_message_that_its_handler_has_settled_is_kept_alive_no_more(
    js: JetStream, stream_name: str
) -> None:
    """The server would ignore it, and refuse it where a user may answer each message once."""
    consumer = await make_work(js, stream_name, 1, ack_wait=0.3)
    async with js.core.subscribe(f"$JS.ACK.{stream_name}.>") as verdicts:

        async def handle(message: DeliveredMessage) -> None:
            await message.ack()
            await asyncio.sleep(0.6)

        async with consumer.worker(handle) as worker:
            await holds(lambda: worker.report.settled_by_handler == 1)
        await js.core.flush()
        assert verdicts.pending_count == 1
    assert worker.report.lost_leases == 0


async def test_worker_that_may_not_change_streams_stores_letters_in_one_that_is_there(
    stream_name: str,
) -> None:
    queue = f"{stream_name}_DLQ"
    with NatsServer(config=ACCOUNT) as server:
        urls = [server.url.replace("//", f"//{user}:x@") for user in ("admin", "worker")]
        async with connect(urls[0]) as admin, connect(urls[1]) as js:
            await make_work(admin, stream_name, 2)
            await admin.dead_letters.ensure(queue)
            consumer = await (await js.streams.get(stream_name)).consumers.get("c")

            async def handle(message: DeliveredMessage) -> None:
                raise Reject(message.subject)

            async with consumer.worker(handle, dead_letter=queue) as worker:
                await holds(lambda: worker.report.dead_lettered == 2)
            assert len(await letters_of(await admin.dead_letters.open(queue))) == 2
