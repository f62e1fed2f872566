"""Finding 24: what goes wrong has a type that tells what it was.

nats-py 2.16 answers a fetch from a consumer that is not there with a `ServiceUnavailableError`
without a code, an ack that is none with a `JSONDecodeError`, and a direct get that the stream does
not allow with core NATS' `NoRespondersError`.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from natsstream import NatsStreamError, connect
from natsstream.errors import ProtocolError, StreamNotFoundError
from natsstream.testing import NatsServer
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio


async def read(stream: Stream) -> object:
    """Read the whole stream."""
    return [message async for message in stream.read()]


async def follow(stream: Stream) -> object:
    """Follow the stream to its end."""
    async with stream.ordered() as tail:
        return [message async for message in tail.initial()]


async def to_table(stream: Stream) -> object:
    """Read the whole stream as columns."""
    return await stream.read().to_arrow()


CALLS: dict[str, Callable[[JetStream, Stream], Awaitable[object]]] = {
    "info": lambda _, stream: stream.info(),
    "get": lambda _, stream: stream.get(1),
    "get_last": lambda _, stream: stream.get(last_by_subject=">"),
    "read": lambda _, stream: read(stream),
    "columns": lambda _, stream: to_table(stream),
    "ordered": lambda _, stream: follow(stream),
    "streams_get": lambda js, stream: js.streams.get(stream.name),
    "streams_update": lambda js, stream: js.streams.update(stream.name, max_msgs=5),
    "streams_delete": lambda js, stream: js.streams.delete(stream.name),
}


@pytest.mark.finding(24)
@pytest.mark.parametrize("call", CALLS)
async def test_deleted_stream_has_one_error_for_every_call(
    js: JetStream, stream_name: str, call: str
) -> None:
    stream = await fill(js, stream_name, 3)
    await js.streams.delete(stream_name)

    with pytest.raises(StreamNotFoundError, match=stream_name) as caught:
        await CALLS[call](js, stream)

    assert (caught.value.code, caught.value.err_code) == (404, 10059)
    assert not caught.value.retryable


@pytest.mark.finding(24)
async def test_message_is_got_without_direct_access(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 3, allow_direct=False)

    last = await stream.get(last_by_subject=f"{stream_name}.>")

    assert (await stream.info()).config.allow_direct is not True
    assert last is not None
    assert last.sequence == 3
    assert await stream.get(4) is None
    assert await stream.get(last_by_subject=f"{stream_name}.none") is None


@asynccontextmanager
async def stranger(js: JetStream, answer: bytes) -> AsyncGenerator[None]:
    """Answer all of JetStream's API, as a service on a careless subject would."""
    async with js.core.subscribe("$JS.API.>") as requests:

        async def answer_all() -> None:
            async for request in requests:
                await request.respond(answer)

        task = asyncio.create_task(answer_all())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.mark.finding(24)
@pytest.mark.parametrize("answer", [b"", b"pong", b"{}", b"[]", b"\xff", b'{"error":{}}'])
async def test_stranger_on_the_api_is_a_protocol_error(answer: bytes) -> None:
    with NatsServer(jetstream=False) as server:
        async with connect(server.url, request_timeout=30) as js, stranger(js, answer):
            with pytest.raises(NatsStreamError) as caught:
                await js.streams.get("S")

    # An error that says nothing is still the answer of a server.
    assert isinstance(caught.value, ProtocolError) or b"error" in answer
