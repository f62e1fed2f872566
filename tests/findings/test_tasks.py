"""Finding 26: what one message costs.

nats-py 2.16 makes a task for each message of `async for` and of `next_msg`.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from natsstream import JetStream, Stream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

COUNT = 5_000
# Opening, closing and a request now and then may each make one.
TASKS_MAX = 50


@contextmanager
def tasks_made() -> Generator[list[str]]:
    """Note the name of each coroutine that becomes a task."""
    loop = asyncio.get_running_loop()
    names: list[str] = []

    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        names.append(getattr(coroutine, "__qualname__", repr(coroutine)))
        return asyncio.Task(coroutine, loop=loop, **options)

    loop.set_task_factory(make)
    try:
        yield names
    finally:
        loop.set_task_factory(None)


async def by_message(js: JetStream, stream: Stream) -> int:  # noqa: ARG001 - as the others.
    """Follow the stream."""
    async with stream.ordered() as tail:
        return len([message async for message in tail.initial()])


async def by_range(js: JetStream, stream: Stream) -> int:  # noqa: ARG001 - as the others.
    """Read a range."""
    return len([message async for message in stream.read()])


async def by_subscription(js: JetStream, stream: Stream) -> int:
    """Iterate what is published meanwhile."""
    count = 0
    async with js.core.subscribe(f"{stream.name}_core") as messages:
        await publish_all(js, stream)
        async for _ in messages:
            count += 1
            if count == COUNT:
                break
    return count


async def by_next(js: JetStream, stream: Stream) -> int:
    """Take what is published meanwhile one by one, each with a deadline."""
    async with js.core.subscribe(f"{stream.name}_core") as messages:
        await publish_all(js, stream)
        return sum([await messages.next(30) is not None for _ in range(COUNT)])


async def publish_all(js: JetStream, stream: Stream) -> None:
    """Publish without a stream."""
    for number in range(COUNT):
        await js.core.publish(f"{stream.name}_core", b"%d" % number)


@pytest.mark.sampled_variants
@pytest.mark.finding(26)
@pytest.mark.parametrize(
    "way", [by_message, by_range, by_subscription, by_next], ids=lambda f: f.__name__
)
async def test_reading_makes_no_task_for_a_message(
    server: NatsServer, stream_name: str, way: Callable[[JetStream, Stream], Awaitable[int]]
) -> None:
    async with connect(server.url) as js:
        stream = await fill(js, stream_name, COUNT)
        with tasks_made() as names:
            assert await way(js, stream) == COUNT

    assert len(names) < TASKS_MAX, names[:TASKS_MAX]
