"""Handlers whose tasks are cancelled by others than the worker, such as to cancel one job."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from natsstream.consume.delivery.ack_kinds import Reject
from natsstream.errors import UsageError
from tests.support.eventually import holds
from tests.support.work import letters_of, make_work, pending_of

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.consume.delivery.delivered import DeliveredMessage

pytestmark = pytest.mark.asyncio


class Base(BaseException):
    """An error that no handler should raise."""


def this_task() -> asyncio.Task[Any]:
    """Return the task of a handler, as an application keeps it."""
    task = asyncio.current_task()
    assert task is not None
    return task


async def wait_in_first(message: DeliveredMessage) -> None:
    """Never end in the first delivery of a message."""
    if message.delivered == 1:
        await asyncio.Event().wait()


async def test_cancelled_handler_has_failed_and_its_slot_goes_on(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 6)
    begun = asyncio.Queue[asyncio.Task[Any]]()
    told: list[BaseException] = []

    async def handle(message: DeliveredMessage) -> None:
        if message.delivered == 1 and message.sequence <= 3:
            begun.put_nowait(this_task())
            await asyncio.Event().wait()

    worker = consumer.worker(
        handle, concurrency=2, backoff=[0.01], on_error=lambda error, _: told.append(error)
    )
    async with asyncio.timeout(30), worker:
        for _ in range(3):
            job = await begun.get()
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
        await worker.wait_until_empty()
        assert worker.is_running

    assert [type(each) for each in told] == [asyncio.CancelledError] * 3
    report = worker.report
    assert (report.received, report.acked, report.retried, report.failures) == (9, 6, 3, 3)
    assert (report.returned, report.failure) == (0, None)


async def test_run_until_empty_returns_after_a_cancel(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 3)

    async def handle(message: DeliveredMessage) -> None:
        if message.sequence == 1 and message.delivered == 1:
            this_task().cancel()
            await asyncio.Event().wait()

    async with asyncio.timeout(30):
        await consumer.run(handle, concurrency=1, backoff=[0.01], until_empty=True)

    assert await pending_of(consumer) == (0, 0)


async def test_cancel_that_comes_after_its_handler_harms_no_other(
    js: JetStream, stream_name: str
) -> None:
    """The slot waits for its next message, or the task is cancelled as the handler returns."""
    consumer = await make_work(js, stream_name, 1)
    jobs: list[asyncio.Task[Any]] = []

    async def handle(message: DeliveredMessage) -> None:
        jobs.append(this_task())
        if message.sequence == 2:
            this_task().cancel()
            return
        await asyncio.sleep(0)

    async with asyncio.timeout(30), consumer.worker(handle, concurrency=1) as worker:
        await holds(lambda: worker.report.acked == 1)
        jobs[0].cancel()
        await asyncio.wait(jobs)
        for _ in range(2):
            await js.publish(f"{stream_name}.x", b"")
        await worker.wait_until_empty()

    assert (worker.report.acked, worker.report.failures, worker.report.returned) == (3, 0, 0)


async def test_handler_that_catches_its_cancel_decides(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 2)
    queue = f"{stream_name}_DLQ"
    begun = asyncio.Queue[asyncio.Task[Any]]()

    async def handle(message: DeliveredMessage) -> None:
        begun.put_nowait(this_task())
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if message.sequence == 1:
                raise Reject("cancelled by its owner") from None

    worker = consumer.worker(handle, concurrency=1, dead_letter=queue)
    async with asyncio.timeout(30), worker:
        for _ in range(2):
            (await begun.get()).cancel()
        await worker.wait_until_empty()

    assert (worker.report.acked, worker.report.failures) == (1, 0)
    (letter,) = await letters_of(await js.dead_letters.open(queue))
    assert letter.error == "cancelled by its owner"


async def test_cancel_while_an_outcome_is_sent_loses_no_slot(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 2)
    telling = asyncio.Queue[asyncio.Task[Any]]()

    async def tell(error: BaseException, message: DeliveredMessage) -> None:
        del error, message
        telling.put_nowait(this_task())
        await asyncio.Event().wait()

    async def handle(message: DeliveredMessage) -> None:
        if message.delivered == 1:
            raise ValueError

    worker = consumer.worker(handle, concurrency=1, backoff=[0.01], on_error=tell)
    async with asyncio.timeout(30), worker:
        for _ in range(2):
            (await telling.get()).cancel()
        await worker.wait_until_empty()

    assert (worker.report.acked, worker.report.retried) == (2, 2)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("seed", range(6))
async def test_cancels_at_any_moment_lose_no_message_and_no_slot(
    js: JetStream, stream_name: str, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - a seed that makes it the same again.
    consumer = await make_work(js, stream_name, 60)
    seen, jobs = Counter[int](), set[asyncio.Task[Any]]()
    running = most = 0

    async def handle(message: DeliveredMessage) -> None:
        nonlocal running, most
        jobs.add(this_task())
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(chance.random() * 0.005)
        finally:
            running -= 1
        seen[message.sequence] += 1

    before = asyncio.all_tasks()
    worker = consumer.worker(handle, concurrency=3, backoff=[0.01], confirm=seed % 2 == 0)
    async with asyncio.timeout(60), worker:
        for _ in range(40):
            await asyncio.sleep(chance.random() * 0.005)
            for job in chance.sample(sorted(jobs, key=id), min(len(jobs), 2)):
                job.cancel()
        await worker.wait_until_empty()
        most = 0
        for _ in range(30):
            await js.publish(f"{stream_name}.x", b"")
        await worker.wait_until_empty()
        assert most == 3

    assert len(seen) == 90
    assert asyncio.all_tasks() == before


async def test_worker_whose_tasks_are_all_cancelled_ends_with_an_error(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A caller cancels all tasks of the event loop but its own; those of the test stay here."""
    consumer = await make_work(js, stream_name, 2)
    before = asyncio.all_tasks()
    worker = consumer.worker(wait_in_first, concurrency=2)

    async def work() -> None:
        async with worker:
            await holds(lambda: worker.report.running == 2)
            for task in asyncio.all_tasks() - before:
                task.cancel()
            await worker.wait()

    async with asyncio.timeout(30):
        with pytest.raises(UsageError, match="a task of the worker was cancelled"):
            await work()
        assert not worker.is_running
        # One that was given back may have come again before the worker ended.
        deliveries = (await consumer.info()).delivered.consumer_seq
        assert 2 <= worker.report.returned <= deliveries
        assert caplog.text.count("a task of the worker was cancelled") == 1
        assert asyncio.all_tasks() == before
        await consumer.run(wait_in_first, until_empty=True)


async def test_worker_of_which_one_task_is_cancelled_ends_with_an_error(
    js: JetStream, stream_name: str
) -> None:
    """A caller finds tasks by their names; the handlers of the others end as in every stop."""
    consumer = await make_work(js, stream_name, 2)
    before = asyncio.all_tasks()
    go_on = asyncio.Event()
    names: list[str] = []

    async def handle(message: DeliveredMessage) -> None:
        del message
        names.append(this_task().get_name())
        await go_on.wait()

    worker = consumer.worker(handle, concurrency=3)

    async def work() -> None:
        async with worker:
            await holds(lambda: len(names) == 2)
            for task in asyncio.all_tasks():
                if task.get_name() == names[0]:
                    task.cancel()
            try:
                await worker.wait()
            finally:
                go_on.set()

    async with asyncio.timeout(30):
        with pytest.raises(UsageError, match="a task of the worker was cancelled"):
            await work()
    assert worker.report.acked == 1
    # What was given back may have come again while the worker ended.
    deliveries = (await consumer.info()).delivered.consumer_seq
    assert 1 <= worker.report.returned <= deliveries - 1
    assert asyncio.all_tasks() == before


async def test_stop_that_cancels_a_handler_is_no_failure(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = await make_work(js, stream_name, 1)

    async with asyncio.timeout(30), consumer.worker(wait_in_first) as worker:
        await holds(lambda: worker.report.running == 1)
        await worker.stop(timeout=0)

    assert (worker.report.returned, worker.report.failure) == (1, None)
    assert [each.message for each in caplog.records if each.levelno >= logging.ERROR] == []


async def test_run_that_is_cancelled_with_all_tasks_ends_at_once(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 8)
    before = asyncio.all_tasks()
    begun = asyncio.Queue[None]()

    async def handle(message: DeliveredMessage) -> None:
        begun.put_nowait(None)
        await wait_in_first(message)

    run = asyncio.create_task(consumer.run(handle, concurrency=4, stop_timeout=120))
    async with asyncio.timeout(30):
        for _ in range(4):
            await begun.get()
        for task in asyncio.all_tasks() - before:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert asyncio.all_tasks() == before
    assert begun.empty()


async def test_tasks_that_are_cancelled_and_awaited_one_by_one_all_end(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 2)
    before = asyncio.all_tasks()

    async def handle(message: DeliveredMessage) -> None:
        del message
        await asyncio.Event().wait()

    worker = await consumer.worker(handle, concurrency=2).open()
    async with asyncio.timeout(30):
        await holds(lambda: worker.report.running == 2)
        for task in asyncio.all_tasks() - before:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert not worker.is_running
        await worker.stop()
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("kind", [GeneratorExit, Base])
async def test_of_several_failures_of_the_worker_asyncio_reports_none_once_one_is_raised(
    js: JetStream, stream_name: str, kind: type[BaseException]
) -> None:
    consumer = await make_work(js, stream_name, 2)
    go_on = asyncio.Event()
    reported: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context))

    async def handle(message: DeliveredMessage) -> None:
        if message.sequence == 2:
            await go_on.wait()
        raise kind

    async def work() -> None:
        async with consumer.worker(handle, concurrency=2) as worker:
            await holds(lambda: worker.report.received == 2)
            try:
                await worker.wait()
            finally:
                go_on.set()

    try:
        with pytest.raises(kind):
            await work()
        gc.collect()
        await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(None)
    assert reported == []
