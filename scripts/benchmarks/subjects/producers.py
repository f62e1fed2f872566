"""Producers, and what other clients do to store nothing twice: publish with message ids.

`python -m scripts.benchmarks.subjects.producers NAME URL STREAM COUNT`
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

PAYLOAD = b"x" * 256
# The window of every subject with an ack a message.
_WINDOW = 4_096
_WARM_UP = 20


async def shared(url: str, stream: str, count: int) -> Figure:
    """Ours: atomic batches."""
    return await _produced(url, stream, count, mode="shared")


async def exclusive(url: str, stream: str, count: int) -> Figure:
    """Ours: fast batches."""
    return await _produced(url, stream, count, mode="exclusive")


async def _produced(url: str, stream: str, count: int, **options: Any) -> Figure:
    import natsstream as ns

    async with ns.connect(url) as js:
        opened = await js.producer(stream, "bench", subject=f"{stream}.x", **options)
        async with opened as producer:
            watch = Stopwatch()
            watch.start()
            for _ in range(count):
                producer.append(PAYLOAD)
                await producer.drain()
            await producer.flush()
            return watch.stop(count)


async def publisher(url: str, stream: str, count: int) -> Figure:
    """Ours, `publisher` with message ids, which it makes itself."""
    import natsstream as ns

    async with ns.connect(url) as js:
        watch = Stopwatch()
        watch.start()
        async with js.publisher(retry_for=30, max_pending=_WINDOW) as pub:
            for _ in range(count):
                await pub.send(f"{stream}.x", PAYLOAD)
        return watch.stop(count)


async def one_at_a_time(url: str, stream: str, count: int) -> Figure:
    """Ours, `publisher` with one message in flight, which keeps the order whatever is lost."""
    import natsstream as ns

    async with ns.connect(url) as js:
        watch = Stopwatch()
        watch.start()
        async with js.publisher(retry_for=30, max_pending=1) as pub:
            for _ in range(count):
                await pub.send(f"{stream}.x", PAYLOAD)
        return watch.stop(count)


async def natsrpy(url: str, stream: str, count: int) -> Figure:
    """natsrpy (Rust) with message ids, a window gathered at a time."""
    from natsrpy import Nats

    client = Nats(addrs=[url])
    await client.startup()
    jetstream = await client.jetstream()
    watch, sent = Stopwatch(), 0
    watch.start()
    while sent < count:
        window = range(sent, min(sent + _WINDOW, count))
        acks = await asyncio.gather(
            *[
                jetstream.publish(
                    f"{stream}.x", PAYLOAD, headers={"Nats-Msg-Id": str(number)}, wait=True
                )
                for number in window
            ]
        )
        sent += len(acks)
    return watch.stop(sent)


async def nats_py(url: str, stream: str, count: int) -> Figure:
    """nats-py, `publish_async` with message ids."""
    import nats

    # nats-py leaves the types of its options open.
    client = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
    jetstream = cast("Any", client).jetstream(publish_async_max_pending=_WINDOW)
    watch = Stopwatch()
    watch.start()
    futures = [
        await jetstream.publish_async(f"{stream}.x", PAYLOAD, headers={"Nats-Msg-Id": str(number)})
        for number in range(count)
    ]
    acks = await asyncio.gather(*futures)
    figure = watch.stop(len(acks))
    await client.close()
    return figure


# One message after the other.


async def publish_wait(url: str, stream: str, count: int) -> Figure:
    """Ours, `js.publish`."""
    import natsstream as ns

    async with ns.connect(url) as js:
        return await _timed(lambda: js.publish(f"{stream}.x", PAYLOAD), count)


async def shared_wait(url: str, stream: str, count: int) -> Figure:
    """Ours, `append_wait` into a shared stream."""
    return await _waited(url, stream, count, mode="shared")


async def exclusive_wait(url: str, stream: str, count: int) -> Figure:
    """Ours, `append_wait` into an exclusive stream."""
    return await _waited(url, stream, count, mode="exclusive")


async def _waited(url: str, stream: str, count: int, **options: Any) -> Figure:
    import natsstream as ns

    async with ns.connect(url) as js:
        opened = await js.producer(stream, "bench", subject=f"{stream}.x", **options)
        async with opened as producer:
            return await _timed(lambda: producer.append_wait(PAYLOAD), count)


async def _timed(store: Callable[[], Awaitable[object]], count: int) -> Figure:
    for _ in range(_WARM_UP):
        await store()
    watch, times_s = Stopwatch(), [0.0] * count
    watch.start()
    for number in range(count):
        began = time.perf_counter()
        await store()
        times_s[number] = time.perf_counter() - began
    return watch.stop(count, times_s)


PRODUCERS: Subjects = {
    "shared": shared,
    "exclusive": exclusive,
    "publisher, ids": publisher,
    "publisher, one at a time": one_at_a_time,
    "nats-py publish_async, ids": nats_py,
    "natsrpy publish, ids": natsrpy,
    "publish": publish_wait,
    "shared append_wait": shared_wait,
    "exclusive append_wait": exclusive_wait,
}

if __name__ == "__main__":
    run_subject(PRODUCERS)
