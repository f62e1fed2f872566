"""Errors of a connection that is away or closed name the key, message, consumer or object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import natsstream as ns
from natsstream.errors import ConnectionClosedError, RequestTimeoutError, TransportError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

CALLS: dict[str, tuple[str, Callable[[Any], Awaitable[object]]]] = {
    "kv.get": ("key 'a' of bucket settings", lambda it: it.bucket.get("a")),
    "kv.get-consistent": (
        "key 'a' of bucket settings",
        lambda it: it.bucket.get("a", consistent=True),
    ),
    "kv.get-revision": (
        "key 'a' of bucket settings",
        lambda it: it.bucket.get("a", revision=1),
    ),
    "kv.put": ("publish to $KV.settings.a", lambda it: it.bucket.put("a", b"1")),
    "next": ("consumer billing of stream ORDERS", lambda it: it.consumer.next(timeout=0.2)),
    "fetch": ("consumer billing of stream ORDERS", lambda it: it.consumer.fetch(2, timeout=0.2)),
    "consumer.info": ("consumer billing of stream ORDERS", lambda it: it.consumer.info()),
    "stream.get": ("message 7 of stream ORDERS", lambda it: it.stream.get(7)),
    "stream.get-last": (
        "last message of orders.a in stream ORDERS",
        lambda it: it.stream.get(last_by_subject="orders.a"),
    ),
    "stream.purge": ("purge of stream ORDERS", lambda it: it.stream.purge()),
    "box.info": ("object 'x' of store files", lambda it: it.box.info("x")),
    "box.get": ("object 'x' of store files", lambda it: it.box.get("x")),
    "core.flush": ("flush", lambda it: it.js.core.flush()),
}


class Held:
    """One of each, made while the server was there."""

    def __init__(self, js: ns.JetStream) -> None:
        self.js = js

    async def make(self) -> None:
        """Create what is asked later."""
        self.stream = await self.js.streams.ensure("ORDERS", subjects=["orders.>"])
        self.consumer = await self.stream.consumers.ensure("billing")
        self.bucket = await self.js.kv.ensure("settings")
        self.box = await self.js.objects.ensure("files")


async def test_error_of_a_call_names_what_it_was_about(fresh_server: NatsServer) -> None:
    """The server is stopped, then the connection is closed."""
    async with ns.connect(fresh_server.url, request_timeout=0.2) as js:
        held = Held(js)
        await held.make()
        fresh_server.stop()
        for call, (named, ask) in CALLS.items():
            with pytest.raises(TransportError) as caught:
                await ask(held)
            assert caught.value.message.startswith(f"{named}: "), call

    for call, (named, ask) in CALLS.items():
        with pytest.raises(ConnectionClosedError, match="the connection is closed") as closed:
            await ask(held)
        assert closed.value.message.startswith(f"{named}: "), call


async def test_reader_that_begins_after_the_end_names_its_consumer(
    fresh_server: NatsServer,
) -> None:
    async with ns.connect(fresh_server.url) as js:
        held = Held(js)
        await held.make()

    with pytest.raises(ConnectionClosedError, match=r"^consumer billing of stream ORDERS: "):
        async with held.consumer.consume():
            pass
    with pytest.raises(ConnectionClosedError, match=r"^the subscription to plain: "):
        async with js.core.subscribe("plain"):
            pass


async def test_timeout_names_the_message_that_was_asked_for(fresh_server: NatsServer) -> None:
    """The server stands still; the subject of the request does not name the message."""
    async with ns.connect(fresh_server.url, request_timeout=0.2) as js:
        held = Held(js)
        await held.make()
        fresh_server.pause()
        try:
            with pytest.raises(RequestTimeoutError, match=r"^message 7 of stream ORDERS: no ans"):
                await held.stream.get(7)
        finally:
            fresh_server.resume()
