"""Producers whose connection is closed under them: their calls tell what was not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import ConnectionClosedError, ProducerTimeoutError
from tests.support.producers import append_all, numbers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import IdempotentProducer, JetStream
    from natsstream.testing import NatsServer
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio

HINT = (
    "open a new one with natsstream.connect(), and the producer again with "
    "js.producer(...): its `recovered` tells what is stored"
)
LOST = "^the connection of producer 'p' was closed with 3 messages not known to be stored\n"

CALLS: dict[str, Callable[[IdempotentProducer], Awaitable[object]]] = {
    "flush": lambda p: p.flush(),
    "drain": lambda p: p.drain(),
    "detach": lambda p: p.detach(),
    "append_wait": lambda p: p.append_wait(b"late"),
    "restart": lambda p: p.restart(),
    "close": lambda p: p.close(),
}


async def opened(js: JetStream, name: str, **options: Any) -> IdempotentProducer:
    """Return a producer of a stream, which is created if there is none."""
    if name not in [each async for each in js.streams.names()]:
        await js.streams.create(name, subjects=[f"{name}.>"])
    return await js.producer(name, "p", subject=f"{name}.d", update_stream=True, **options)


async def test_every_call_tells_how_many_messages_were_lost_with_the_connection(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with connect(fresh_server.url) as js:
        producer = await opened(js, stream_name)
        fresh_server.kill()
        append_all(producer, numbers(3))
    for call in CALLS.values():
        with pytest.raises(ConnectionClosedError, match=LOST) as caught:
            await call(producer)
        assert caught.value.hint == HINT
    with pytest.raises(ConnectionClosedError, match=LOST):
        producer.append(b"late")
    await producer.detach(ignore_errors=True)


async def test_block_that_outlives_its_connection_raises_what_was_lost(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with connect(fresh_server.url) as js:
        producer = await opened(js, stream_name)
        with pytest.raises(ConnectionClosedError, match=LOST):  # noqa: PT012 - Its block raises.
            async with producer:
                fresh_server.kill()
                append_all(producer, numbers(3))
                await js.close()


async def test_block_that_outlives_its_connection_ends_quietly_if_all_is_stored(
    place: Place,
) -> None:
    async with connect(f"nats://127.0.0.1:{place.port}") as js:
        producer = await opened(js, place.name)
        async with producer:
            append_all(producer, numbers(3))
            await js.close()
            await producer.flush()
            await producer.drain()
    assert await place.data() == numbers(3)


async def test_hint_for_a_closed_connection_works(place: Place) -> None:
    async with connect(f"nats://127.0.0.1:{place.port}") as js:
        producer = await opened(js, place.name)
        await producer.append_wait(b"0")
    with pytest.raises(ConnectionClosedError, match=r"'p' was closed\n") as caught:
        producer.append(b"1")
    assert caught.value.hint == HINT
    async with await place.open() as heir:
        assert heir.recovered is not None
        assert heir.recovered.count == 1
        heir.append(b"1")
    assert await place.data() == [b"0", b"1"]


async def test_close_that_timed_out_is_not_tried_on_a_closed_connection(
    fresh_server: NatsServer, stream_name: str
) -> None:
    """Else it would wait for ever: nothing sends any more."""
    async with connect(fresh_server.url, request_timeout=0.1) as js:
        producer = await opened(js, stream_name, delivery_timeout=0.1)
        fresh_server.kill()
        with pytest.raises(ProducerTimeoutError):
            await producer.close()
    with pytest.raises(ConnectionClosedError, match=r"'p' was closed\n"):
        await producer.close()
