"""A process that renames without an end is killed at any moment: the object is always there."""

from __future__ import annotations

import asyncio
import random
import sys
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import ObjectNotFoundError
from natsstream.objects.store_subjects import StoreSubjects
from tests.support.eventually import eventually_async
from tests.support.streams import connections_of

if TYPE_CHECKING:
    from natsstream import JetStream, ObjectStore
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

RENAMER = """
import asyncio, sys
import natsstream as ns

async def main():
    async with ns.connect(sys.argv[1], name=sys.argv[2]) as js:
        box = await js.objects.get(sys.argv[2])
        [name] = [name async for name in box.names()]
        while True:
            new = "b" if name == "a" else "a"
            await box.rename(name, new)
            name = new
            print(name, flush=True)

asyncio.run(main())
"""
RENAMES_MAX = 15
CANCELS = 15
DATA = b"xyz" * 100_000


async def kill_amid_renames(url: str, bucket: str, after: int) -> None:
    """Run the program until it has renamed so often, and kill it in the middle."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", RENAMER, url, bucket, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        for _ in range(after):
            assert await process.stdout.readline()
    finally:
        process.kill()
        await process.wait()


async def rename_for_ever(box: ObjectStore, has_begun: asyncio.Event) -> None:
    """Rename between two names."""
    [name] = [name async for name in box.names()]
    while True:
        new = "b" if name == "a" else "a"
        await box.rename(name, new)
        has_begun.set()
        name = new


async def arrive(js: JetStream, server: NatsNode, box: ObjectStore) -> None:
    """Wait until the store has taken all that was sent by whoever was killed or cancelled."""

    async def is_gone() -> bool:
        return not connections_of(server, box.name)

    await eventually_async(is_gone)
    # A stream takes what it was sent in one row.
    await js.publish(StoreSubjects(box.name).chunk_subject("last"), b"")


async def check(box: ObjectStore) -> None:
    """Check that the object is there under one name, and that the other one is free."""
    [name] = [name async for name in box.names()]
    assert await box.get(name) == DATA
    with pytest.raises(ObjectNotFoundError):
        await box.delete("b" if name == "a" else "a")
    assert await box.get(name) == DATA


async def test_no_kill_loses_the_object(js: JetStream, server: NatsNode, stream_name: str) -> None:
    box = await js.objects.create(stream_name)
    await box.put("a", DATA)
    moment = random.Random(stream_name).randint(1, RENAMES_MAX)  # noqa: S311 - No secret.

    await kill_amid_renames(server.url, stream_name, moment)

    await arrive(js, server, box)
    await check(box)


async def test_no_cancelled_rename_loses_the_object(
    js: JetStream, server: NatsNode, stream_name: str
) -> None:
    # Each is cut at another one of its waits.
    box = await js.objects.create(stream_name, storage="memory")
    await box.put("a", DATA)

    for turns in range(CANCELS):
        has_begun = asyncio.Event()
        renaming = asyncio.ensure_future(rename_for_ever(box, has_begun))
        await has_begun.wait()
        for _ in range(2 * turns):
            await asyncio.sleep(0)
        renaming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await renaming
        await arrive(js, server, box)
        await check(box)
