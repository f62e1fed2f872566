"""Layers of core streams for integration tests: several clients, each with its own connection."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from natsstream import connect
from natsstream.conat.names import StreamNames
from natsstream.errors import StreamNotFoundError
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from natsstream import JetStream
    from natsstream.testing import NatsNode


@asynccontextmanager
async def opened(
    layer: str, *nodes: NatsNode, name: str = "", **options: Any
) -> AsyncGenerator[list[Any]]:
    """Open one object of a layer on each server, each over a connection of its own.

    The stream is deleted at the end.
    """
    name = name or new_name()
    async with AsyncExitStack() as stack:
        contexts = [await stack.enter_async_context(connect(node.url)) for node in nodes]
        stack.push_async_callback(remove, contexts[0], name)
        objects: list[Any] = []
        for js in contexts:
            objects.append(await getattr(js, layer)(name, **options))
            stack.push_async_callback(objects[-1].close)
        yield objects


async def settled(js: JetStream, layer: str) -> None:
    """Open and close an object, so that the connection has the subscriptions that it keeps."""
    async with await getattr(js, layer)(new_name()):
        pass
    await js.core.rtt()


async def remove(js: JetStream, name: str) -> None:
    """Delete the streams of a core stream, if there are any."""
    names = StreamNames(f"hub/{name}")
    for stream in (names.stream, names.blob_stream):
        with suppress(StreamNotFoundError):
            await js.streams.delete(stream)


def new_name() -> str:
    """Return the name of a layer's stream that no other test has."""
    return f"layer {secrets.token_hex(6)}"


async def until(condition: Callable[[], object]) -> None:
    """Wait until a function returns something true."""

    async def is_true() -> object:
        return condition()

    await eventually_async(is_true)


def heard(layer: Any, event: str = "change") -> list[Any]:
    """Return a list to which all events of a name are added."""
    events: list[Any] = []
    layer.on(event, events.append)
    return events


def milliseconds(time: datetime) -> int:
    """Return a time in whole Unix milliseconds."""
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
