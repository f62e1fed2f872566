"""Integration tests of pulls and verdicts that the user's permissions forbid."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import PermissionDeniedError
from natsstream.testing import NatsServer
from tests.support.pulling import tuned, worker_of
from tests.support.work import api_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable

    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.streams.consumers.consumer import Consumer

pytestmark = pytest.mark.asyncio

CONFIG = """
authorization {
  users = [
    { user: all, password: p }
    { user: few, password: p, permissions: { publish: { deny: ["$JS.API.CONSUMER.MSG.NEXT.>"] } } }
    { user: mute, password: p, permissions: { publish: { deny: ["$JS.ACK.>"] } } }
  ]
}
"""


def url_of(server: NatsServer, user: str) -> str:
    """Return the address of a server for a user."""
    return server.url.replace("nats://", f"nats://{user}:p@")


async def test_pull_that_is_not_allowed_is_a_typed_error() -> None:
    with NatsServer(config=CONFIG) as server:
        async with connect(url_of(server, "all")) as js:
            await worker_of(js, "S", 1)
        async with connect(url_of(server, "few")) as js:
            worker = await (await js.streams.get("S")).consumers.get("work")
            with pytest.raises(PermissionDeniedError, match=r"MSG\.NEXT"):
                await worker.next()
            async with worker.consume() as messages:
                with pytest.raises(PermissionDeniedError, match=r"MSG\.NEXT"):
                    await anext(messages)


async def settle_all(
    messages: AsyncIterable[DeliveredMessage], kind: str, taken: list[DeliveredMessage]
) -> None:
    """Settle messages until that raises, and note which."""
    async for message in messages:
        taken.append(message)
        await getattr(message, kind)()
        await asyncio.sleep(0.05)


async def one_by_one(consumer: Consumer) -> AsyncGenerator[DeliveredMessage]:
    """Yield messages, each of a pull of its own."""
    while message := await consumer.next(timeout=5):
        yield message


@pytest.mark.parametrize("kind", ["ack", "nak", "in_progress"])
async def test_flow_whose_acks_are_refused_ends_with_the_error(kind: str) -> None:
    """The messages would come again for ever, and only the log would tell."""
    taken: list[DeliveredMessage] = []
    with NatsServer(config=CONFIG) as server:
        async with connect(url_of(server, "mute")) as js:
            worker = await worker_of(js, "S", 1000, ack_wait=1)
            async with worker.consume() as messages:
                with pytest.raises(
                    PermissionDeniedError, match="consumer work of stream S"
                ) as told:
                    await settle_all(messages, kind, taken)

            async with worker.consume() as messages:  # Another flow is told too.
                with pytest.raises(PermissionDeniedError):
                    await settle_all(messages, kind, taken)
    assert len(taken) < 20
    assert told.value.subject.startswith("$JS.ACK.S.work.")
    assert "$JS.ACK.S.work.>" in told.value.hint
    assert "come again" in told.value.detail


@pytest.mark.parametrize("end", ["break", "stop_after", "drain"])
async def test_flow_that_ends_by_itself_tells_a_refused_ack_when_it_is_left(end: str) -> None:
    async def take(worker: Consumer) -> None:
        async with worker.consume(stop_after=5 if end == "stop_after" else None) as messages:
            if end == "drain":
                while messages.waiting < 5:
                    await asyncio.sleep(0.01)
                await messages.drain()
            async for message in messages:
                await message.ack()
                if end == "break":
                    break

    with NatsServer(config=CONFIG) as server:
        async with connect(url_of(server, "mute")) as js:
            worker = await worker_of(js, "S", 5)
            with pytest.raises(PermissionDeniedError, match=r"JS\.ACK"):
                await take(worker)


async def test_refused_flow_gives_nothing_back_and_leaves_no_listener() -> None:
    denied: list[str] = []
    with NatsServer(config=CONFIG) as server:
        async with connect(url_of(server, "mute")) as js:
            client = api_of(js).client
            stop = client.watch_denied(lambda event: denied.append(event.subject))
            worker = await worker_of(js, "S", 1000)
            async with worker.consume() as messages:
                with pytest.raises(PermissionDeniedError):
                    await settle_all(messages, "ack", [])
            await js.core.flush()
            stop()
            listeners = client._state._listeners  # pyright: ignore[reportPrivateUsage]
            before = len(listeners)
            for _ in range(5):
                consumer = tuned(
                    await (await js.streams.get("S")).consumers.get("work"), spare_s=0.05
                )
                message = await consumer.next(timeout=5)
                assert message is not None
                await message.ack()
                await asyncio.sleep(0)
                await js.core.flush()
                with pytest.raises(PermissionDeniedError):
                    await consumer.next(timeout=5)
            await asyncio.sleep(0.5)
            assert len(listeners) == before
    assert len(denied) < 10


async def test_ack_that_is_refused_long_after_its_fetch_is_told_by_the_next_one() -> None:
    """The subscription of a fetch is closed by then."""
    with NatsServer(config=CONFIG) as server:
        async with connect(url_of(server, "mute")) as js:
            worker = tuned(await worker_of(js, "S", 50), spare_s=0.05)
            message = await worker.next(timeout=5)
            assert message is not None
            await asyncio.sleep(0.3)
            await message.ack()
            await asyncio.sleep(0)
            await js.core.flush()
            with pytest.raises(PermissionDeniedError, match=r"JS\.ACK"):
                await worker.next(timeout=5)


async def test_refusal_that_was_raised_is_not_raised_again() -> None:
    with NatsServer(config=CONFIG) as server:
        async with connect(url_of(server, "mute")) as js:
            worker = await worker_of(js, "S", 50)
            message = await worker.next(timeout=5)
            assert message is not None
            with pytest.raises(PermissionDeniedError):
                await message.ack(confirm=True)
            assert await worker.next(timeout=5) is not None


async def test_refused_ack_is_told_by_a_later_fetch() -> None:
    with NatsServer(config=CONFIG) as server:
        async with connect(url_of(server, "mute")) as js:
            worker = await worker_of(js, "S", 50, ack_wait=1)
            for _ in range(2):  # A program that goes on hears of the next refusal.
                taken: list[DeliveredMessage] = []
                with pytest.raises(PermissionDeniedError, match=r"JS\.ACK"):
                    await settle_all(one_by_one(worker), "ack", taken)
                assert 0 < len(taken) < 10
            for message in await worker.fetch(5):
                await message.ack()
            await asyncio.sleep(0)  # Acks leave at the end of this turn of the loop.
            await js.core.flush()
            with pytest.raises(PermissionDeniedError):
                await worker.fetch(5)
            message = (await worker.fetch(1))[0]
            with pytest.raises(PermissionDeniedError):
                await message.ack_next(timeout=30)


async def test_confirmed_ack_that_is_not_allowed_is_a_typed_error() -> None:
    with NatsServer(config=CONFIG) as server:
        async with connect(url_of(server, "mute")) as js:
            worker = await worker_of(js, "S", 1)
            message = await worker.next()
            assert message is not None
            with pytest.raises(PermissionDeniedError, match=r"JS\.ACK"):
                await message.ack(confirm=True)
            assert not message.is_settled
