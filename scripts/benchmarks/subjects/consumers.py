"""Consumers: `python -m scripts.benchmarks.subjects.consumers NAME URL STREAM COUNT`.

Each has a consumer of its own on the same stream. Where messages are acknowledged, the server has
taken every ack before the watch is stopped.

Law: every consumer looks at subject, sequence, time and data of each message and sums them as
`streams.checksum_of` does. Some clients parse a field only when it is read.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Literal, cast

from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

# Deliveries that may be unacknowledged, and the windows of natsstream and of nats.js.
_ACKS_PENDING_MAX = 20_000
_WINDOW = 4_096
_WORKERS = 16
_IDLE_S = 60


async def consume(url: str, stream: str, count: int) -> Figure:
    """Ours, `consume` with an ack for each message."""
    return await _consume(url, stream, count, "explicit")


async def consume_without_acks(url: str, stream: str, count: int) -> Figure:
    """Ours, `consume` of a consumer without acks."""
    return await _consume(url, stream, count, "none")


async def _consume(
    url: str, stream: str, count: int, policy: Literal["explicit", "none"]
) -> Figure:
    import natsstream as ns

    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        consumer = await source.consumers.create(
            ack_policy=policy,
            max_ack_pending=_ACKS_PENDING_MAX if policy == "explicit" else None,
            inactive_threshold=_IDLE_S,
            memory_storage=True,
        )
        watch, seen, checksum = Stopwatch(), 0, 0
        watch.start()
        async with consumer.consume(max_messages=_WINDOW, stop_after=count) as messages:
            async for message in messages:
                checksum += message.sequence + len(message.subject) + len(message.data)
                checksum += message.time_ns > 0
                if policy == "explicit":
                    await message.ack()
                seen += 1
        await js.core.flush()
        return watch.stop(seen, checksum=checksum)


async def run(url: str, stream: str, count: int) -> Figure:
    """Ours, `run` with 16 handlers that only look at the message; each message is acked."""
    import natsstream as ns

    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        consumer = await source.consumers.create(
            max_ack_pending=_ACKS_PENDING_MAX, inactive_threshold=_IDLE_S, memory_storage=True
        )
        is_done, seen, checksum = asyncio.Event(), 0, 0

        async def handle(message: ns.DeliveredMessage) -> None:
            nonlocal seen, checksum
            checksum += message.sequence + len(message.subject) + len(message.data)
            checksum += message.time_ns > 0
            seen += 1
            if seen == count:
                is_done.set()

        watch = Stopwatch()
        watch.start()
        async with consumer.worker(handle, concurrency=_WORKERS):
            await is_done.wait()
        await js.core.flush()
        return watch.stop(seen, checksum=checksum)


async def nats_py_fetch(url: str, stream: str, count: int) -> Figure:
    """nats-py, `fetch(1000)` and an ack for each message."""
    import nats
    from nats.js.api import ConsumerConfig

    # nats-py leaves the types of its options open.
    client = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
    jetstream = client.jetstream()  # pyright: ignore[reportUnknownMemberType]
    config = ConsumerConfig(max_ack_pending=_ACKS_PENDING_MAX, mem_storage=True)
    consumer = await jetstream.pull_subscribe("", stream=stream, config=config)
    watch, seen, checksum = Stopwatch(), 0, 0
    watch.start()
    while seen < count:
        for message in await consumer.fetch(min(1000, count - seen), timeout=5):
            meta = message.metadata
            checksum += meta.sequence.stream + len(message.subject) + len(message.data)
            checksum += bool(meta.timestamp)
            await message.ack()
            seen += 1
    await client.flush()
    figure = watch.stop(seen, checksum=checksum)
    await client.close()
    return figure


async def natsrpy_fetch(url: str, stream: str, count: int) -> Figure:
    """natsrpy (Rust), `fetch(1000)` and an ack for each message."""
    from natsrpy import Nats
    from natsrpy.js import PullConsumerConfig

    client = Nats(addrs=[url])
    await client.startup()
    jetstream = await client.jetstream()
    source = await jetstream.streams.get(stream)
    config = PullConsumerConfig(
        name=f"bench{time.time_ns()}", max_ack_pending=_ACKS_PENDING_MAX, memory_storage=True
    )
    consumer = await source.consumers.create(config)
    watch, seen, checksum = Stopwatch(), 0, 0
    watch.start()
    while seen < count:
        # natsrpy leaves the types of its messages open.
        for message in cast(
            "list[Any]", await consumer.fetch(max_messages=min(1000, count - seen))
        ):
            checksum += message.stream_sequence + len(message.subject) + len(message.payload)
            checksum += bool(message.published)
            await message.ack()
            seen += 1
    await client.flush()
    return watch.stop(seen, checksum=checksum)


CONSUMERS: Subjects = {
    "consume": consume,
    "consume without acks": consume_without_acks,
    "run": run,
    "nats-py fetch, acks": nats_py_fetch,
    "natsrpy fetch, acks": natsrpy_fetch,
}


if __name__ == "__main__":
    run_subject(CONSUMERS)
