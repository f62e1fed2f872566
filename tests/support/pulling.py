"""Pull consumers for integration tests: making one over a filled stream, and looking at it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from natsstream.consume.delivery.delivered import AckSender
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.consume.delivery.tuning import ReaderTuning
from natsstream.consume.pull.fetching import Fetcher
from natsstream.errors import RequestTimeoutError
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.consume.pull.messages import ConsumerMessages
    from natsstream.streams.consumers.consumer import Consumer


async def worker_of(
    js: JetStream, name: str, count: int = 0, *, size: int = 0, replicas: int = 1, **fields: Any
) -> Consumer:
    """Return a consumer `work` over a stream of `count` messages."""
    stream = await fill(js, name, count, size=size, replicas=replicas)
    return await stream.consumers.create("work", **fields)


def tuned(worker: Consumer, **waits: float) -> Consumer:
    """Give the readers of a handle other waits."""
    source = ConsumerSource.of(worker._api, worker.cached)  # pyright: ignore[reportPrivateUsage]
    fetcher = Fetcher(AckSender(replace(source, tuning=ReaderTuning(**waits))))
    vars(worker)["_fetcher"] = fetcher
    return worker


async def take(messages: ConsumerMessages, count: int, *, ack: bool = True) -> list[int]:
    """Return the sequences of the next messages of a flow."""
    found: list[int] = []
    while len(found) < count:
        message = await anext(messages)
        if ack:
            await message.ack()
        found.append(message.sequence)
    return found


def sequences(messages: list[DeliveredMessage]) -> list[int]:
    """Return the sequences of messages."""
    return [message.sequence for message in messages]


async def nothing_comes(worker: Consumer, *, within_s: float) -> bool:
    """Tell whether no message comes for so long; a server that stood still is asked again."""
    while True:
        with suppress(RequestTimeoutError):
            return await worker.next(timeout=within_s) is None


async def is_settled(worker: Consumer) -> bool:
    """Tell whether nothing is out that was not acked."""
    return (await worker.info()).num_ack_pending == 0


async def is_idle(worker: Consumer) -> bool:
    """Tell whether no pull is open."""
    return (await worker.info()).num_waiting == 0


async def has_pulls(worker: Consumer, count: int = 1) -> bool:
    """Tell whether at least as many pulls are open."""
    return (await worker.info()).num_waiting >= count


def subscriptions(js: JetStream) -> int:
    """Return how many subscriptions a connection has."""
    return len(js._client.parser.sinks)  # pyright: ignore[reportPrivateUsage]


async def has_subscriptions(js: JetStream, count: int) -> bool:
    """Tell whether a connection has as many subscriptions."""
    return subscriptions(js) == count
