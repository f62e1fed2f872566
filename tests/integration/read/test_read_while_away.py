"""A read that begins while the server is away."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

import natsstream as ns

if TYPE_CHECKING:
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest.mark.sampled_variants
@pytest.mark.parametrize("kind", ["read", "ordered", "watch"])
async def test_read_that_begins_while_the_server_is_away_waits_for_it(
    fresh_server: NatsServer, stream_name: str, kind: str
) -> None:
    async with ns.connect(fresh_server.url, request_timeout=0.5, reconnect_timeout=60) as js:
        stream = await js.streams.ensure(stream_name)
        await js.publish(stream_name, b"x")
        bucket = await js.kv.ensure(stream_name)
        await bucket.put("x", b"x")
        fresh_server.kill()

        async def read() -> list[int]:
            if kind == "read":
                return [message.sequence async for message in stream.read()]
            if kind == "ordered":
                async with stream.ordered() as tail:
                    return [message.sequence async for message in tail.initial()]
            async with bucket.watch() as watch:
                return [entry.revision async for entry in watch.initial()]

        reading = asyncio.create_task(read())
        # Longer than a request may take.
        await asyncio.wait({reading}, timeout=1.5)
        assert not reading.done()
        await asyncio.to_thread(fresh_server.start)

        assert await reading == [1]


@pytest.mark.parametrize("kind", ["read", "ordered"])
async def test_read_gives_up_after_its_own_timeout(
    fresh_server: NatsServer, stream_name: str, kind: str
) -> None:
    async with ns.connect(fresh_server.url, request_timeout=0.2, reconnect_timeout=1.5) as js:
        stream = await js.streams.ensure(stream_name)
        fresh_server.kill()
        began = time.monotonic()

        with pytest.raises(ns.errors.ConnectionLostError, match=stream_name):
            await (stream.read().bounds() if kind == "read" else stream.ordered().__aenter__())

        assert time.monotonic() - began > 1.4
