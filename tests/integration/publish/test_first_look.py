"""The first look at a stream lasts as long as the call that needs it, and no shorter.

The server is away when a call begins and for longer than `request_timeout`: whoever has said how
long it may take gets that time also for what is asked before the first message.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream import Expect, NatsStreamError, connect
from natsstream.errors import NoRespondersError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from natsstream import JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

_LONG_S = 60.0
_REQUEST_S = 0.5


async def send(js: JetStream) -> object:
    async with js.publisher(retry_for=_LONG_S) as publisher:
        return await (await publisher.send("s.x", b"1"))


async def send_in_order(js: JetStream) -> object:
    async with js.publisher(retry_for=_LONG_S, max_pending=1, stream="S") as publisher:
        return await (await publisher.send("s.x", b"1"))


async def send_many(js: JetStream) -> object:
    async with js.publisher(retry_for=_LONG_S) as publisher:
        return await publisher.send_many([("s.x", b"1")])


async def send_with_a_life_time(js: JetStream) -> object:
    async with js.publisher(retry_for=_LONG_S) as publisher:
        return await (await publisher.send("s.x", b"1", ttl=_LONG_S))


async def send_to_a_template(js: JetStream) -> object:
    js.streams.template("t.*.>", name="T_{1}")
    async with js.publisher(retry_for=_LONG_S) as publisher:
        return await (await publisher.send("t.a.x", b"1"))


async def publish_what_is_looked_up(js: JetStream) -> object:
    return await js.publish("s.x", b"2", expect=Expect(last_msg_id="first"), timeout=_LONG_S)


@pytest_asyncio.fixture
async def filled(fresh_server: NatsServer) -> AsyncIterator[JetStream]:
    async with connect(fresh_server.url, request_timeout=_REQUEST_S) as js:
        await js.streams.create("S", subjects=["s.>"], allow_msg_ttl=True, allow_batched=True)
        await js.publish("s.x", b"1", msg_id="first")
        yield js


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    "call",
    [
        send,
        send_in_order,
        send_many,
        send_with_a_life_time,
        send_to_a_template,
        publish_what_is_looked_up,
    ],
)
async def test_call_that_begins_while_the_server_is_away_ends_when_it_is_back(
    fresh_server: NatsServer, filled: JetStream, call: Callable[[JetStream], Awaitable[object]]
) -> None:
    await asyncio.to_thread(fresh_server.kill)
    calling = asyncio.ensure_future(call(filled))
    done, _ = await asyncio.wait({calling}, timeout=4 * _REQUEST_S)
    assert not done, calling.exception()
    await asyncio.to_thread(fresh_server.start)
    assert await calling


async def test_ingest_that_begins_while_the_server_is_away_begins_when_it_is_back(
    fresh_server: NatsServer, filled: JetStream
) -> None:
    stream = await filled.streams.get("S")
    await asyncio.to_thread(fresh_server.kill)

    async def ingest() -> int:
        async with stream.ingest(ack_timeout=_LONG_S) as fast:
            await fast.send("s.x", b"1")
        return fast.report.stored

    calling = asyncio.ensure_future(ingest())
    done, _ = await asyncio.wait({calling}, timeout=4 * _REQUEST_S)
    assert not done, calling.exception()
    await asyncio.to_thread(fresh_server.start)
    assert await calling == 1


async def test_first_look_ends_when_the_message_may_not_be_sent_any_more(
    fresh_server: NatsServer, filled: JetStream
) -> None:
    await asyncio.to_thread(fresh_server.kill)
    async with filled.publisher(retry_for=1) as publisher:
        with pytest.raises(NatsStreamError) as caught:
            await publisher.send("s.x", b"1")
    assert caught.value.retryable


async def test_subject_that_no_stream_captures_is_refused_at_once(filled: JetStream) -> None:
    async with asyncio.timeout(_LONG_S / 2), filled.publisher(retry_for=_LONG_S) as publisher:
        with pytest.raises(NoRespondersError, match="no stream captures"):
            await publisher.send("nobody", b"1")
