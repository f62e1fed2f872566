"""Atomic batches whose messages are gathered, whose block is left, or whose connection breaks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import ConnectionLostError, UsageError
from natsstream.testing import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream import JetStream, Stream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


@pytest.fixture
def proxy(server: NatsNode) -> Iterator[FaultProxy]:
    with FaultProxy(server.port) as proxy:
        yield proxy


async def test_messages_without_a_pause_between_them_go_out_in_few_writes(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = stream._api.client  # pyright: ignore[reportPrivateUsage]
    writes: list[int] = []
    write = client.write

    def counted(commands: bytes) -> bool:
        writes.append(len(commands))
        return write(commands)

    monkeypatch.setattr(client, "write", counted)
    async with stream.batch() as tx:
        for number in range(1_000):
            await tx.add(f"{stream.name}.a", b"%d" % number)
        ack = await tx.commit()

    assert len(writes) < 20
    assert ack.count == 1_000
    assert [int(m.data) async for m in stream.read(first_seq=1)] == list(range(1_000))


async def test_messages_of_the_largest_size_go_through(stream: Stream) -> None:
    largest = stream._api.client.max_payload_bytes - 400  # pyright: ignore[reportPrivateUsage]
    data = bytes(min(largest, 1_000_000))
    async with stream.batch() as tx:
        for _ in range(30):
            await tx.add(f"{stream.name}.a", data)
        ack = await tx.commit(timeout=50)  # 30 MB may meet a slow disk.

    assert ack.count == 30


async def test_a_task_that_adds_when_the_block_is_left_is_told_and_the_place_is_free(
    stream: Stream, proxy: FaultProxy, js: JetStream
) -> None:
    async with connect(proxy.url) as through:
        opened = await through.streams.get(stream.name)
        tx = opened.batch()
        async with tx:
            proxy.stall(direction="to_client")
            adding = asyncio.create_task(tx.add(f"{stream.name}.a", b"x"))
            await asyncio.sleep(0)
        proxy.heal()
        with pytest.raises(UsageError, match="over"):
            await adding
        with pytest.raises(UsageError, match="over"):
            await tx.add(f"{stream.name}.a", b"x")

    assert (await (await js.streams.get(stream.name)).info()).state.messages == 0


async def test_messages_that_were_gathered_are_not_written_to_a_later_connection(
    stream: Stream, proxy: FaultProxy
) -> None:
    async with connect(proxy.url) as js:
        client = js._client  # pyright: ignore[reportPrivateUsage]
        async with (await js.streams.get(stream.name)).batch() as tx:
            await tx.add(f"{stream.name}.a", b"1")
            proxy.reset()
            for _ in range(3):
                await tx.add(f"{stream.name}.a", b"2")
            async with asyncio.timeout(30):
                while client.connections < 2 or not client.is_connected:
                    await asyncio.sleep(0.01)
            with pytest.raises(ConnectionLostError, match="begin it again") as caught:
                await tx.commit()

    assert caught.value.retryable
    assert (await stream.info()).state.messages == 0


async def test_adding_and_leaving_at_once_from_many_tasks_stores_nothing_twice(
    stream: Stream,
) -> None:
    async def store(number: int) -> int:
        async with stream.batch() as tx:
            for _ in range(20):
                await tx.add(f"{stream.name}.{number}", b"%d" % number)
            return (await tx.commit()).count

    counts = await asyncio.gather(*(store(number) for number in range(30)))

    found = [int(m.data) async for m in stream.read(first_seq=1)]
    assert counts == [20] * 30
    # The messages of a batch stand together.
    assert all(len(set(found[at : at + 20])) == 1 for at in range(0, 600, 20))
