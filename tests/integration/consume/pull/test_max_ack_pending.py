"""A consumer with as many unacked messages as it allows: readers get the rest, and are told."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.consume.delivery import limit_watch
from natsstream.consume.delivery.events import LimitExceeded
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.errors import PermissionDeniedError, RequestTimeoutError
from natsstream.testing import NatsServer, server_binary
from tests.support.eventually import eventually_async
from tests.support.pulling import tuned, worker_of

if TYPE_CHECKING:
    from natsstream import Consumer, DeliveredMessage, JetStream
    from natsstream.api.consumer_info import ConsumerInfo
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio

LIMIT = 5
MESSAGES = 12
# Far above what a call takes that has understood, far below what one waits that has not.
SOON_S = 30
PATIENT_S = 90
FEW_RIGHTS = """
authorization { users: [
    { user: few, password: p, permissions: { publish: { deny: ["$JS.API.CONSUMER.INFO.>"] } } }
] }
"""


def with_user(url: str) -> str:
    return url.replace("nats://", "nats://few:p@")


async def consumer_of(js: JetStream, name: str, *, replicas: int = 1) -> Consumer:
    """Return a consumer of a stream with messages."""
    stream = await js.streams.create(name, subjects=[name], storage="memory", replicas=replicas)
    for number in range(MESSAGES):
        await js.publish(name, b"%d" % number)
    return await stream.consumers.create("c", max_ack_pending=LIMIT)


async def fetch_until_empty(consumer: Consumer) -> list[int]:
    """Fetch more than the limit, ack, and go on; returns how much each fetch brought."""
    counts: list[int] = []
    seen: list[int] = []
    async with asyncio.timeout(SOON_S):
        while batch := await consumer.fetch(50, no_wait=True):
            assert batch.error is None
            assert all(message.meta.delivered == 1 for message in batch)
            seen += [message.sequence for message in batch]
            counts.append(len(batch))
            for message in batch:
                await message.ack(confirm=True)
    assert seen == list(range(1, MESSAGES + 1))
    return counts


async def test_fetch_of_more_than_the_limit_returns_the_limit(
    server: NatsServer, stream_name: str
) -> None:
    async with connect(server.url, request_timeout=PATIENT_S) as js:
        consumer = await consumer_of(js, stream_name)
        assert await fetch_until_empty(consumer) == [5, 5, 2]


async def test_on_three_servers(nats_cluster: NatsCluster, stream_name: str) -> None:
    async with connect(nats_cluster.urls, request_timeout=PATIENT_S) as js:
        await fetch_until_empty(await consumer_of(js, stream_name, replicas=3))


@pytest.mark.needs_versions
@pytest.mark.parametrize("version", ["2.10", "2.12"])
async def test_on_an_older_server(version: str, stream_name: str) -> None:
    with NatsServer(binary=server_binary(version)) as old:
        async with connect(old.url, request_timeout=PATIENT_S) as js:
            await fetch_until_empty(await consumer_of(js, stream_name))


async def test_who_does_not_wait_gets_nothing_at_the_limit_and_one_line_in_the_log(
    server: NatsServer, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(server.url, request_timeout=PATIENT_S) as js, asyncio.timeout(SOON_S):
        consumer = await consumer_of(js, stream_name)
        held = await consumer.fetch(LIMIT)
        assert await consumer.fetch(3, no_wait=True) == []
        assert await consumer.fetch(3, timeout=0) == []
        assert await consumer.next(timeout=0) is None
        told = [record.getMessage() for record in caplog.records]
        assert len(told) == 1
        assert "c of stream" in told[0]
        assert "5 messages without an ack, as many as max_ack_pending allows, and 7 more" in told[0]
        await held[0].ack(confirm=True)
        assert [message.sequence for message in await consumer.fetch(3, no_wait=True)] == [6]


async def test_reader_that_waits_for_acks_is_told(js: JetStream, stream_name: str) -> None:
    consumer = tuned(await consumer_of(js, stream_name), quiet_s=0.1)
    async with consumer.consume(heartbeat=0.2) as messages:
        held = [await anext(messages) for _ in range(LIMIT)]
        waiting = asyncio.ensure_future(anext(messages))
        async with asyncio.timeout(SOON_S):
            event = await anext(messages.events())
        assert isinstance(event, LimitExceeded)
        assert event.limit == "max_ack_pending"
        assert event.describe().startswith("5 messages without an ack")
        await held[0].ack()
        assert (await waiting).sequence == LIMIT + 1


async def test_limit_that_stays_is_told_once(
    js: JetStream,
    stream_name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Unacked messages come again and again, and are no news."""
    monkeypatch.setattr(limit_watch, "EVERY_S", 0.1)
    await consumer_of(js, stream_name)
    stream = await js.streams.get(stream_name)
    again = await stream.consumers.create("again", max_ack_pending=LIMIT, ack_wait=1)
    consumer = tuned(again, quiet_s=0.1)
    async with consumer.consume(heartbeat=0.2) as messages, asyncio.timeout(SOON_S):
        for _ in range(4 * LIMIT):
            await anext(messages)
    assert caplog.text.count("without an ack") == 1


async def test_user_who_may_not_ask_is_told_so_after_the_time_for_an_answer(
    stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with NatsServer(config=FEW_RIGHTS) as own:
        async with connect(with_user(own.url), request_timeout=1) as js:
            consumer = await consumer_of(js, stream_name)
            await consumer.fetch(LIMIT)
            for _ in range(2):
                with pytest.raises(PermissionDeniedError, match=r"CONSUMER\.INFO"):
                    await consumer.fetch(3, no_wait=True)
    assert len(caplog.records) <= 3


# Readers that wait.

WAITS: list[tuple[str, dict[str, float]]] = [
    ("next", {"timeout": 0.3}),
    ("next", {}),
    ("fetch", {"n": 10, "timeout": 0.3}),
]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of each consumer whose info a reader asks for."""
    asked: list[str] = []
    info = ConsumerSource.info

    async def count(source: ConsumerSource, timeout: float | None = None) -> ConsumerInfo:
        asked.append(source.consumer)
        return await info(source, timeout)

    monkeypatch.setattr(ConsumerSource, "info", count)
    return asked


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines about the limit."""
    lines = [each.getMessage() for each in caplog.records if each.name == "natsstream.consumer"]
    return [line for line in lines if "as many as max_ack_pending allows" in line]


@pytest.mark.parametrize(("method", "options"), WAITS)
async def test_calls_that_wait_for_acks_log_it_once(
    js: JetStream,
    stream_name: str,
    caplog: pytest.LogCaptureFixture,
    looks: list[str],
    method: str,
    options: dict[str, float],
) -> None:
    """Their waits add up."""
    consumer = tuned(await consumer_of(js, stream_name), quiet_s=0.5)
    held = await consumer.fetch(LIMIT)

    async def reads() -> bool:
        assert not await getattr(consumer, method)(**options)
        return bool(told(caplog))

    await eventually_async(reads)
    await reads()

    assert len(told(caplog)) == len(looks) == 1
    assert "5 messages without an ack" in told(caplog)[0]
    await held[0].ack(confirm=True)
    found = await consumer.next()
    assert found is not None
    assert found.sequence == LIMIT + 1


async def test_call_that_waits_looks_after_five_seconds(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = await consumer_of(js, stream_name)
    await consumer.fetch(LIMIT)
    began = time.monotonic()
    async with asyncio.timeout(SOON_S):
        while not told(caplog):
            assert await consumer.next(timeout=2) is None
    assert time.monotonic() - began > 5


async def test_reader_that_begins_at_the_limit_is_told(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Messages of an earlier process are not acked."""
    consumer = await consumer_of(js, stream_name)
    held = await consumer.fetch(LIMIT)
    again = tuned(await (await js.streams.get(stream_name)).consumers.get("c"), quiet_s=0.3)
    async with again.consume(heartbeat=0.2) as messages:
        waiting = asyncio.ensure_future(anext(messages))
        async with asyncio.timeout(SOON_S):
            event = await anext(messages.events())
        assert isinstance(event, LimitExceeded)
        assert told(caplog) == [f"consumer c of stream {stream_name}: {event.describe()}"]
        await held[0].ack()
        assert (await waiting).sequence == LIMIT + 1


async def test_worker_that_begins_at_the_limit_is_told(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = await consumer_of(js, stream_name)
    await consumer.fetch(LIMIT)
    again = tuned(await (await js.streams.get(stream_name)).consumers.get("c"), quiet_s=0.3)

    async def handle(message: DeliveredMessage) -> None:
        raise AssertionError(message.sequence)

    async def is_told() -> bool:
        return bool(told(caplog))

    async with again.worker(handle, concurrency=3):
        await eventually_async(is_told)
    assert len(told(caplog)) == 1


async def test_wait_at_an_empty_stream_looks_once_a_minute_and_logs_nothing(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture, looks: list[str]
) -> None:
    consumer = tuned(await worker_of(js, stream_name), quiet_s=0.2)
    for _ in range(3):
        assert await consumer.next(timeout=0.3) is None
    async with consumer.consume(heartbeat=0.1) as messages:
        waiting = asyncio.ensure_future(anext(messages))
        await asyncio.wait({waiting}, timeout=0.8)
        waiting.cancel()
        assert looks == ["work"]
    assert caplog.records == []


async def test_readers_that_get_messages_never_look(
    js: JetStream, stream_name: str, looks: list[str]
) -> None:
    """Handling a message for long is no wait."""
    consumer = tuned(await worker_of(js, stream_name, 8), quiet_s=0.2)
    async with consumer.consume(max_messages=1, heartbeat=0.1) as messages:
        for _ in range(3):
            message = await anext(messages)
            await asyncio.sleep(0.5)
            await message.ack()
    for _ in range(4):
        waiting = asyncio.ensure_future(consumer.next(timeout=1))
        message = await waiting
        assert message is not None
        await message.ack()
    assert looks == []


@pytest.mark.parametrize("is_flow", [True, False])
async def test_reader_that_may_not_look_does_it_once(
    stream_name: str, monkeypatch: pytest.MonkeyPatch, looks: list[str], *, is_flow: bool
) -> None:
    monkeypatch.setattr(limit_watch, "EVERY_S", 0.1)
    with NatsServer(config=FEW_RIGHTS) as own:
        async with connect(with_user(own.url)) as js:
            consumer = tuned(await consumer_of(js, stream_name), quiet_s=0.1)
            held = await consumer.fetch(LIMIT)
            if is_flow:
                async with consumer.consume(heartbeat=0.1) as messages:
                    waiting = asyncio.ensure_future(anext(messages))
                    await asyncio.wait({waiting}, timeout=1.5)
                    await held[0].ack()
                    assert (await waiting).sequence == LIMIT + 1
            else:
                for _ in range(3):
                    assert await consumer.next(timeout=0.5) is None
    assert looks == ["c"]


@pytest.mark.parametrize("is_flow", [True, False])
async def test_look_without_an_answer_disturbs_no_reader(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch, *, is_flow: bool
) -> None:
    is_asked = asyncio.Event()

    async def hang(_: object, timeout: float) -> None:
        is_asked.set()
        await asyncio.sleep(timeout)
        raise RequestTimeoutError("no answer", retryable=True)

    monkeypatch.setattr(ConsumerSource, "info", hang)
    consumer = tuned(await consumer_of(js, stream_name), quiet_s=0.2)
    held = await consumer.fetch(LIMIT)
    tasks = asyncio.all_tasks()
    async with asyncio.timeout(SOON_S):
        if is_flow:
            async with consumer.consume(heartbeat=0.1) as messages:
                waiting = asyncio.ensure_future(anext(messages))
                await is_asked.wait()
                await held[0].ack()
                assert (await waiting).sequence == LIMIT + 1
        else:
            while not is_asked.is_set():
                assert await consumer.next(timeout=0.3) is None
            assert asyncio.all_tasks() <= tasks
            calling = asyncio.ensure_future(consumer.next(timeout=20))
            await held[0].ack()
            found = await calling
            assert found is not None
            assert found.sequence == LIMIT + 1
    assert asyncio.all_tasks() <= tasks


async def test_look_that_fails_ends_no_reader(
    js: JetStream,
    stream_name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr(ConsumerSource, "info", fail)
    consumer = tuned(await consumer_of(js, stream_name), quiet_s=0.1)
    held = await consumer.fetch(LIMIT)
    assert await consumer.next(timeout=0.4) is None
    assert f"the info of consumer c of stream {stream_name} could not be read" in caplog.text
    await held[0].ack()
    assert await consumer.next(timeout=20) is not None
