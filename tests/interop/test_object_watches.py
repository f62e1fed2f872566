"""Watches of object stores: every client tells what another one has done and does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from tests.interop.clients.objects import StoreOptions, Told
from tests.interop.pairs import pairs

if TYPE_CHECKING:
    from tests.interop.clients.objects import ObjectClient, WatchingClient

pytestmark = pytest.mark.asyncio


@pytest.mark.proves("1e", "watch options")
@pairs("object", readers=("our", "cli", "js"))
async def test_watch_tells_what_another_client_did_and_does(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str
) -> None:
    reader = cast("WatchingClient", object_reader)
    await object_writer.create_store(StoreOptions(name=stream_name))
    for name in ("first", "replaced", "folder/name"):
        await object_writer.put(stream_name, name, b"data")
    await object_writer.put(stream_name, "replaced", b"other")
    there = [Told("first"), Told("folder/name"), Told("replaced")]

    async with asyncio.TaskGroup() as group:
        # Whether it begins before, between or after the puts, it tells the same in the same order.
        watching = group.create_task(reader.watch(stream_name, len(there) + 2))
        await object_writer.put(stream_name, "new", b"data")
        await object_writer.put(stream_name, "newer", b"data")

    assert watching.result() == [*there, Told("new"), Told("newer")]


@pairs("object", ("our", "cli", "js"), ("our", "cli", "js"))
async def test_watch_tells_of_deletions(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str
) -> None:
    """What nats-py stores for a deletion ends the watch of Go (finding 13)."""
    reader = cast("WatchingClient", object_reader)
    await object_writer.create_store(StoreOptions(name=stream_name))
    for name in ("kept", "deleted"):
        await object_writer.put(stream_name, name, b"data")
    await object_writer.delete(stream_name, "deleted")

    assert await reader.watch(stream_name, 2) == [Told("kept"), Told("deleted", is_deleted=True)]
