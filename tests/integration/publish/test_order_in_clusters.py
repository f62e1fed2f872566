"""One message in flight keeps the order wherever a stream lives, and expects nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.streams import payload

if TYPE_CHECKING:
    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio


async def test_stream_that_is_scaled_up_while_it_is_written_lives_and_keeps_order(
    cluster_js: JetStream, stream_name: str
) -> None:
    js = cluster_js
    stream = await js.streams.create(stream_name, subjects=[stream_name], replicas=1)
    scalings: list[asyncio.Future[Stream]] = []

    async with js.publisher(retry_for=60, max_pending=1) as publisher:
        for number in range(300):
            await publisher.send(stream_name, payload(number))
            if number in (100, 200):
                replicas = 3 if number == 100 else 1
                scalings.append(
                    asyncio.ensure_future(js.streams.ensure(stream_name, replicas=replicas))
                )
    await asyncio.gather(*scalings)

    read = [int(message.data.split()[0]) async for message in stream.read()]
    assert read == list(range(300))
    # A message may get no ack while the leader changes once more.
    async with js.publisher(retry_for=60) as publisher:
        ack = await publisher.send(stream_name, b"-1")
    assert (await ack).sequence == 301
