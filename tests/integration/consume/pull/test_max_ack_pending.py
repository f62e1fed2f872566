"""A consumer with as many unacked messages as it allows: readers get the rest, and are told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.consume.delivery.events import LimitExceeded
from natsstream.consume.pull import ack_limit
from natsstream.errors import PermissionDeniedError
from natsstream.testing import NatsServer, server_binary

if TYPE_CHECKING:
    from natsstream import Consumer, JetStream
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
        assert (
            "has 5 messages without an ack, as many as max_ack_pending allows, and 7 more"
            in told[0]
        )
        await held[0].ack(confirm=True)
        assert [message.sequence for message in await consumer.fetch(3, no_wait=True)] == [6]


async def test_reader_that_waits_for_acks_is_told(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ack_limit, "STILL_S", 0.1)
    consumer = await consumer_of(js, stream_name)
    async with consumer.consume(heartbeat=0.2) as messages:
        held = [await anext(messages) for _ in range(LIMIT)]
        waiting = asyncio.ensure_future(anext(messages))
        async with asyncio.timeout(SOON_S):
            event = await anext(messages.events())
        assert isinstance(event, LimitExceeded)
        assert event.limit == "max_ack_pending"
        assert event.describe().startswith("has 5 messages without an ack")
        await held[0].ack()
        assert (await waiting).sequence == LIMIT + 1


@pytest.mark.parametrize("how", ["next", "fetch"])
async def test_calls_that_wait_for_acks_are_told_once(
    how: str,
    js: JetStream,
    stream_name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(ack_limit, "STILL_S", 0.5)
    monkeypatch.setattr(ack_limit, "AGAIN_S", 0.2)
    held = await (await consumer_of(js, stream_name)).fetch(LIMIT)
    consumer = await (await js.streams.get(stream_name)).consumers.get("c")
    async with asyncio.timeout(SOON_S):
        for _ in range(8):
            if how == "next":
                assert await consumer.next(timeout=0.2) is None
            else:
                assert await consumer.fetch(3, timeout=0.2) == []
        assert caplog.text.count("has 5 messages without an ack") == 1
        await held[0].ack(confirm=True)
        found = await consumer.next(timeout=SOON_S)
    assert found is not None
    assert found.sequence == LIMIT + 1


async def test_call_that_waits_long_for_acks_is_told_meanwhile(
    js: JetStream,
    stream_name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(ack_limit, "STILL_S", 0.5)
    held = await (await consumer_of(js, stream_name)).fetch(LIMIT)
    consumer = await (await js.streams.get(stream_name)).consumers.get("c")
    waiting = asyncio.ensure_future(consumer.next(timeout=SOON_S))
    async with asyncio.timeout(SOON_S):
        while "has 5 messages without an ack" not in caplog.text:
            await asyncio.sleep(0.01)
        await held[0].ack(confirm=True)
        found = await waiting
    assert found is not None
    assert found.sequence == LIMIT + 1


async def test_worker_that_starts_at_the_limit_is_told(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ack_limit, "STILL_S", 0.1)
    await (await consumer_of(js, stream_name)).fetch(LIMIT)
    consumer = await (await js.streams.get(stream_name)).consumers.get("c")
    async with consumer.consume(heartbeat=0.2) as messages, asyncio.timeout(SOON_S):
        waiting = asyncio.ensure_future(anext(messages))
        event = await anext(messages.events())
        waiting.cancel()
    assert isinstance(event, LimitExceeded)
    assert event.describe().startswith("has 5 messages without an ack")


async def test_idle_reader_asks_once_and_says_nothing(
    server: NatsServer,
    stream_name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(ack_limit, "STILL_S", 0.1)
    monkeypatch.setattr(ack_limit, "AGAIN_S", 0.1)
    async with connect(server.url) as js, connect(server.url) as other:
        stream = await js.streams.create(stream_name, subjects=[stream_name])
        consumer = await stream.consumers.create("c")
        subject = f"$JS.API.CONSUMER.INFO.{stream_name}.c"
        async with other.core.subscribe(subject) as requests:
            await other.core.flush()
            for _ in range(5):
                assert await consumer.next(timeout=0.2) is None
            await other.core.flush()
            assert await requests.next(timeout=SOON_S) is not None
            assert await requests.next(timeout=0.1) is None
    assert caplog.records == []


async def test_limit_that_stays_is_told_once(
    js: JetStream,
    stream_name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Unacked messages come again and again, and are no news."""
    monkeypatch.setattr(ack_limit, "STILL_S", 0.1)
    await consumer_of(js, stream_name)
    stream = await js.streams.get(stream_name)
    consumer = await stream.consumers.create("again", max_ack_pending=LIMIT, ack_wait=1)
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
