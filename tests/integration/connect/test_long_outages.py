"""What a program leaves running outlives any outage; what has an end raises after its bound.

Calls that give up are the clock of these tests: what runs has waited for as long as they did.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect, options
from natsstream.errors import ConnectionLostError, ConsumerDeletedError, TransportError
from natsstream.events import Disconnected
from tests.support.eventually import eventually_async
from tests.support.work import make_work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import DeliveredMessage, JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

BOUND_S = 0.5
# Only what never comes takes this long.
SOON_S = 60.0


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second is long, for all that has a bound by default."""
    monkeypatch.setattr(options, "_BOUNDED_RECONNECT_S", BOUND_S)


async def outage(js: JetStream, server: NatsServer) -> None:
    """Kill the server until calls of more than the bound have given up, then start it again."""
    lost = js.events()
    server.kill()
    async for event in lost:
        if isinstance(event, Disconnected):
            break
    for _ in range(3):
        with pytest.raises(TransportError):
            await js.publish("S.x", b"lost", timeout=BOUND_S)
    server.start()


async def test_all_that_runs_outlives_an_outage(fresh_server: NatsServer) -> None:
    got: dict[str, list[bytes]] = {
        name: [] for name in ("worker", "run", "consume", "ordered", "push", "watch", "mirror")
    }

    async def gather(name: str, messages: AsyncIterator[Any]) -> None:
        async for message in messages:
            got[name].append(message.value if name == "watch" else message.data)

    def handler(name: str) -> Any:
        async def handle(message: DeliveredMessage) -> None:
            got[name].append(message.data)

        return handle

    async def all_have(value: bytes, mirror: Any) -> bool:
        entry = mirror.get("S")
        got["mirror"] = [entry.value] if entry is not None else []
        return all(value in each for each in got.values())

    async with connect(fresh_server.url) as js, AsyncExitStack() as opened:
        tasks = await opened.enter_async_context(asyncio.TaskGroup())
        enter = opened.enter_async_context
        consumers = [await make_work(js, "S", 0)]
        stream = await js.streams.get("S")
        consumers += [await stream.consumers.ensure(name) for name in ("run", "consume")]
        push = await stream.consumers.ensure("push", deliver_subject="deliver.S")
        bucket = await js.kv.ensure("B")
        worker = await enter(consumers[0].worker(handler("worker")))
        mirror = await enter(bucket.cached())
        running = [
            tasks.create_task(consumers[1].run(handler("run"))),
            tasks.create_task(gather("consume", await enter(consumers[2].consume()))),
            tasks.create_task(gather("ordered", await enter(stream.ordered()))),
            tasks.create_task(gather("push", await enter(push.subscribe()))),
            tasks.create_task(gather("watch", await enter(bucket.watch()))),
        ]
        for value in (b"before", b"after"):
            await js.publish("S.x", value)
            await bucket.put("S", value)
            await eventually_async(lambda value=value: all_have(value, mirror), within_s=SOON_S)
            if value == b"before":
                await outage(js, fresh_server)
                await eventually_async(js.account, within_s=SOON_S)

        assert worker.is_running
        assert worker.report.failure is None
        for task in running:
            task.cancel()


async def test_calls_still_end(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url, request_timeout=BOUND_S) as js:
        consumer = await make_work(js, "S", 3)
        stream = await js.streams.get("S")
        fresh_server.kill()
        for call in (
            js.publish("S.x"),
            stream.read().bounds(),
            consumer.next(timeout=BOUND_S),
            stream.ordered().__aenter__(),
        ):
            with pytest.raises(TransportError):
                async with asyncio.timeout(SOON_S):
                    await call


async def test_worker_with_a_bound_ends_and_says_so(
    fresh_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "natsstream.worker")
    async with connect(fresh_server.url, reconnect_timeout=BOUND_S) as js:
        consumer = await make_work(js, "S", 0)

        async def handle(_: object) -> None:
            pass

        worker = await consumer.worker(handle).open()
        fresh_server.kill()
        with pytest.raises(ConnectionLostError) as caught:
            async with asyncio.timeout(SOON_S):
                await worker.wait()
        await worker.stop()

    assert worker.report.failure is caught.value
    assert "start the worker again" in caught.value.hint
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith(
        "worker of consumer c of stream S ended: consumer c of stream S was away"
    )


async def test_worker_whose_consumer_is_deleted_says_so(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = await make_work(js, stream_name, 0)

    async def handle(_: object) -> None:
        pass

    async with consumer.worker(handle) as worker:
        stream = await js.streams.get(stream_name)
        await stream.consumers.delete("c")
        with pytest.raises(ConsumerDeletedError):
            await worker.wait()

    assert isinstance(worker.report.failure, ConsumerDeletedError)
    lines = [each for each in caplog.records if each.name == "natsstream.worker"]
    assert [each.levelno for each in lines] == [logging.ERROR]
