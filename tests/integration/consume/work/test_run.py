"""Workers: handlers that run side by side, and what becomes of their messages."""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.consume.delivery.ack_kinds import Reject, Retry
from natsstream.consume.delivery.events import LimitExceeded
from natsstream.consume.work import outcomes
from natsstream.consume.work import worker as worker_module
from natsstream.errors import (
    ConfigError,
    ConsumerDeletedError,
    LeaseLostError,
    RequestTimeoutError,
    StreamNotFoundError,
    UsageError,
)
from natsstream.testing import FaultProxy
from tests.support.eventually import eventually_async, holds
from tests.support.standstill import prove
from tests.support.work import letters_of, make_work, pending_of, settled

if TYPE_CHECKING:
    from natsstream import Consumer, JetStream
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.consume.work.worker import Worker
    from natsstream.testing import NatsNode, NatsServer

pytestmark = pytest.mark.asyncio


@pytest.mark.smoke
@pytest.mark.proves("1c", "consume(callback)")
async def test_handled_messages_are_acked(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 100)
    seen = Counter[bytes]()

    async def handle(message: DeliveredMessage) -> None:
        seen[message.data] += 1

    async with consumer.worker(handle) as worker:
        await holds(lambda: worker.report.acked == 100)

    assert seen == Counter(b"%d" % number for number in range(100))
    await settled(consumer)
    assert not worker.is_running


@pytest.mark.parametrize("options", [{"max_attempts": 1}, {"max_attempts": 1, "prefetch": 50}])
async def test_stop_leaves_no_message_at_its_last_attempt_unseen(
    js: JetStream, stream_name: str, options: dict[str, Any]
) -> None:
    """As at each update of a service: the next worker would take it for one attempt too many."""
    consumer = await make_work(js, stream_name, 100)
    seen = Counter[bytes]()

    async def handle(message: DeliveredMessage) -> None:
        seen[message.data] += 1
        await asyncio.sleep(0)

    for share in range(1, 5):
        async with consumer.worker(handle, concurrency=4, **options) as worker:
            await holds(lambda share=share: seen.total() >= 20 * share)
            await worker.stop()
    await consumer.run(handle, until_empty=True)

    assert seen == Counter(b"%d" % number for number in range(100))


async def test_stop_waits_for_a_server_that_stands_still(fresh_server: NatsServer) -> None:
    """It counts messages as delivered that a reader no longer waits for."""
    async with connect(fresh_server.url) as js:
        consumer = await make_work(js, "S", 1_000)
        seen = Counter[bytes]()

        async def handle(message: DeliveredMessage) -> None:
            seen[message.data] += 1
            await asyncio.sleep(0)

        for share in range(1, 13):
            async with consumer.worker(
                handle, concurrency=4, max_attempts=1, prefetch=50
            ) as worker:
                await holds(lambda share=share: seen.total() >= 60 * share)
                fresh_server.pause()
                asyncio.get_running_loop().call_later(0.1, fresh_server.resume)
                await worker.stop()
        await consumer.run(handle, until_empty=True)

    assert seen == Counter(b"%d" % number for number in range(1_000))


async def test_stop_counts_what_it_gives_back(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 20)
    is_free = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        del message
        await is_free.wait()

    async with consumer.worker(handle, concurrency=1, prefetch=10, stop_timeout=30) as worker:
        await arrived(consumer, 10)
        stopping = asyncio.create_task(worker.stop())
        others: set[int] = set()
        while len(others) < 19:  # They get the rest while the handler still runs.
            found = await consumer.fetch(19 - len(others), timeout=30)
            others |= {message.sequence for message in found}
        is_free.set()
        await stopping
    assert (worker.report.acked, worker.report.returned) == (1, 9)


@pytest.mark.parametrize("options", [{"prefetch": 200}, {"prefetch": 200, "max_attempts": 50}, {}])
async def test_stop_gives_each_message_back_once(
    js: JetStream, stream_name: str, options: dict[str, Any]
) -> None:
    """While messages arrive, idle tasks would take again what they have just given back."""
    consumer = await make_work(js, stream_name, 0, retention="workqueue")
    first: dict[int, int] = {}

    async def handle(message: DeliveredMessage) -> None:
        first.setdefault(message.sequence, message.delivered)

    async def publish() -> None:
        while True:
            await js.publish(f"{stream_name}.x", b"")
            await asyncio.sleep(0.004)

    publishing = asyncio.create_task(publish())
    given_back = 0
    for _ in range(3):
        async with consumer.worker(handle, concurrency=8, **options) as worker:
            await holds(lambda worker=worker: worker.report.received >= 20)
            await worker.stop()
        given_back += worker.report.returned
    publishing.cancel()
    await asyncio.wait([publishing])
    await consumer.run(handle, until_empty=True)
    info = await consumer.info()
    # One in flight when a worker ends comes again as well, and no worker knows it.
    assert max(first.values()) <= 1 + 3
    assert info.delivered.consumer_seq <= len(first) + given_back + 3 * 8


async def test_stop_keeps_messages_at_their_last_attempt_in_order(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 10)
    seen: list[int] = []
    is_free = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        seen.append(message.sequence)
        await is_free.wait()

    async with consumer.worker(handle, concurrency=1, prefetch=10, max_attempts=1) as worker:
        await arrived(consumer, 10)
        stopping = asyncio.create_task(worker.stop())
        await holds(lambda: worker._is_ending)  # pyright: ignore[reportPrivateUsage]
        is_free.set()
        await stopping
    assert seen == [*range(1, 11)]
    assert (worker.report.acked, worker.report.returned) == (10, 0)


async def test_stop_during_a_drain_leaves_no_message_at_its_last_attempt_unseen(
    js: JetStream, stream_name: str
) -> None:
    """The handler ends with the answer that the drain waits for as well."""
    for number in range(10):
        consumer = await make_work(js, f"{stream_name}_{number}", 4, max_deliver=1)
        begun = asyncio.Event()
        go_on = asyncio.Event()

        async def handle(
            message: DeliveredMessage, begun: asyncio.Event = begun, go_on: asyncio.Event = go_on
        ) -> None:
            del message
            begun.set()
            await go_on.wait()
            await js.core.flush()

        async with consumer.worker(handle, concurrency=1, prefetch=4) as worker:
            await begun.wait()
            await arrived(consumer, 4)
            go_on.set()
            await asyncio.gather(worker.drain(), worker.stop())
        assert (worker.report.acked, worker.report.returned) == (4, 0)


@pytest.mark.parametrize("way", ["timeout", "cancel", "handler", "twice"])
async def test_all_that_an_end_gives_back_is_counted(
    js: JetStream, stream_name: str, way: str
) -> None:
    consumer = await make_work(js, stream_name, 20)
    begun: list[int] = []
    is_free = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        begun.append(message.sequence)
        if way == "handler" and len(begun) == 1:
            await arrived(consumer, 20)
            await worker.stop()
        else:
            await is_free.wait()

    worker = consumer.worker(handle, concurrency=2, prefetch=20)
    async with worker:
        if way != "handler":
            await arrived(consumer, 20)
        await holds(lambda: len(begun) == 2)
        if way == "timeout":
            await worker.stop(timeout=0)
        elif way == "cancel":
            stopping = asyncio.create_task(worker.stop())
            await asyncio.sleep(0)
            stopping.cancel()
            await asyncio.wait([stopping])
        elif way == "twice":
            stopping = asyncio.gather(worker.stop(), worker.stop())
            asyncio.get_running_loop().call_later(0.1, is_free.set)
            await stopping
        else:
            asyncio.get_running_loop().call_later(0.1, is_free.set)
            await worker.wait()
    report = worker.report
    assert report.acked + report.returned == 20
    assert report.acked == (0 if way in ("timeout", "cancel") else 2)


async def test_reader_without_messages_outlives_a_limit_that_is_lowered_again(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.*"])
    consumer = await stream.consumers.create("c", max_expires=1, max_batch=90)

    async def is_asked() -> bool:
        return (await consumer.info()).num_waiting > 0

    async with consumer.consume(max_messages=100) as messages:
        reading = asyncio.ensure_future(anext(messages))
        told = (event async for event in messages.events() if isinstance(event, LimitExceeded))
        for limit in (20, 10):
            await eventually_async(is_asked)
            await stream.consumers.update("c", max_batch=limit)
            assert (await anext(told)).limit == "max_batch"
        await js.publish(f"{stream_name}.x", b"")
        await (await reading).ack()


async def arrived(consumer: Consumer, count: int) -> None:
    """Wait until so many messages of a consumer are out."""

    async def are_out() -> bool:
        return (await consumer.info()).num_ack_pending == count

    await eventually_async(are_out)


async def test_worker_outlives_limits_that_are_lowered_while_messages_arrive(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.*"])

    async def work(number: int) -> int:
        subject = f"{stream_name}.{number}"
        consumer = await stream.consumers.create(f"c{number}", filters=[subject])
        seen: list[int] = []

        async def handle(message: DeliveredMessage) -> None:
            seen.append(message.sequence)

        async with consumer.worker(handle) as worker:
            await js.publish(subject, b"")
            await holds(lambda: worker.report.acked == 1)
            await stream.consumers.update(consumer.name, max_batch=1 + number % 3)
            for _ in range(59):
                await js.publish(subject, b"")
            await holds(lambda: worker.report.acked == 60 or worker.report.failure)
        return len(set(seen))

    assert await asyncio.gather(*map(work, range(12))) == [60] * 12


async def test_run_until_empty_ends_behind_redeliveries_and_other_workers(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 50)
    seen = Counter[bytes]()
    is_free = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        seen[message.data] += 1
        if message.data == b"7" and message.meta.delivered == 1:
            raise Retry(delay=0.3)

    async def slow(message: DeliveredMessage) -> None:
        del message
        await is_free.wait()

    async with consumer.worker(slow, concurrency=1, prefetch=1) as other:
        await holds(lambda: other.is_running)
        running = asyncio.create_task(consumer.run(handle, until_empty=True))
        await holds(lambda: seen.total() >= 48)
        assert not (await asyncio.wait([running], timeout=0.5))[0]
        is_free.set()
        await running
    assert await stream_lag(js, stream_name) == 0
    assert seen[b"7"] in (0, 2)
    # Nothing is left at the beginning either.
    await consumer.run(handle, until_empty=True)


async def test_run_until_empty_raises_what_ends_it(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It asks all the time, so that it hears of the missing consumer before its readers do.
    monkeypatch.setattr(worker_module, "_EMPTY_PAUSE_MIN_S", 0)
    consumer = await make_work(js, stream_name, 5)

    async def handle(message: DeliveredMessage) -> None:
        await (await js.streams.get(message.meta.stream)).consumers.delete(consumer.name)

    with pytest.raises(ConsumerDeletedError):
        await consumer.run(handle, until_empty=True)


async def stream_lag(js: JetStream, stream_name: str) -> int:
    """Return what all consumers of a stream have not handled."""
    return sum((await (await js.streams.get(stream_name)).consumers.lags()).values())


async def test_lags_of_all_consumers_come_with_one_call(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 8)
    stream = await js.streams.get(stream_name)
    idle = await stream.consumers.create("idle", deliver_policy="new")
    audit = await stream.consumers.create("audit", ack_policy="none")
    await audit.fetch(3)
    taken = await consumer.fetch(5)
    for message in taken[:2]:
        await message.ack(confirm=True)
    lags = await stream.consumers.lags()
    assert [*lags.items()] == [(consumer.name, 6), (audit.name, 5), (idle.name, 0)]


@pytest.mark.proves("1c", "consume(callback)")
async def test_never_more_handlers_run_than_were_asked_for(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 60)
    running, most = 0, 0
    go_on = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        nonlocal running, most
        del message
        running += 1
        most = max(most, running)
        await go_on.wait()
        await asyncio.sleep(0.005)
        running -= 1

    async with consumer.worker(handle, concurrency=7) as worker:
        await holds(lambda: running == 7)
        go_on.set()
        await holds(lambda: worker.report.acked == 60)

    assert most == 7


async def test_failed_messages_come_again_after_the_backoff(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 1)
    times: list[float] = []
    told: list[BaseException] = []

    async def handle(message: DeliveredMessage) -> None:
        times.append(asyncio.get_running_loop().time())
        if message.delivered < 3:
            raise ValueError(message.delivered)

    async with consumer.worker(
        handle, backoff=[0.05, 0.3], on_error=lambda error, _: told.append(error)
    ) as worker:
        await holds(lambda: worker.report.acked == 1)

    assert times[1] - times[0] >= 0.05
    assert times[2] - times[1] >= 0.3
    assert [type(error) for error in told] == [ValueError, ValueError]
    assert worker.report.retried == worker.report.failures == 2


@pytest.mark.parametrize("error", [ValueError("boom"), Retry(delay=60, reason="boom")])
async def test_message_that_fails_at_its_last_delivery_is_told_and_kept(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    consumer = await make_work(js, stream_name, 1, retention="workqueue", max_deliver=1)
    letters = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)

    async def handle(_: DeliveredMessage) -> None:
        raise error

    async with consumer.worker(handle) as worker:
        await holds(lambda: worker.report.given_up == 1)

        async def letter() -> Any:
            return await letters_of(letters)

        await eventually_async(letter)

    assert (worker.report.retried, worker.report.terminated) == (0, 0)
    told = [each.getMessage() for each in caplog.records if "attempt 1" in each.getMessage()]
    assert len(told) == 1
    assert "boom; that was the last delivery, the consumer's max_deliver" in told[0]
    kept = (await letters_of(letters))[0]
    assert (kept.reason, kept.is_gone) == ("max_deliveries", False)


async def test_verdicts_that_a_handler_raises_are_kept_to(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 3)
    seen = Counter[bytes]()

    async def handle(message: DeliveredMessage) -> None:
        seen[message.data] += 1
        if message.data == b"0":
            raise Reject("never")
        if message.data == b"1" and message.delivered == 1:
            raise Retry(delay=0.01)
        if message.data == b"2":
            await message.term(reason="by hand")

    async with consumer.worker(handle) as worker:
        await holds(lambda: worker.report.acked == 1)

    assert seen == {b"0": 1, b"1": 2, b"2": 1}
    assert worker.report.terminated == worker.report.settled_by_handler == 1
    assert worker.report.failures == 0
    await settled(consumer)


async def test_handlers_own_cancelled_error_is_a_failure_of_the_message(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 2)

    async def handle(message: DeliveredMessage) -> None:
        if message.delivered == 1:
            raise asyncio.CancelledError

    async with consumer.worker(handle, concurrency=1, backoff=[0.01]) as worker:
        await holds(lambda: worker.report.acked == 2)

    assert worker.report.failures == 2


async def test_on_error_that_fails_ends_nothing(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 3)

    async def handle(message: DeliveredMessage) -> None:
        if message.delivered == 1:
            raise ValueError

    async def on_error(error: BaseException, message: DeliveredMessage) -> None:
        raise RuntimeError(error, message)

    async with consumer.worker(handle, backoff=[0.01], on_error=on_error) as worker:
        await holds(lambda: worker.report.acked == 3)


async def test_keepalive_holds_what_is_handled_and_what_waits(
    js: JetStream, stream_name: str
) -> None:
    # Each handler takes more than the ack_wait, and the last message waits for two of them.
    async def keep(lease_s: float) -> None:
        consumer = await make_work(js, f"{stream_name}_{lease_s:.0f}", 3, ack_wait=lease_s)
        seen: list[tuple[bytes, int]] = []

        async def handle(message: DeliveredMessage) -> None:
            seen.append((message.data, message.delivered))
            await asyncio.sleep(1.3 * lease_s)

        async with consumer.worker(handle, concurrency=1, prefetch=3) as worker:
            await holds(lambda: worker.report.acked == 3)

        assert seen == [(b"0", 1), (b"1", 1), (b"2", 1)]
        assert worker.report.lost_leases == 0

    await prove(js, keep)


async def test_lost_lease_is_told(server: NatsNode, stream_name: str) -> None:
    told: list[BaseException] = []
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as near, connect(proxy.url) as js:
            await make_work(near, stream_name, 1, ack_wait=0.4)
            consumer = await (await js.streams.get(stream_name)).consumers.get("c")
            begun, go_on = asyncio.Event(), asyncio.Event()

            async def handle(message: DeliveredMessage) -> None:
                begun.set()
                if message.delivered == 1:
                    await go_on.wait()

            async with consumer.worker(
                handle, concurrency=1, on_error=lambda error, _: told.append(error)
            ) as worker:
                await begun.wait()
                proxy.cut()
                await asyncio.sleep(0.8)  # Twice the lease, which nobody can keep up.
                go_on.set()
                await holds(lambda: worker.report.lost_leases >= 1)
                proxy.heal()
                await holds(lambda: js.is_connected)

    assert any(isinstance(error, LeaseLostError) for error in told)


async def test_stop_lets_handlers_finish_and_gives_the_rest_back(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 20)
    begun = 0
    go_on = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        nonlocal begun
        del message
        begun += 1
        await go_on.wait()

    async with consumer.worker(handle, concurrency=2, prefetch=10) as worker:
        await holds(lambda: begun == 2)
        stopping = asyncio.create_task(worker.stop())
        await holds(lambda: worker.report.running == 2)
        go_on.set()
        await stopping

        assert worker.report.acked == begun == 2
        assert not worker.is_running

    # Nothing waits for ack_wait: another worker gets all of it at once.
    async with consumer.worker(handle) as other:
        await holds(lambda: other.report.acked == 18)


async def test_handlers_that_outlast_the_deadline_are_cancelled_and_given_back(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 1)
    ends: list[str] = []

    async def handle(message: DeliveredMessage) -> None:
        try:
            await asyncio.sleep(60 if message.delivered == 1 else 0)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        ends.append("done")

    async with consumer.worker(handle) as worker:
        await holds(lambda: worker.report.running == 1)
        await worker.stop(timeout=0.05)
        assert ends == ["cancelled"]
        assert worker.report.returned == 1
    async with consumer.worker(handle) as other:
        await holds(lambda: other.report.acked == 1)


def waiting_of(worker: Worker) -> int:
    """Return how many messages wait for a free hand."""
    incoming = worker._incoming  # pyright: ignore[reportPrivateUsage] - what it holds.
    return len(incoming.buffered()) if incoming is not None else 0


@pytest.mark.parametrize("verb", ["stop", "drain"])
async def test_handler_that_ends_its_worker_is_not_waited_for(
    js: JetStream, stream_name: str, verb: str
) -> None:
    consumer = await make_work(js, stream_name, 3)

    async def handle(message: DeliveredMessage) -> None:
        if message.sequence == 2:
            await getattr(worker, verb)()

    async with (
        asyncio.timeout(60),
        consumer.worker(handle, concurrency=1, prefetch=1, stop_timeout=120) as worker,
    ):
        await worker.wait()

    assert worker.report.acked == 2
    assert worker.report.returned == 0


@pytest.mark.parametrize("verb", ["stop", "drain"])
async def test_handler_that_ends_its_worker_gives_the_others_their_time(
    js: JetStream, stream_name: str, verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "natsstream.worker")
    consumer = await make_work(js, stream_name, 2)
    hangs = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        if message.sequence == 1:
            hangs.set()
            await asyncio.Event().wait()
        await hangs.wait()
        await getattr(worker, verb)(timeout=0.2)

    worker = await consumer.worker(handle, concurrency=2, stop_timeout=120).open()
    async with asyncio.timeout(60):
        await worker.wait()

    assert (worker.report.acked, worker.report.returned) == (1, 1)
    assert not worker.is_running
    assert "handlers did not end within 0.2 s" in caplog.text
    assert caplog.messages[-1].endswith(" ended")


async def test_task_of_a_handler_that_has_ended_waits_for_the_others(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 2)
    is_handled, go_on = asyncio.Event(), asyncio.Event()
    begun: list[asyncio.Task[None]] = []

    async def stop_later() -> None:
        await is_handled.wait()
        await worker.stop()

    async def handle(message: DeliveredMessage) -> None:
        if message.sequence == 1:
            begun.append(asyncio.create_task(stop_later()))
            return
        is_handled.set()
        await go_on.wait()

    async with asyncio.timeout(60), consumer.worker(handle, concurrency=1) as worker:
        await is_handled.wait()
        await asyncio.wait(begun, timeout=0.3)
        assert not begun[0].done()
        go_on.set()
        await begun[0]
        assert worker.report.acked == 2


async def test_handler_that_ignores_its_end_is_waited_for_once(
    js: JetStream,
    stream_name: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_module, "_CANCEL_WAIT_S", 0.05)
    consumer = await make_work(js, stream_name, 1)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        del message
        begun.set()
        while not go_on.is_set():
            with suppress(asyncio.CancelledError):
                await go_on.wait()

    async with consumer.worker(handle, concurrency=1, stop_timeout=0.5) as worker:
        await begun.wait()
        await worker.stop(timeout=0)
    go_on.set()

    assert caplog.text.count("handlers did not end within") == 1
    assert "1 handler that does not end" in caplog.text


async def test_drain_handles_what_is_here(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 10)
    go_on = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        del message
        await go_on.wait()

    async with consumer.worker(handle, concurrency=1, prefetch=10) as worker:
        await holds(lambda: worker.report.running == 1)
        await holds(lambda: waiting_of(worker))
        draining = asyncio.create_task(worker.drain())
        await asyncio.sleep(0)
        go_on.set()
        await draining

        assert worker.report.acked == worker.report.received >= 2
        assert worker.report.returned == 0


async def test_run_that_is_cancelled_lets_handlers_finish(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 1)
    begun, done = asyncio.Event(), False

    async def handle(message: DeliveredMessage) -> None:
        nonlocal done
        del message
        begun.set()
        await asyncio.sleep(0.1)
        done = True

    running = asyncio.create_task(consumer.run(handle))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert done
    await settled(consumer)


async def test_run_that_is_cancelled_twice_leaves_no_handler(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 8)
    running = 0

    async def handle(message: DeliveredMessage) -> None:
        nonlocal running
        del message
        running += 1
        try:
            await asyncio.sleep(60)
        finally:
            running -= 1

    before = asyncio.all_tasks()
    run = asyncio.create_task(consumer.run(handle, concurrency=4))
    await holds(lambda: running == 4)
    run.cancel()
    await asyncio.sleep(0.05)
    assert running == 4
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert running == 0
    assert asyncio.all_tasks() == before

    async def take(message: DeliveredMessage) -> None:
        del message

    async with consumer.worker(take) as other:
        await holds(lambda: other.report.acked == 8)


async def test_deleted_consumer_ends_the_run_after_its_handlers(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 1)
    begun, done = asyncio.Event(), False

    async def handle(message: DeliveredMessage) -> None:
        nonlocal done
        del message
        begun.set()
        await asyncio.sleep(0.2)
        done = True

    run = asyncio.create_task(consumer.run(handle))
    await begun.wait()
    await (await js.streams.get(stream_name)).consumers.delete("c")
    with pytest.raises(ConsumerDeletedError):
        await run

    assert done


async def test_confirmed_acks_are_stored(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 20)

    async def handle(message: DeliveredMessage) -> None:
        del message

    async with consumer.worker(handle, confirm=True) as worker:
        await holds(lambda: worker.report.acked == 20)
        assert await pending_of(consumer) == (0, 0)


async def test_message_that_kills_its_workers_becomes_a_letter(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 1)
    for _ in range(2):  # Taken, and nothing is said of it but what comes of a crash: it is back.
        message = await consumer.next(timeout=30)
        assert message is not None
        await message.nak(confirm=True)
    handled = 0

    async def handle(message: DeliveredMessage) -> None:
        nonlocal handled
        del message
        handled += 1

    queue_name = f"{stream_name}_DLQ"
    async with consumer.worker(handle, dead_letter=queue_name, max_attempts=2) as worker:
        await holds(lambda: worker.report.dead_lettered == 1)

    (letter,) = await letters_of(await js.dead_letters.open(queue_name))
    assert (letter.reason, letter.deliveries, handled) == ("abandoned", 3, 0)


async def test_letter_that_can_not_be_stored_keeps_its_message(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 1)
    queue_name = f"{stream_name}_DLQ"
    told: list[BaseException] = []

    async def handle(message: DeliveredMessage) -> None:
        raise Reject(message.subject)

    await js.dead_letters.ensure(queue_name)
    await js.streams.update(queue_name, max_msg_size=10)
    async with consumer.worker(
        handle, dead_letter=queue_name, on_error=lambda error, _: told.append(error)
    ) as worker:
        await holds(lambda: worker.report.unstored >= 1)
        assert worker.report.dead_lettered == 0
        await js.streams.update(queue_name, max_msg_size=-1)
        await holds(lambda: worker.report.dead_lettered == 1)

    assert len(await letters_of(await js.dead_letters.open(queue_name))) == 1
    assert not all(isinstance(error, Reject) for error in told)


async def test_what_can_not_work_is_refused_before_a_message_is_taken(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 1)

    async def handle(message: DeliveredMessage) -> None:
        del message

    def plain(message: DeliveredMessage) -> None:
        del message

    with pytest.raises(ConfigError):
        await consumer.run(plain)  # pyright: ignore[reportArgumentType] - on purpose.
    with pytest.raises(ConfigError):
        await consumer.run(functools.partial(handle), concurrency=0)
    told: Any = "yes"
    with pytest.raises(ConfigError, match="until_empty is 'yes'"):
        await consumer.run(handle, until_empty=told)
    with pytest.raises(ConfigError, match="stream that it reads"):
        await consumer.run(handle, dead_letter=stream_name)
    other = f"{stream_name}_OTHER"
    await js.streams.create(other, subjects=[f"{other}.>"])
    with pytest.raises(ConfigError, match="no dead-letter stream"):
        await consumer.run(handle, dead_letter=other)
    with pytest.raises(StreamNotFoundError):
        await js.dead_letters.open("NO_SUCH_QUEUE")

    async def is_untouched() -> bool:
        return await pending_of(consumer) == (0, 1)

    await eventually_async(is_untouched)


async def test_two_workers_share_the_messages(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 200)
    seen = Counter[bytes]()

    both = asyncio.Event()

    async def handle(message: DeliveredMessage) -> None:
        seen[message.data] += 1
        await both.wait()
        await asyncio.sleep(0.001)

    async with (
        consumer.worker(handle, concurrency=4) as one,
        consumer.worker(handle, concurrency=4) as two,
    ):
        await holds(lambda: one.report.running and two.report.running)
        both.set()
        await holds(lambda: one.report.acked + two.report.acked == 200)

    assert len(seen) == 200
    assert set(seen.values()) == {1}
    assert min(one.report.acked, two.report.acked) >= 20


async def test_run_goes_on_over_a_break_of_the_connection(
    server: NatsNode, stream_name: str
) -> None:
    seen = Counter[bytes]()
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as near, connect(proxy.url) as js:
            await make_work(near, stream_name, 300, ack_wait=1)
            consumer = await (await js.streams.get(stream_name)).consumers.get("c")

            async def handle(message: DeliveredMessage) -> None:
                seen[message.data] += 1
                await asyncio.sleep(0.002)

            async with consumer.worker(handle, concurrency=8) as worker:
                await holds(lambda: worker.report.acked >= 50)
                proxy.cut()
                proxy.heal()
                await holds(lambda: len(seen) == 300)
                await holds(lambda: worker.report.acked >= 300)


@pytest.mark.parametrize("call", ["wait", "wait_until_empty", "stop", "drain"])
async def test_worker_that_was_never_opened_says_so(
    js: JetStream, stream_name: str, call: str
) -> None:
    consumer = await make_work(js, stream_name, 1)

    async def handle(_: DeliveredMessage) -> None: ...

    worker = consumer.worker(handle)
    with pytest.raises(UsageError, match="not open") as told:
        await getattr(worker, call)()
    assert "async with" in told.value.hint


async def test_on_error_ends_the_worker_of_a_message_that_is_abandoned(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs in the task that the end would wait for."""
    consumer = await make_work(js, stream_name, 1, ack_wait=0.3)
    await consumer.next()  # Its only attempt; it is never acked.
    told: list[BaseException] = []

    async def refuse(*_: object, **__: object) -> bool:
        raise RequestTimeoutError("no letter is stored")

    async def stop(error: BaseException, _: DeliveredMessage) -> None:
        await worker.stop()
        told.append(error)

    async def handle(message: DeliveredMessage) -> None:
        raise AssertionError(message)

    monkeypatch.setattr(outcomes, "store_letter", refuse)
    async with asyncio.timeout(20):
        async with consumer.worker(
            handle, max_attempts=1, dead_letter=f"{stream_name}_DLQ", on_error=stop
        ) as worker:
            await worker.wait()

    assert [str(error) for error in told] == ["no letter is stored"]
