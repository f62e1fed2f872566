"""Followers: `python -m scripts.benchmarks.subjects.followers NAME URL STREAM COUNT`.

Law: one message at a time. The same client publishes for each follower, and the clock runs from
the publish until the follower has the message.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import nats

import natsstream as ns
from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

_WARM_UP = 200


async def ordered(url: str, stream: str, count: int) -> Figure:
    """Ours, the ordered consumer."""
    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        async with source.ordered(deliver_policy="new") as tail:
            return await _follow(aiter(tail), url, stream, count)


async def nats_py_subscribe(url: str, stream: str, count: int) -> Figure:
    """nats-py, a plain subscription, which knows nothing of the stream."""
    # nats-py leaves the types of its options open.
    client = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
    subscription = await client.subscribe(f"{stream}.>")  # pyright: ignore[reportUnknownMemberType]
    await client.flush()
    try:
        return await _follow(aiter(subscription.messages), url, stream, count)
    finally:
        await client.close()


async def _follow(arrivals: AsyncIterator[object], url: str, stream: str, count: int) -> Figure:
    sender = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
    watch, times = Stopwatch(), list[float]()
    for number in range(_WARM_UP + count):
        if number == _WARM_UP:
            watch.start()
        began = time.perf_counter()
        await sender.publish(f"{stream}.a", b"x" * 256)
        await anext(arrivals)
        if number >= _WARM_UP:
            times.append(time.perf_counter() - began)
    figure = watch.stop(count, times)
    await sender.close()
    return figure


FOLLOWERS: Subjects = {"ordered": ordered, "nats-py subscribe": nats_py_subscribe}


if __name__ == "__main__":
    run_subject(FOLLOWERS)
