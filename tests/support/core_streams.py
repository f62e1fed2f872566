"""Core streams for integration tests: several clients of one stream, and what the server holds."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from natsstream import connect
from natsstream.conat.configuration import Configuration
from natsstream.conat.names import StreamNames
from natsstream.errors import StreamNotFoundError
from tests.support.eventually import eventually_async
from tests.support.streams import change

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from natsstream import Connection, CoreStream, JetStream, Message, Stream
    from natsstream.conat.views import Change
    from natsstream.testing import NatsNode


def new_name() -> str:
    """Return the name of a core stream that no other test has."""
    return f"test {secrets.token_hex(6)}"


def names_of(stream: CoreStream) -> StreamNames:
    """Return the names of a core stream of the hub."""
    return StreamNames(f"hub/{stream.name}")


@asynccontextmanager
async def clients(
    server: NatsNode, count: int = 2, *, name: str = "", **options: Any
) -> AsyncGenerator[list[CoreStream]]:
    """Open a core stream with clients that have a connection each; it is deleted at the end."""
    connections = [connect(server.url) for _ in range(count)]
    async with clients_by(connections, name=name, **options) as opened:
        yield opened


@asynccontextmanager
async def clients_by(
    connections: list[Connection], *, name: str = "", **options: Any
) -> AsyncGenerator[list[CoreStream]]:
    """Open a core stream over each of some connections."""
    name = name or new_name()
    async with AsyncExitStack() as stack:
        contexts = [await stack.enter_async_context(each) for each in connections]
        stack.push_async_callback(remove, contexts[0], name)
        opened = [await js.core_stream(name, **options) for js in contexts]
        for each in opened:
            stack.push_async_callback(each.close)
        yield opened


async def remove(js: JetStream, name: str) -> None:
    """Delete the streams of a core stream, if there are any."""
    names = StreamNames(f"hub/{name}")
    for stream in (names.stream, names.blob_stream):
        with suppress(StreamNotFoundError):
            await js.streams.delete(stream)


async def create_without_feed(js: JetStream, name: str, *, replicas: int = 1) -> Stream:
    """Create the stream of a core stream as if the server had refused to republish it."""
    config = Configuration().to_stream(StreamNames(f"hub/{name}"), replicas=replicas)
    return await js.streams.create(replace(config, republish=None))


def context_of(stream: CoreStream) -> JetStream:
    """Return the connection of a core stream."""
    return cast("JetStream", stream._js)  # pyright: ignore[reportPrivateUsage]


async def server_stream(stream: CoreStream) -> Stream:
    """Return the JetStream stream of a core stream."""
    return await context_of(stream).streams.get(names_of(stream).stream)


async def held(stream: CoreStream) -> list[Message]:
    """Return what the server holds, read by its leader's consumer."""
    found = await server_stream(stream)
    return [message async for message in found.read(on_loss="report")]


async def purge_foreign(stream: CoreStream, **body: object) -> None:
    """Purge as the nats CLI does: nothing is announced."""
    await change(context_of(stream), f"STREAM.PURGE.{names_of(stream).stream}", body)


async def delete_foreign(stream: CoreStream, seq: int) -> None:
    """Delete a message as the nats CLI does: nothing is announced."""
    await change(context_of(stream), f"STREAM.MSG.DELETE.{names_of(stream).stream}", {"seq": seq})


async def until_equal(*streams: CoreStream, values: object) -> None:
    """Wait until all clients have the same values."""

    async def are_equal() -> bool:
        return all(each.get_all() == values for each in streams)

    try:
        await eventually_async(are_equal)
    except AssertionError:
        raise AssertionError([each.get_all() for each in streams]) from None


async def until_kv(*streams: CoreStream, values: object) -> None:
    """Wait until all clients have the same keys and values."""

    async def are_equal() -> bool:
        return all(each.get_all_kv() == values for each in streams)

    try:
        await eventually_async(are_equal)
    except AssertionError:
        raise AssertionError([each.get_all_kv() for each in streams]) from None


def heard(stream: CoreStream) -> list[Change]:
    """Return a list to which all changes of a core stream are added."""
    changes: list[Change] = []
    stream.on("change", changes.append)
    return changes


async def until(condition: Any) -> None:
    """Wait until a function without arguments returns something true."""

    async def is_true() -> object:
        await asyncio.sleep(0)
        return condition()

    await eventually_async(is_true)
