"""A sync that no retry mends ends everything that reads it, with its error."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.conat.feed import Announcement
from natsstream.conat.names import StreamNames
from natsstream.errors import PermissionDeniedError
from natsstream.testing import NatsServer
from tests.support.conat_layers import heard

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

# A stream that is gone is made again, which the guest may not do.
USERS = """
authorization {
  users = [
    { user: owner, password: p }
    { user: guest, password: p, permissions: { publish: { deny: ["$JS.API.STREAM.CREATE.>"] } } }
  ]
}
"""
LAYERS = {"core_stream": "a", "dkv": "a", "dstream": "a", "dko": "__dko__a"}


@asynccontextmanager
async def owner_and_guest() -> AsyncGenerator[tuple[JetStream, JetStream]]:
    """Connect as both users of a server."""
    with NatsServer(config=USERS) as server:
        urls = (server.url.replace("nats://", f"nats://{user}:p@") for user in ("owner", "guest"))
        owner, guest = (connect(url) for url in urls)
        async with owner as one, guest as two:
            yield one, two


async def take_away(owner: JetStream, name: str) -> None:
    """Delete a stream, and tell its clients to look at it."""
    names = StreamNames(f"hub/{name}")
    await owner.streams.delete(names.stream)
    note = Announcement(is_config_changed=True)
    await owner.core.publish(names.control, note.to_json())


async def read(changes: Any) -> list[Any]:
    """Return all changes until the end."""
    return [each async for each in changes]


@pytest.mark.parametrize("layer", LAYERS)
async def test_loops_over_changes_end_with_the_error_of_the_sync(layer: str) -> None:
    async with owner_and_guest() as (owner, guest):
        async with await getattr(owner, layer)("a"):
            pass
        async with await getattr(guest, layer)("a") as opened:
            ends = heard(opened, "closed")
            reading = asyncio.ensure_future(read(opened.changes()))
            await take_away(owner, LAYERS[layer])
            with pytest.raises(PermissionDeniedError) as caught:
                await asyncio.wait_for(reading, 30)
            assert ends == [caught.value]
            for call in (opened.get_all, opened.changes):
                with pytest.raises(PermissionDeniedError):
                    call()
        assert ends == [caught.value]


@pytest.mark.parametrize("layer", ["dkv", "dstream", "dko"])
async def test_nothing_is_written_once_the_sync_has_ended(layer: str) -> None:
    async with owner_and_guest() as (owner, guest):
        async with await getattr(owner, layer)("a"):
            pass
        async with await getattr(guest, layer)("a") as opened:
            ended = asyncio.get_running_loop().create_future()
            opened.on("closed", ended.set_result)
            await take_away(owner, LAYERS[layer])
            await asyncio.wait_for(ended, 30)
            write = opened.push if layer == "dstream" else partial(opened.set, "k")
            with pytest.raises(PermissionDeniedError):
                write({"field": 1})
            assert not opened.has_unsaved_changes()


async def test_a_changefeed_ends_with_the_error_of_its_sync() -> None:
    async with (
        owner_and_guest() as (owner, guest),
        await owner.astream("a") as written,
        await guest.astream("a") as log,
    ):
        feed = await log.changefeed()
        await written.publish("x")
        assert (await anext(feed)).mesg == "x"
        reading = asyncio.ensure_future(read(feed))
        await take_away(owner, "a")
        with pytest.raises(PermissionDeniedError):
            await asyncio.wait_for(reading, 30)


@pytest.mark.parametrize("layer", LAYERS)
async def test_closing_ends_loops_without_an_error(js: JetStream, layer: str) -> None:
    opened = await getattr(js, layer)(f"closed {layer}")
    ends = heard(opened, "closed")
    reading = asyncio.ensure_future(read(opened.changes()))
    await asyncio.sleep(0)
    await opened.close()
    await opened.close()
    assert await reading == []
    assert ends == [None]
