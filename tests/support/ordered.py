"""Ordered consumers for integration tests: taking from them, and taking theirs away."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from natsstream.errors import ConsumerNotFoundError
from tests.support.streams import change

if TYPE_CHECKING:
    from natsstream import JetStream, Message, OrderedConsumer

# A server that has just stored 40 MB answers late on a machine with twenty busy processes.
ANSWER_S = 60.0


async def take(tail: OrderedConsumer, count: int) -> list[Message]:
    """Return the next messages of an ordered consumer."""
    messages: list[Message] = []
    while len(messages) < count:
        messages.append(await anext(tail))
    return messages


async def take_sequences(tail: OrderedConsumer, count: int) -> list[int]:
    """Return the sequences of the next messages of an ordered consumer."""
    return [message.sequence for message in await take(tail, count)]


async def publish(js: JetStream, subject: str, *payloads: bytes) -> None:
    """Store messages one after the other."""
    for payload in payloads:
        await js.publish(subject, payload)


async def consumer_names(js: JetStream, stream: str) -> list[str]:
    """Return the names of a stream's consumers, however busy the machine is."""
    answer = await js._api.read(  # pyright: ignore[reportPrivateUsage]
        f"$JS.API.CONSUMER.NAMES.{stream}", None, what="consumers", timeout=ANSWER_S
    )
    return answer.texts("consumers")


async def delete_consumers(js: JetStream, stream: str) -> None:
    """Delete all consumers of a stream, as somebody else would.

    A reader that has just gone on deletes its old one by itself, and may do so in between.
    """
    for name in await consumer_names(js, stream):
        with suppress(ConsumerNotFoundError):
            await change(js, f"CONSUMER.DELETE.{stream}.{name}", {})
