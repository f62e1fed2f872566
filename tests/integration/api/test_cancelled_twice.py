"""Integration tests of readers that are cancelled again and again while they end.

However often and whenever that is, nothing of them is left: no consumer and no subscription on the
server, no task here, and no error that nobody looked at.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream._wire import client
from natsstream.read import session
from tests.support.cancels import cancel
from tests.support.eventually import eventually_async
from tests.support.pulling import subscriptions
from tests.support.streams import consumer_count, fill, server_subscriptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import CoreMessage, JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

ROUNDS = 300


async def read(js: JetStream, name: str) -> None:
    async for _ in (await js.streams.get(name)).read():
        pass


async def ordered(js: JetStream, name: str) -> None:
    async with (await js.streams.get(name)).ordered(first_seq=1) as tail:
        async for _ in tail.initial():
            pass


async def latest(js: JetStream, name: str) -> None:
    async with (await js.streams.get(name)).latest() as tail:
        async for _ in tail.initial():
            pass


async def watch(js: JetStream, name: str) -> None:
    async with (await js.kv.get(name)).watch() as entries:
        async for _ in entries:
            pass


async def history(js: JetStream, name: str) -> None:
    async for _ in (await js.kv.get(name)).keys():
        pass


async def download(js: JetStream, name: str) -> None:
    box = await js.objects.get(name)
    async with box.open("one") as reader:
        await reader.read()


async def objects(js: JetStream, name: str) -> None:
    async with (await js.objects.get(name)).watch() as infos:
        async for _ in infos:
            pass


async def push(js: JetStream, name: str) -> None:
    async with (await (await js.streams.get(name)).consumers.get("push")).subscribe() as messages:
        async for _ in messages:
            pass


async def consume(js: JetStream, name: str) -> None:
    async with (await (await js.streams.get(name)).consumers.get("pull")).consume() as messages:
        async for _ in messages:
            pass


async def fetch(js: JetStream, name: str) -> None:
    await (await (await js.streams.get(name)).consumers.get("pull")).fetch(200, timeout=5)


async def core(js: JetStream, name: str) -> None:
    async with js.core.subscribe(f"{name}.to") as messages:
        async for _ in messages:
            pass


async def make(js: JetStream, name: str) -> list[Any]:
    """Make what the readers read; returns the streams."""
    stream = await fill(js, name, 100, subjects=[f"{name}.*"])
    await stream.consumers.create("pull", durable=True)
    await stream.consumers.create("push", durable=True, deliver_subject=f"to.{name}")
    bucket = await js.kv.create(name)
    await bucket.put("a", b"1")
    box = await js.objects.create(name)
    await box.put("one", bytes(300_000))
    return [stream, await js.streams.get(f"KV_{name}"), await js.streams.get(f"OBJ_{name}")]


WAYS = [read, ordered, latest, watch, history, download, objects, push, consume, fetch, core]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("way", WAYS)
async def test_a_reader_that_is_cancelled_any_number_of_times_leaves_nothing(
    server: NatsServer, stream_name: str, way: Callable[[JetStream, str], Awaitable[None]]
) -> None:
    random = Random(way.__name__)  # noqa: S311 - it draws moments.
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    async with connect(server.url, name=stream_name) as js:
        streams = await make(js, stream_name)
        consumers = [await consumer_count(stream) for stream in streams]
        before, tasks = subscriptions(js), len(asyncio.all_tasks())
        listened = await asyncio.to_thread(server_subscriptions, server, stream_name)
        for _ in range(ROUNDS):
            await cancel(asyncio.ensure_future(way(js, stream_name)), random)

        async def is_clean() -> bool:
            held = [await consumer_count(stream) for stream in streams]
            is_alone = len(asyncio.all_tasks()) == tasks
            return held == consumers and subscriptions(js) == before and is_alone

        async def is_silent() -> bool:
            now = await asyncio.to_thread(server_subscriptions, server, stream_name)
            return now == listened

        await eventually_async(is_clean)
        await eventually_async(is_silent)
    assert not unseen


async def relay(
    js: JetStream, prefix: str, held: asyncio.Event, go: asyncio.Event, relayed: asyncio.Event
) -> None:
    """Stand between a client and the server; creations of consumers take until `go`."""

    async def pass_on(request: CoreMessage) -> None:
        # The filter stands in the body as well.
        subject = request.subject.removeprefix(f"{prefix}.").removesuffix(".>")
        if subject.startswith("CONSUMER.CREATE."):
            held.set()
            await go.wait()
        answer = await js.core.request(f"$JS.API.{subject}", request.data)
        if request.reply:
            await js.core.publish(request.reply, answer.data)
        if subject.startswith("CONSUMER.CREATE."):
            relayed.set()

    async with js.core.subscribe(f"{prefix}.>") as requests, asyncio.TaskGroup() as group:
        held.set()
        async for request in requests:
            group.create_task(pass_on(request))


@pytest.mark.parametrize("way", [read, ordered, latest])
@pytest.mark.parametrize("turns", [1, 2, 3])
async def test_a_deletion_does_not_overtake_the_creation_when_its_reader_is_cancelled_twice(
    server: NatsServer,
    stream_name: str,
    monkeypatch: pytest.MonkeyPatch,
    way: Callable[[JetStream, str], Awaitable[None]],
    turns: int,
) -> None:
    """The reader does not wait for it, the end of the connection does."""
    monkeypatch.setattr(session, "_CLOSE_TIMEOUT_S", 20)
    monkeypatch.setattr(client, "_LAST_FLUSH_S", 20)
    async with connect(server.url) as js:
        stream = await fill(js, stream_name, 10)
        held, go, relayed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        prefix = f"{stream_name}_api"
        relaying = asyncio.create_task(relay(js, prefix, held, go, relayed))
        await held.wait()
        held.clear()
        async with connect(server.url, api_prefix=prefix) as far:
            reading = asyncio.ensure_future(way(far, stream_name))
            await held.wait()
            while not reading.done():
                reading.cancel()
                for _ in range(turns):
                    await asyncio.sleep(0)
            assert reading.cancelled()
            await far.core.flush()
            go.set()

        async def is_deleted() -> bool:
            return relayed.is_set() and await consumer_count(stream) == 0

        await eventually_async(is_deleted)
        relaying.cancel()
        await asyncio.wait({relaying})
