"""Writes whose acks are lost, and users who may see some keys only."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import (
    ConnectionLostError,
    KeyExistsError,
    NatsStreamError,
    PermissionDeniedError,
    TransportError,
)
from natsstream.testing import FaultProxy, NatsServer
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.kv.key_value import KeyValue
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


async def opened(js: JetStream, name: str) -> list[KeyValue]:
    """Return the bucket in a list, or none where a busy server was too slow."""
    with suppress(TransportError):
        return [await js.kv.get(name)]
    return []


async def test_read_in_flight_outlives_a_break(
    server: NatsNode, js: JetStream, stream_name: str
) -> None:
    await (await js.kv.create(stream_name, storage="memory")).put("a", b"1")
    with FaultProxy(server.port) as proxy:
        async with connect(proxy.url, request_timeout=30, reconnect_timeout=60) as ours:
            kv = await ours.kv.get(stream_name)
            async with js.core.subscribe(f"$JS.API.DIRECT.GET.KV_{stream_name}.>") as asked:
                proxy.stall(direction="to_client")
                reading = asyncio.create_task(kv.get("a"))
                assert await asked.next(timeout=30)
                proxy.cut()
                proxy.heal()
                entry = await reading
            assert entry is not None
            assert entry.value == b"1"


async def test_read_behind_writes_that_fill_the_buffer_is_refused_at_once(
    server: NatsNode, js: JetStream, stream_name: str
) -> None:
    """The loop has no turn between the break and the read, so nobody knows of the break yet."""
    await js.kv.create(stream_name, storage="memory")
    with FaultProxy(server.port) as proxy:
        async with connect(proxy.url, request_timeout=30, reconnect_timeout=60) as ours:
            kv = await ours.kv.get(stream_name)
            proxy.cut()
            for size in (1 << 20, 1):
                with suppress(ConnectionLostError):
                    for _ in range(1_000_000):
                        await ours.core.publish("x", b"x" * size)
            began = asyncio.get_running_loop().time()
            with pytest.raises(ConnectionLostError, match="8 MiB of writes wait"):
                await kv.get("a")
            assert asyncio.get_running_loop().time() - began < 30
            proxy.heal()


@pytest.mark.parametrize("fault", ["stall", "cut"])
async def test_write_whose_ack_is_lost_is_told_to_be_unknown(
    server: NatsNode, js: JetStream, stream_name: str, fault: str
) -> None:
    """It was stored here; the error says how to find out, and that create is safe to repeat."""
    patient = await js.kv.create(stream_name, storage="memory")
    patience_s = 1 if fault == "stall" else 30
    with FaultProxy(server.port) as proxy:
        async with connect(proxy.url, request_timeout=patience_s, reconnect_timeout=60) as ours:
            (kv,) = await eventually_async(lambda: opened(ours, stream_name), within_s=30)
            proxy.stall(direction="to_client")
            async with js.core.subscribe(f"$KV.{stream_name}.a") as records:

                async def write() -> None:
                    with pytest.raises(TransportError) as caught:
                        await kv.create("a", b"1")
                    assert "consistent=True" in caught.value.hint

                writing = asyncio.create_task(write())
                await anext(records)  # The server has it; the ack is stuck in the proxy.
                if fault == "cut":
                    proxy.cut()
                await writing
            proxy.heal()

    with pytest.raises(KeyExistsError):
        await patient.create("a", b"1")
    entry = await patient.get("a", consistent=True)
    assert entry is not None
    assert entry.value == b"1"


_USERS = """
accounts {
  A {
    jetstream: enabled
    users: [
      { user: all, password: all }
      { user: some, password: some, permissions: {
          publish: ["$JS.API.STREAM.INFO.KV_b", "$JS.API.DIRECT.GET.KV_b.$KV.b.mine.>",
                    "$KV.b.mine.>"]
          subscribe: ["_INBOX.>"]
      } }
    ]
  }
}
"""


async def test_user_may_be_allowed_some_keys_only() -> None:
    """A key is asked for in the subject of the request, as nats.go and nats.js do."""
    with NatsServer(config=_USERS) as server:
        url = server.url.removeprefix("nats://")
        async with connect(f"nats://all:all@{url}") as js:
            every = await js.kv.create("b", storage="memory")
            await every.put("mine.a", b"1")
            await every.put("theirs", b"2")
        async with connect(f"nats://some:some@{url}") as js:
            kv = await js.kv.get("b")
            entry = await kv.get("mine.a")
            assert entry is not None
            assert entry.value == b"1"
            assert await kv.get("mine.b") is None
            assert await kv.put("mine.b", b"3")
            for call in (kv.get("theirs"), kv.put("theirs", b"4")):
                with pytest.raises(PermissionDeniedError):
                    await call
            with pytest.raises(NatsStreamError):
                await kv.get("mine.a", revision=2)  # Sequences are not allowed, so no other's key.
