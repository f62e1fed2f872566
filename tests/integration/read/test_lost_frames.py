"""Integration tests of reads and ordered consumers when a frame of the server is lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.read import session
from tests.support.dropping import dropping, is_delivery, is_heartbeat
from tests.support.ordered import take_sequences
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server speaks more often, so that its silence tells sooner."""
    monkeypatch.setattr(session, "HEARTBEAT_S", 0.2)
    monkeypatch.setattr(session, "SILENCE_MAX_S", 0.5)


@pytest.mark.parametrize("number", [1, 10, 20])
async def test_an_ordered_consumer_gets_a_message_that_was_lost(
    server: NatsServer, stream_name: str, number: int
) -> None:
    """Also the last one, behind which nothing comes."""
    async with connect(server.url) as direct, dropping(server.port) as relay:
        await fill(direct, stream_name, 1)
        async with connect(relay.url) as js:
            stream = await js.streams.get(stream_name)
            async with stream.ordered(first_seq=2) as tail:
                relay.drop(lambda line, body: is_delivery(line, body) and is_number(body, number))
                await fill(direct, stream_name, 20, start=1)
                async with asyncio.timeout(30):
                    assert await take_sequences(tail, 20) == list(range(2, 22))
                assert relay.dropped
                assert tail.report.resumes == 1


def is_number(body: bytes, number: int) -> bool:
    """Tell whether a payload is that of message `number`."""
    return body.startswith(b"%d " % number)


async def test_an_ordered_consumer_goes_on_after_lost_heartbeats(
    server: NatsServer, stream_name: str
) -> None:
    async with connect(server.url) as direct, dropping(server.port) as relay:
        await fill(direct, stream_name, 1)
        async with connect(relay.url) as js:
            stream = await js.streams.get(stream_name)
            async with stream.ordered(first_seq=2) as tail:
                relay.drop(is_heartbeat, count=10)
                reading = asyncio.ensure_future(take_sequences(tail, 20))
                await relay.wait_dropped()
                await fill(direct, stream_name, 20, start=1)
                async with asyncio.timeout(30):
                    assert await reading == list(range(2, 22))


@pytest.mark.sampled_variants
@pytest.mark.parametrize("lost", [range(10, 11), range(999, 1_000), range(990, 1_000)])
async def test_a_read_gets_messages_that_were_lost(
    server: NatsServer, stream_name: str, lost: range
) -> None:
    async with connect(server.url) as direct, dropping(server.port) as relay:
        await fill(direct, stream_name, 1_000)
        async with connect(relay.url) as js:
            stream = await js.streams.get(stream_name)
            relay.drop(
                lambda line, body: is_delivery(line, body) and int(body.split()[0]) in lost,
                count=len(lost),
            )
            async with asyncio.timeout(30):
                found = [message.sequence async for message in stream.read()]
    assert relay.dropped
    assert found == list(range(1, 1_001))
