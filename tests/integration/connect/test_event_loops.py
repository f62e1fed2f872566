"""A connection that is used on another event loop or thread is told at once; it never hangs."""

from __future__ import annotations

import asyncio
import queue
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pytest

from natsstream import connect
from natsstream.errors import EventLoopError, LockLostError
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from natsstream import JetStream
    from natsstream.testing import NatsNode

T = TypeVar("T")

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
        self.producer: Any = None
        self.ingest: Any = None
        self.message: Any = None
        self.worker: Any = None
        self.map: Any = None
        self.log: Any = None
        self.core: Any = None
        self.mirror: Any = None
        self.lock: Any = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the connection's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(HANGS_S)

    async def _open(self) -> None:
        self.js = js = await connect(self._url).open()
        self.stream = await js.streams.ensure(
            self.name, subjects=[self.name, f"{self.name}.>"], allow_batched=True
        )
        self.consumer = await self.stream.consumers.ensure("c")
        await self.stream.publish(self.name, b"1")
        self.flow = await self.consumer.consume().__aenter__()
        self.message = await anext(self.flow)
        self.tail = await self.stream.ordered().__aenter__()
        await anext(self.tail)
        self.plain = await js.core.subscribe("plain").__aenter__()
        self.publisher = await js.publisher().__aenter__()
        self.ingest = await self.stream.ingest().__aenter__()
        produced = await js.streams.ensure(f"{self.name}_P")
        self.producer = await js.producer(
            produced.name, "p", subject=produced.name, update_stream=True
        )
        idle = await self.stream.consumers.ensure("idle", filters=[f"{self.name}.idle"])
        self.worker = await idle.worker(iterate).__aenter__()
        self.map, self.log = await js.dkv(self.name), await js.dstream(self.name)
        self.core = await js.core_stream(self.name)
        bucket = await js.kv.ensure(self.name, limit_marker_ttl=60)
        self.mirror = await bucket.cached().__aenter__()
        self.lock = await bucket.lock("lock").__aenter__()

    async def _close(self) -> None:
        for each in (self.map, self.log, self.core):
            await each.close()
        opened = (self.lock, self.mirror, self.worker, self.producer, self.ingest, self.publisher)
        for each in (*opened, self.flow, self.tail, self.plain):
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


async def plain(call: Callable[..., object], *arguments: object) -> None:
    """Call what is not async."""
    call(*arguments)


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
    "send": lambda o: o.publisher.send(o.name),
    "send many": lambda o: o.publisher.send_many([(o.name, b"x")] * 10),
    "ingest": lambda o: o.ingest.send(o.name),
    "ingest many": lambda o: o.ingest.send_many([(o.name, b"x")]),
    "close an ingest": lambda o: o.ingest.close(),
    "append": lambda o: plain(o.producer.append, b"x"),
    "append many": lambda o: plain(o.producer.append_many, [b"x"]),
    "append and wait": lambda o: o.producer.append_wait(b"x"),
    "flush a producer": lambda o: o.producer.flush(),
    "detach a producer": lambda o: o.producer.detach(),
    "ack": lambda o: o.message.ack(),
    "confirmed ack": lambda o: o.message.ack(confirm=True),
    "nak": lambda o: o.message.nak(),
    "in progress": lambda o: o.message.in_progress(),
    "stop a worker": lambda o: o.worker.stop(),
    "wait for a worker": lambda o: o.worker.wait(),
    "wait for no work": lambda o: o.worker.wait_until_empty(),
    "stop a flow": lambda o: o.flow.stop(),
    "events of a flow": lambda o: iterate(o.flow.events()),
    "events of a reader": lambda o: iterate(o.tail.events()),
    "close a reader": lambda o: o.tail.close(),
    "close a subscription": lambda o: o.plain.close(),
    "set in a map": lambda o: plain(o.map.set, "a", 1),
    "delete in a map": lambda o: plain(o.map.delete, "a"),
    "save a map": lambda o: o.map.save(),
    "changes of a map": lambda o: iterate(o.map.changes()),
    "close a map": lambda o: o.map.close(),
    "push to a log": lambda o: plain(o.log.push, 1),
    "configuration of a core stream": lambda o: o.core.config(),
    "close a core stream": lambda o: o.core.close(),
    "wait for a mirror": lambda o: o.mirror.wait_for(0),
    "changes of a mirror": lambda o: iterate(o.mirror.changes()),
    "write through a mirror": lambda o: o.mirror.put("a", b"1"),
    "release a lock": lambda o: o.lock.release(),
    "wait for the loss of a lock": lambda o: o.lock.lost(),
    "guarded put": lambda o: o.lock.put("a", b"1"),
    "ensure a bucket": lambda o: o.js.kv.ensure(o.name),
    "ensure a store": lambda o: o.js.objects.ensure(o.name),
    "open a batch": lambda o: enter(o.stream.batch()),
    "producer": lambda o: o.js.producer(o.name, "p"),
    "core stream": lambda o: o.js.core_stream(f"{o.name}_NEW"),
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


def test_refused_calls_on_other_event_loops_have_changed_nothing(opened: Opened) -> None:
    async def refused() -> None:
        for call in ("send", "ingest", "append", "ack", "set in a map", "push to a log"):
            with pytest.raises(EventLoopError):
                await CALLS[call](opened)

    asyncio.run(refused())

    async def state() -> tuple[object, ...]:
        await opened.publisher.flush()
        await opened.producer.flush()
        infos = [await opened.stream.info(), await opened.js.streams.get(f"{opened.name}_P")]
        stored = infos[0].state.messages
        return stored, opened.producer.last_offset, opened.message.is_settled

    assert opened.run(state()) == (1, None, False)
    assert opened.map.get_all() == {}
    assert opened.map.unsaved_changes() == opened.log.unsaved_changes() == []


def test_state_of_a_lock_may_be_asked_for_in_any_thread(opened: Opened) -> None:
    opened.lock.check()

    assert opened.lock.is_held
    assert opened.lock.remaining > 0


def test_thread_sees_the_loss_of_a_lock_before_its_loop_does(opened: Opened) -> None:
    async def hold() -> None:
        bucket = await opened.js.kv.get(opened.name)
        async with bucket.lock("short", ttl=1, on_loss="tell") as lock:
            seen.put(lock)
            told.wait(HANGS_S)  # The loop cannot look at the clock meanwhile.

    seen: queue.SimpleQueue[Any] = queue.SimpleQueue()
    told = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        holding = threads.submit(opened.run, hold())
        lock = seen.get(timeout=HANGS_S)
        eventually(lambda: not lock.is_held)
        with pytest.raises(LockLostError):
            lock.check()
        told.set()
        with pytest.raises(LockLostError):
            holding.result(HANGS_S)


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
