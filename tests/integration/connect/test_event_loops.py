"""A connection that is used on another event loop or thread is told at once; it never hangs."""

from __future__ import annotations

import asyncio
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import pytest

from natsstream import connect
from natsstream.errors import EventLoopError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from natsstream import JetStream
    from natsstream.testing import NatsNode

# Beyond every deadline of the library: only a call that hangs reaches it.
HANGS_S = 60.0


class Opened:
    """A connection that lives on the loop of a thread, with something open of each kind."""

    def __init__(self, url: str, stream: str) -> None:
        self._url = url
        self.name = stream
        self.js: Any = None
        self.stream: Any = None
        self.consumer: Any = None
        self.flow: Any = None
        self.tail: Any = None
        self.plain: Any = None
        self.publisher: Any = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(HANGS_S)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(HANGS_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self) -> None:
        self.js = js = await connect(self._url).open()
        self.stream = await js.streams.ensure(self.name)
        self.consumer = await self.stream.consumers.ensure("c")
        await self.stream.publish(self.name, b"1")
        self.flow = await self.consumer.consume().__aenter__()
        await anext(self.flow)
        self.tail = await self.stream.ordered().__aenter__()
        await anext(self.tail)
        self.plain = await js.core.subscribe("plain").__aenter__()
        self.publisher = await js.publisher().__aenter__()

    async def _close(self) -> None:
        for each in (self.flow, self.tail, self.plain, self.publisher):
            await each.__aexit__(None, None, None)
        await self.js.close()


@pytest.fixture(scope="module")
def opened(server: NatsNode) -> Iterator[Opened]:
    """Such a connection to the shared server."""
    with Opened(server.url, f"LOOPS_{uuid.uuid4().hex}") as held:
        yield held


async def enter(what: Any) -> None:
    """Open a block."""
    await what.__aenter__()


async def iterate(what: Any) -> None:
    """Take one item."""
    async for _ in what:
        return


CALLS: dict[str, Callable[[Opened], Awaitable[object]]] = {
    "publish": lambda o: o.js.publish(o.name),
    "publish plain": lambda o: o.js.core.publish("plain"),
    "request plain": lambda o: o.js.core.request("plain"),
    "subscribe plain": lambda o: enter(o.js.core.subscribe("plain")),
    "flush plain": lambda o: o.js.core.flush(),
    "ensure a stream": lambda o: o.js.streams.ensure(o.name),
    "info": lambda o: o.stream.info(),
    "get": lambda o: o.stream.get(1),
    "read": lambda o: iterate(o.stream.read()),
    "table": lambda o: o.stream.read().to_arrow(),
    "fetch": lambda o: o.consumer.fetch(1, timeout=1),
    "next": lambda o: o.consumer.next(timeout=1),
    "consume": lambda o: enter(o.consumer.consume()),
    "ordered": lambda o: enter(o.stream.ordered()),
    "worker": lambda o: enter(o.consumer.worker(iterate)),
    "open a publisher": lambda o: enter(o.js.publisher()),
    "flush a publisher": lambda o: o.publisher.flush(),
    "ensure a bucket": lambda o: o.js.kv.ensure(o.name),
    "ensure a store": lambda o: o.js.objects.ensure(o.name),
    "open a batch": lambda o: enter(o.stream.batch()),
    "producer": lambda o: o.js.producer(o.name, "p"),
    "core stream": lambda o: o.js.core_stream(o.name),
    "wait for an open flow": lambda o: iterate(o.flow),
    "wait for an open reader": lambda o: iterate(o.tail),
    "wait for an open subscription": lambda o: iterate(o.plain),
    "close": lambda o: o.js.close(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize("place", ["this thread", "another thread"])
def test_call_on_another_event_loop_raises_at_once(
    opened: Opened, call: Callable[[Opened], Awaitable[object]], place: str
) -> None:
    async def once() -> None:
        async with asyncio.timeout(HANGS_S):
            await call(opened)

    def run() -> None:
        asyncio.run(once())

    with ThreadPoolExecutor(1) as threads, pytest.raises(EventLoopError) as caught:
        threads.submit(run).result() if place == "another thread" else run()

    assert caught.value.message.endswith("the connection belongs to another event loop")
    assert "natsstream.blocking" in caught.value.hint


def test_connection_that_outlived_its_event_loop_says_so(server: NatsNode) -> None:
    async def opened() -> JetStream:
        js = await connect(server.url).open()
        js.raw._transport._io_writer.transport.abort()  # The loop ends without closing it.
        await asyncio.sleep(0)
        return js

    js = asyncio.run(opened())
    told = "publish to a: the connection belongs to an event loop that has ended"
    with pytest.raises(EventLoopError, match=told):
        asyncio.run(js.publish("a"))


def test_connection_without_asyncio_says_what_is_missing(server: NatsNode) -> None:
    """As under trio, which steps through coroutines without an event loop of asyncio."""
    with pytest.raises(EventLoopError, match="needs a running event loop of asyncio") as caught:
        connect(server.url).open().send(None)

    assert "trio" in caught.value.hint


async def _other_connection(url: str) -> bool:
    async with connect(url) as js:
        return js.is_connected


def test_connection_on_each_event_loop_works(server: NatsNode, opened: Opened) -> None:
    assert asyncio.run(_other_connection(server.url))
    assert opened.js.is_connected
