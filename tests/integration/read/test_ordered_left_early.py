"""Integration tests of readers that are cancelled while their consumer is still being made."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.read import session

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from natsstream import JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever closes waits less for the answer that does not come."""
    monkeypatch.setattr(session, "_CLOSE_TIMEOUT_S", 0.1)


async def answer_all_but_creations(
    js: JetStream, prefix: str, asked: asyncio.Event, deleted: asyncio.Event
) -> None:
    """Stand between a client and the server, and let its creation of a consumer go unanswered."""
    async with js.core.subscribe(f"{prefix}.>") as requests:
        asked.set()
        async for request in requests:
            subject = request.subject.removeprefix(f"{prefix}.")
            if subject.startswith("CONSUMER.CREATE."):
                asked.set()
                continue
            if subject.startswith("CONSUMER.DELETE."):
                deleted.set()
                continue
            answer = await js.core.request(f"$JS.API.{subject}", request.data)
            if request.reply:
                await js.core.publish(request.reply, answer.data)


@asynccontextmanager
async def opening_without_an_answer(
    server: NatsServer, js: JetStream, name: str
) -> AsyncGenerator[tuple[asyncio.Task[object], asyncio.Event]]:
    """Yield the task of a reader whose consumer is being made, and what tells of its deletion."""
    await js.streams.create(name)
    asked, deleted = asyncio.Event(), asyncio.Event()
    answering = asyncio.create_task(answer_all_but_creations(js, name, asked, deleted))
    try:
        await asked.wait()
        asked.clear()
        async with connect(server.url, api_prefix=name, request_timeout=30) as cut_off:
            tail = (await cut_off.streams.get(name)).ordered()
            opening: asyncio.Task[object] = asyncio.create_task(tail.__aenter__())
            await asked.wait()
            yield opening, deleted
    finally:
        answering.cancel()
        await asyncio.wait([answering])


async def test_reader_that_is_cancelled_while_nobody_answers_just_ends(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    async with opening_without_an_answer(server, js, stream_name) as (opening, deleted):
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await deleted.wait()


async def test_reader_that_is_cancelled_twice_still_deletes_its_consumer(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    async with opening_without_an_answer(server, js, stream_name) as (opening, deleted):
        opening.cancel()
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await deleted.wait()
