"""Servers are killed and leaders change while objects are moved: whole or not at all."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import ConnectionLostError, NatsStreamError
from tests.support.chunked import held, some_bytes
from tests.support.clusters import connect_to, step_down
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import JetStream
    from natsstream.objects.store import ObjectStore
    from natsstream.testing import NatsCluster, NatsServer

pytestmark = pytest.mark.asyncio

BIG = some_bytes(24 << 20)
SMALL = some_bytes(300_001, seed=2)


async def objects_and_chunks(js: JetStream, box: ObjectStore) -> tuple[set[str], set[str]]:
    """Return the nuids that are pointed to, and those that have chunks."""
    stream = await js.streams.get(f"OBJ_{box.name}")
    prefix = f"$O.{box.name}.C."
    chunks = {each.removeprefix(prefix) for each in await held(stream) if each.startswith(prefix)}
    return {info.nuid async for info in box.list()}, chunks


async def test_a_put_of_bytes_goes_on_when_the_server_was_killed(
    fresh_server: NatsServer,
) -> None:
    async with connect(fresh_server.url, reconnect_timeout=30) as js:
        box = await js.objects.create("b")
        await box.put("a", SMALL)
        is_killed = asyncio.Event()

        def tell(done: int, _total: int | None) -> None:
            if done > 4 << 20:
                is_killed.set()

        task = asyncio.create_task(box.put("a", BIG, progress=tell))
        await is_killed.wait()
        await asyncio.to_thread(fresh_server.kill)
        await asyncio.to_thread(fresh_server.start, deadline_s=30)
        await task

        assert await box.get("a") == BIG
        pointed, chunks = await objects_and_chunks(js, box)
        assert pointed <= chunks

        async def is_swept() -> bool:
            await box.sweep(older_than=0.2)
            return (await objects_and_chunks(js, box))[1] == pointed

        await eventually_async(is_swept)
        assert await box.get("a") == BIG


async def test_a_put_of_a_stream_ends_whole_or_the_old_object_stays(
    fresh_server: NatsServer,
) -> None:
    async with connect(fresh_server.url, reconnect_timeout=30) as js:
        box = await js.objects.create("b")
        await box.put("a", SMALL)
        has_begun, go_on = asyncio.Event(), asyncio.Event()

        async def source() -> AsyncIterator[bytes]:
            yield BIG[: 12 << 20]
            has_begun.set()
            await go_on.wait()
            yield BIG[12 << 20 :]

        task = asyncio.create_task(box.put("a", source()))
        await has_begun.wait()
        await asyncio.to_thread(fresh_server.kill)
        await asyncio.to_thread(fresh_server.start, deadline_s=30)
        go_on.set()
        expected = BIG
        try:
            await task
        except NatsStreamError:
            expected = SMALL  # Chunks in flight when the server was killed are not sent again.
        assert await box.get("a") == expected


async def test_a_download_goes_on_when_the_leader_changes(nats_cluster: NatsCluster) -> None:
    async with connect_to(nats_cluster) as js:
        box = await js.objects.ensure("faults-get", replicas=3, storage="memory")
        await box.put("a", BIG)
        async with box.open("a") as reader:
            got = [await anext(reader)]
            await step_down(js, nats_cluster, "OBJ_faults-get")
            got += [piece async for piece in reader]
        assert b"".join(got) == BIG
        await js.objects.delete("faults-get")


async def test_puts_while_leaders_change_are_whole(nats_cluster: NatsCluster) -> None:
    async with connect_to(nats_cluster) as js:
        box = await js.objects.ensure("faults-put", replicas=3, storage="memory")
        values = {f"o{number % 3}": some_bytes(900_000, seed=number) for number in range(3)}
        is_over = False

        async def write(name: str) -> int:
            puts = 0
            while not is_over or not puts:
                await box.put(name, values[name])
                puts += 1
            return puts

        async def disturb() -> None:
            nonlocal is_over
            await step_down(js, nats_cluster, "OBJ_faults-put")
            is_over = True

        writers = asyncio.gather(*(write(name) for name in values))
        _, puts = await asyncio.gather(disturb(), writers)
        assert min(puts) > 0
        for name, value in values.items():
            assert await box.get(name) == value

        async def is_swept() -> bool:
            await box.sweep(older_than=0.5)
            pointed, chunks = await objects_and_chunks(js, box)
            return pointed == chunks and len(pointed) == 3

        await eventually_async(is_swept)
        await js.objects.delete("faults-put")


async def test_put_that_outlives_its_server_says_that_it_begins_again(
    fresh_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    """No line of a publisher, which the user has not made, reads like a loss."""
    async with connect(fresh_server.url) as js:
        box = await js.objects.create("b")
        is_first = True

        def kill(done: int, total: int | None) -> None:
            nonlocal is_first
            del total
            if is_first and done:
                is_first = False
                fresh_server.kill()

        async def revive() -> None:
            while is_first or js.is_connected:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(fresh_server.start)

        reviving = asyncio.create_task(revive())
        await box.put("p", bytes(20 << 20), progress=kill)
        await reviving

        assert await box.get("p") == bytes(20 << 20)
    told = [each.getMessage() for each in caplog.records if each.name == "natsstream.objects"]
    assert any(each.startswith("put of object 'p' of store b begins again: ") for each in told)
    assert not [each for each in caplog.records if each.name == "natsstream.publisher"]


@pytest.mark.parametrize("retry_for", [0, 1.5])
async def test_a_put_without_a_server_names_the_object_and_the_lost_connection(
    fresh_server: NatsServer, retry_for: float
) -> None:
    async with connect(fresh_server.url, request_timeout=1) as js:
        box = await js.objects.create("b")
        fresh_server.kill()

        async def is_away() -> bool:
            return not js.is_connected

        await eventually_async(is_away)
        began = time.monotonic()
        with pytest.raises(
            ConnectionLostError, match="object 'p' of store b: no reconnect"
        ) as told:
            await box.put("p", b"x", retry_for=retry_for)
        assert time.monotonic() - began < retry_for + 2
        assert "Connect call failed" in told.value.detail
