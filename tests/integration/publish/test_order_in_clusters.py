"""Keeping order by message ids: only where the stream can get no replicas.

Ids that are under way while a stream is scaled up break it for good on nats-server up to 2.15.1:
no later write is answered.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.publish import ordered_sender
from natsstream.testing import FaultProxy
from tests.support.eventually import eventually_async
from tests.support.streams import payload

if TYPE_CHECKING:
    from natsstream import JetStream, PubAck, Stream, StreamInfo
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

EXPECTED = "Nats-Expected-Last-Msg-Id"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """A machine that stands still for a second is no pause, unless a test makes one."""
    monkeypatch.setattr(ordered_sender, "_SEEN_FOR_S", 60.0)


def in_a_cluster(info: StreamInfo) -> bool:
    """Tell that a stream is not alone, whatever it is."""
    del info
    return False


async def expecting(stream: Stream) -> list[bool]:
    """Tell of each message whether it expected the one before."""
    return [EXPECTED in message.headers async for message in stream.read()]


async def test_ids_are_used_outside_of_clusters(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name], storage="memory")

    async with js.publisher(retry_for=30, keep_order=True) as publisher:
        for number in range(50):
            await publisher.send(stream_name, payload(number))

    assert await expecting(stream) == [False, *[True] * 49]


async def test_stream_that_is_scaled_up_while_it_is_written_lives_and_keeps_order(
    cluster_js: JetStream, stream_name: str
) -> None:
    js = cluster_js
    stream = await js.streams.create(stream_name, subjects=[stream_name], replicas=1)
    futures: list[asyncio.Future[PubAck]] = []

    async with js.publisher(retry_for=60, keep_order=True) as publisher:
        for number in range(900):
            futures.append(await publisher.send(stream_name, payload(number)))
            if number in (300, 600):
                await futures[-1]
                replicas = 3 if number == 300 else 1
                scaling = asyncio.ensure_future(js.streams.ensure(stream_name, replicas=replicas))
                futures += [await publisher.send(stream_name, payload(number)) for _ in range(100)]
                await scaling

    read = [int(message.data.split()[0]) async for message in stream.read()]
    assert read == sorted(read)
    assert len(read) == len(futures)
    assert not any(await expecting(stream))
    assert (await js.publish(stream_name, b"-1")).sequence == len(futures) + 1


async def test_stream_is_looked_at_again_after_a_break(
    server: NatsServer, js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may have come back in a cluster: then no message expects an id any more."""
    stream = await js.streams.create(stream_name, subjects=[stream_name], storage="memory")

    with FaultProxy(server.port) as proxy:
        async with (
            connect(proxy.url) as far,
            far.publisher(retry_for=30, keep_order=True) as publisher,
        ):
            await publisher.send_many([(stream_name, b"1"), (stream_name, b"2")])
            monkeypatch.setattr(ordered_sender, "is_unclustered", in_a_cluster)
            proxy.stall()
            waiting = [await publisher.send(stream_name, b"3") for _ in range(5)]
            proxy.cut()
            proxy.heal()
            await asyncio.gather(*waiting)

    told = await expecting(stream)
    assert told[:2] == [False, True]
    assert not any(told[2:])


async def test_stream_is_looked_at_again_after_a_pause(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every turn is a pause here: messages go alone until the look has ended, and then in a run."""
    stream = await js.streams.create(stream_name, subjects=[stream_name], storage="memory")
    looks: list[StreamInfo] = []

    def look(info: StreamInfo) -> bool:
        looks.append(info)
        return True

    monkeypatch.setattr(ordered_sender, "is_unclustered", look)

    async def are_in_runs_again() -> bool:
        await publisher.send_many([(stream_name, b"5")] * 20)
        return any((await expecting(stream))[4:])

    async with js.publisher(retry_for=30, keep_order=True) as publisher:
        await publisher.send_many([(stream_name, b"1"), (stream_name, b"2")])
        with monkeypatch.context() as paused:
            paused.setattr(ordered_sender, "_SEEN_FOR_S", -1.0)
            await publisher.send_many([(stream_name, b"3"), (stream_name, b"4")])
        await eventually_async(are_in_runs_again)

    assert len(looks) > 1
    told = await expecting(stream)
    assert told[:4] == [False, True, False, False]
