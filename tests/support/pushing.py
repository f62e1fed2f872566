"""Push consumers for tests: making them, and taking what they send."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from natsstream.consume.delivery.source import ConsumerSource, PushSource
from natsstream.consume.delivery.tuning import ReaderTuning
from natsstream.consume.push.subscription import PushMessages

if TYPE_CHECKING:
    from natsstream import Consumer, JetStream, Stream
    from natsstream.consume.delivery.delivered import DeliveredMessage

HEARTBEAT_S = 0.1


async def make_push(stream: Stream, **fields: Any) -> Consumer:
    """Return a push consumer, with flow control and a short heartbeat unless they are given."""
    given: dict[str, Any] = {
        "deliver_subject": f"deliver.{stream.name}",
        "flow_control": True,
        "idle_heartbeat": HEARTBEAT_S,
        **fields,
    }
    given = {name: value for name, value in given.items() if value is not None}
    return await stream.consumers.ensure("push", **given)


async def fill_push(js: JetStream, stream: Stream, count: int, *, size: int = 0) -> None:
    """Store `count` messages, whose payloads begin with their number from 1."""
    async with js.publisher(ack_timeout=30) as publisher:
        for number in range(1, count + 1):
            await publisher.send(f"{stream.name}.a", (b"%d " % number).ljust(size, b"."))


def tuned_push(consumer: Consumer, **waits: float) -> PushMessages:
    """Describe a reader of a push consumer with other waits."""
    source = ConsumerSource.of(consumer._api, consumer.cached)  # pyright: ignore[reportPrivateUsage]
    source = replace(source, tuning=ReaderTuning(**waits))
    return PushMessages(PushSource.of(source, consumer.cached.config))


async def take_push(
    messages: PushMessages, count: int, *, ack: bool = True
) -> list[DeliveredMessage]:
    """Return the next messages, acknowledged or not."""
    found: list[DeliveredMessage] = []
    while len(found) < count:
        message = await anext(messages)
        found.append(message)
        if ack:
            await message.ack()
    return found


def numbers(messages: list[DeliveredMessage]) -> list[int]:
    """Return the numbers in the payloads."""
    return [int(message.data.split()[0]) for message in messages]
