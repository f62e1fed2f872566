"""Findings 5 and 6: what a pipelined publisher owes to its callers.

5: futures of nats-py's `publish_async` may stay pending for ever, and one whose message was too
large keeps its place in the window. 6: nats-py 2.16 turns a cancelled `publish_async` into a
`TooManyStalledMsgsError`, and passes over cancelling in `drain`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import nats
import pytest
import pytest_asyncio

from natsstream import connect
from natsstream.errors import HeaderError, PayloadTooLargeError, SubjectError
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from natsstream import JetStream, Publisher

pytestmark = pytest.mark.asyncio

# No ping and no deadline of its own may end what waits.
PATIENT: dict[str, Any] = {"ping_interval": 60, "request_timeout": 60}
# What waits while the server says nothing; the window of the publisher is full.
CALLS: dict[str, Callable[[JetStream, Publisher], Awaitable[object]]] = {
    "publish": lambda js, _: js.publish("s", b"x"),
    "send": lambda _, publisher: publisher.send("s", b"x"),
    "send_many": lambda _, publisher: publisher.send_many([("s", b"x"), ("s", b"y")]),
    "publisher_flush": lambda _, publisher: publisher.flush(),
    "stream_info": lambda js, _: js.streams.get("S"),
    "request": lambda js, _: js.core.request("s", b"x"),
    "flush": lambda js, _: js.core.flush(),
    "subscribe": lambda js, _: js.core.subscribe("t").open(),
}


@pytest.mark.finding(5)
async def test_message_that_can_not_be_sent_takes_no_room(js: JetStream, stream_name: str) -> None:
    """The window has room for one."""
    await js.streams.create(stream_name, subjects=[stream_name])
    too_large = bytes(js.raw.max_payload + 1)

    async with js.publisher(max_pending=1) as publisher, asyncio.timeout(30):
        for _ in range(3):
            with pytest.raises(PayloadTooLargeError):
                await publisher.send(stream_name, too_large)
            with pytest.raises(HeaderError):
                await publisher.send(stream_name, headers={"A": "x\r\n"})
            with pytest.raises(SubjectError):
                await publisher.send("a b")
        assert (publisher.pending_count, publisher.pending_bytes) == (0, 0)
        ack = await (await publisher.send(stream_name, b"x"))
        await publisher.flush()

    assert ack.sequence == 1


@pytest.fixture(scope="module")
def paused() -> Iterator[NatsServer]:
    """A server that the tests of this file pause."""
    with NatsServer() as server:
        yield server


@pytest_asyncio.fixture
async def stream(paused: NatsServer) -> AsyncIterator[None]:
    """The stream that the calls are about."""
    async with connect(paused.url) as js:
        await js.streams.create("S", subjects=["s"])
        yield
        paused.resume()  # Where the test has failed before.
        await js.streams.delete("S")


@pytest.mark.finding(6)
@pytest.mark.usefixtures("stream")
@pytest.mark.parametrize("call", CALLS)
async def test_cancelled_call_is_cancelled(paused: NatsServer, call: str) -> None:
    async with connect(paused.url, **PATIENT) as js:
        async with js.publisher(max_pending=1) as publisher:
            paused.pause()
            await publisher.send("s", b"fills the window")
            task = asyncio.ensure_future(CALLS[call](js, publisher))
            done, _ = await asyncio.wait([task], timeout=0.05)
            assert not done

            task.cancel()
            async with asyncio.timeout(30):
                await asyncio.wait([task])

            assert task.cancelled()
            paused.resume()
        # What was cancelled has broken nothing for others.
        assert (await js.publish("s", b"last")).stream == "S"


@pytest.mark.finding(6)
@pytest.mark.usefixtures("stream")
@pytest.mark.parametrize("call", CALLS)
async def test_call_ends_at_the_deadline_around_it(paused: NatsServer, call: str) -> None:
    async with connect(paused.url, **PATIENT) as js, js.publisher(max_pending=1) as publisher:
        paused.pause()
        await publisher.send("s", b"fills the window")

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await CALLS[call](js, publisher)

        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        paused.resume()


@pytest.mark.finding(6)
@pytest.mark.usefixtures("stream")
async def test_block_of_a_publisher_can_be_cancelled_while_it_waits(
    paused: NatsServer, record_testsuite_property: Callable[[str, object], None]
) -> None:
    """Leaving it waits for acks that do not come; nothing of the publisher is left."""
    async with connect(paused.url, **PATIENT) as js:
        before = asyncio.all_tasks()

        async def publish_one() -> None:
            async with js.publisher() as publisher:
                await publisher.send("s", b"x")

        paused.pause()
        task = asyncio.ensure_future(publish_one())
        await asyncio.wait([task], timeout=0.05)
        task.cancel()
        async with asyncio.timeout(30):
            await asyncio.wait([task])
        paused.resume()

        assert task.cancelled()

        async def is_clean() -> bool:
            return asyncio.all_tasks() - {task} <= before

        await eventually_async(is_clean)
    record_testsuite_property(
        "finding 6: nats-py's publish_async ended with", await cancel_nats_py(paused)
    )


async def cancel_nats_py(server: NatsServer) -> str:
    """Return what a cancelled `publish_async` of nats-py ends with, its window full."""
    client = await cast("Any", nats).connect(server.url)
    context = client.jetstream(timeout=30, publish_async_max_pending=1)
    try:
        server.pause()
        first = await context.publish_async("s", b"x")
        task = asyncio.ensure_future(context.publish_async("s", b"x", wait_stall=30))
        await asyncio.wait([task], timeout=0.05)
        task.cancel()
        await asyncio.wait([task], timeout=20)
        server.resume()
        await asyncio.wait([first], timeout=20)
        return "cancelled" if task.cancelled() else type(task.exception()).__name__
    finally:
        server.resume()
        await client.close()
