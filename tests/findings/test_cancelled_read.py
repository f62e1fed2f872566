"""Finding 29: a read that is cancelled while it waits.

A cancelled `fetch` of nats-py 2.16 leaves its request on the server, which answers it: of the next
five messages one went to nobody, and another worker got it only when its time for an ack was over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.eventually import eventually_async
from tests.support.ordered import consumer_names, publish, take_sequences

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

CANCELS = 5
# What a reader keeps open; each expires after 30 s.
PULLS = 2
MESSAGES = 5


async def waiting_requests(js: JetStream, stream: str) -> int:
    """Return how many requests for messages the stream's only consumer has."""
    (name,) = await consumer_names(js, stream)
    answer = await js._api.read(  # pyright: ignore[reportPrivateUsage]
        f"$JS.API.CONSUMER.INFO.{stream}.{name}", None, what="consumer"
    )
    return answer.count("num_waiting")


@pytest.mark.finding(29)
async def test_cancelled_reads_leave_no_request_behind(
    js: JetStream,
    nats_py: Any,
    stream_name: str,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name])

    async with stream.ordered() as tail:
        waiting = asyncio.ensure_future(anext(tail))

        async def is_asked() -> bool:
            return await waiting_requests(js, stream_name) == PULLS

        await eventually_async(is_asked)
        for _ in range(CANCELS):
            waiting.cancel()
            await asyncio.wait([waiting])
            assert waiting.cancelled()
            waiting = asyncio.ensure_future(anext(tail))
            await asyncio.wait([waiting], timeout=0.01)
        waiting.cancel()
        await asyncio.wait([waiting])
        # The server takes requests up a moment after they have come.
        await js.core.flush()
        await eventually_async(is_asked, within_s=10)

        await publish(js, stream_name, *[b"x"] * MESSAGES)
        async with asyncio.timeout(30):
            found = await take_sequences(tail, MESSAGES)

    assert found == list(range(1, MESSAGES + 1))
    assert tail.report.resumes == 0
    record_testsuite_property(
        "finding 29: nats-py fetched", f"{await fetch_with_nats_py(nats_py, stream_name)} of 5"
    )


@pytest.mark.finding(29)
async def test_cancelled_range_leaves_the_messages_to_the_next(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name])
    await publish(js, stream_name, *[b"x"] * MESSAGES)

    async def read() -> list[int]:
        return [message.sequence async for message in stream.read()]

    for _ in range(CANCELS):
        reading = asyncio.ensure_future(read())
        await asyncio.wait([reading], timeout=0.001)
        reading.cancel()
        await asyncio.wait([reading])

    assert await read() == list(range(1, MESSAGES + 1))


async def fetch_with_nats_py(client: Any, stream: str) -> int:
    """Return how many of five messages another worker of nats-py gets after a cancelled fetch."""
    context = client.jetstream(timeout=30)
    subject = f"{stream}_peer"
    await context.add_stream(name=subject, subjects=[subject])
    subscription = await context.pull_subscribe(subject, durable="w")
    fetching = asyncio.ensure_future(subscription.fetch(1, timeout=30))

    async def is_asked() -> bool:
        return (await subscription.consumer_info()).num_waiting > 0

    await eventually_async(is_asked)
    fetching.cancel()
    await asyncio.wait([fetching])
    another = await context.pull_subscribe_bind("w", subject)
    for _ in range(MESSAGES):
        await context.publish(subject, b"x")
    messages = await another.fetch(MESSAGES, timeout=1)
    for each in (subscription, another):
        await each.unsubscribe()
    return len(messages)
