"""Streams for integration tests: filling them, damaging them, and reading what they hold.

The payload of message n (from 0) begins with the digits of n, so what is read tells what is
missing, doubled or out of order.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from natsstream import JetStream, Stream, StreamRange
    from natsstream.testing import NatsNode

Sequences = AsyncIterator[list[int]]


def payload(number: int, size: int = 0) -> bytes:
    """Return the payload of message `number`, filled up to `size` bytes."""
    return (b"%d " % number).ljust(size, b".")


async def fill(
    js: JetStream, name: str, count: int, *, size: int = 0, start: int = 0, **fields: Any
) -> Stream:
    """Return a stream with `count` more messages on the subjects `<name>.0` to `<name>.2`."""
    given: dict[str, Any] = {"subjects": [f"{name}.>"], **fields}
    stream = await js.streams.ensure(name, **given)
    # 40 MB to three servers beside twenty busy processes take more than half a minute.
    async with js.publisher(ack_timeout=120) as publisher:
        for number in range(start, start + count):
            await publisher.send(f"{name}.{number % 3}", payload(number, size))
    return stream


async def delete_message(js: JetStream, stream: str, sequence: int) -> None:
    """Delete one message from a stream."""
    await change(js, f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})


async def purge(js: JetStream, stream: str, **body: object) -> None:
    """Purge a stream, of all or of what the request's body names."""
    await change(js, f"STREAM.PURGE.{stream}", body)


async def change(js: JetStream, action: str, body: dict[str, object]) -> None:
    """Send a request of JetStream's API that the library has no call for."""
    await js._api.change(f"$JS.API.{action}", body, what=action)  # pyright: ignore[reportPrivateUsage]


async def consumer_count(stream: Stream) -> int:
    """Return how many consumers the server has on a stream."""
    return (await stream.info()).state.consumer_count


def connections_of(server: NatsNode, name: str) -> list[dict[str, Any]]:
    """Return what the server says of the open connections with a client name."""
    url = f"{server.monitor_url}/connz"
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own server.
        connections = cast("list[dict[str, Any]]", json.load(answer)["connections"])
    return [each for each in connections if each.get("name") == name]


def connection_of(server: NatsNode, name: str) -> dict[str, Any]:
    """Return what the server says of the connection with a client name."""
    return connections_of(server, name)[0]


def server_subscriptions(server: NatsNode, name: str) -> int:
    """Return how many subscriptions the server has of the connection with a client name."""
    return int(connection_of(server, name)["subscriptions"])


async def by_messages(messages: StreamRange) -> AsyncIterator[list[int]]:
    """Yield the sequences of a read, message by message."""
    async with aclosing(aiter(messages)) as items:
        async for message in items:
            yield [message.sequence]


async def by_batches(messages: StreamRange) -> AsyncIterator[list[int]]:
    """Yield the sequences of a read, batch by batch."""
    async with aclosing(messages.batches(["sequence"])) as batches:
        async for batch in batches:
            yield batch.column("sequence").to_pylist()


async def read_and_disturb(
    sequences: AsyncIterator[list[int]],
    disturb: Callable[[], Awaitable[object]],
    *,
    after: int = 1_000,
    into: list[int] | None = None,
) -> list[int]:
    """Return all sequences of a read, in whose middle something is done once.

    Args:
        sequences: The read.
        disturb: What is done.
        after: Messages that are read before that.
        into: Where the sequences go as well, for reads that end in an error.
    """
    found: list[int] = [] if into is None else into
    is_done = False
    async for some in sequences:
        found.extend(some)
        if not is_done and len(found) >= after:
            is_done = True
            await disturb()
    return found


async def silence(sequences: AsyncIterator[list[int]], into: list[int]) -> asyncio.Task[list[int]]:
    """Read until nothing comes any more; returns the read that still waits."""
    while True:
        task = asyncio.ensure_future(cast("Any", anext(sequences)))
        done, _ = await asyncio.wait({task}, timeout=0.3)
        if not done:
            return task
        into.extend(task.result())
