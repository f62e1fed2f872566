"""Consumers with work for the tests of workers and dead letters."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from tests.support.eventually import WITHIN_S, eventually_async

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.api.requests import Api
    from natsstream.consume.dead_letters.letter import DeadLetter
    from natsstream.consume.dead_letters.queue import DeadLetterQueue
    from natsstream.streams.consumers.consumer import Consumer


async def make_work(
    js: JetStream,
    name: str,
    count: int,
    *,
    retention: Any = "limits",
    replicas: int = 1,
    **consumer: Any,
) -> Consumer:
    """Return the consumer `c` of a stream with messages `0`, `1`, ... on the subject `<name>.x`."""
    stream: Any = await js.streams.ensure(
        name, subjects=[f"{name}.>"], retention=retention, replicas=replicas
    )
    made: Consumer = await stream.consumers.ensure("c", **consumer)
    for number in range(count):
        await js.publish(f"{name}.x", b"%d" % number)
    return made


def api_of(js: JetStream) -> Api:
    """Return the connection as the rooms of the library see it."""
    return js._api  # pyright: ignore[reportPrivateUsage]


async def letters_of(queue: DeadLetterQueue) -> list[DeadLetter]:
    """Return all letters."""
    async with aclosing(queue.list()) as letters:
        return [letter async for letter in letters]


async def settled(consumer: Consumer, *, within_s: float = WITHIN_S) -> None:
    """Wait until nothing of a consumer is out or to come: plain acks take a moment."""

    async def ask() -> bool:
        return await pending_of(consumer) == (0, 0)

    await eventually_async(ask, within_s=within_s)


async def pending_of(consumer: Consumer) -> tuple[int, int]:
    """Return how many messages of a consumer are out, and how many are still to come."""
    raw: Any = (await consumer.info()).raw
    return raw["num_ack_pending"], raw["num_pending"]
