"""Backup, direct reads and chains with every server version: they work, or say what is too old."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import StreamNotFoundError, UnsupportedServerError
from tests.support.streams import fill

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_versions]


async def test_backup_is_restored(js: JetStream, stream_name: str, tmp_path: Path) -> None:
    stream = await fill(js, stream_name, 200, size=3_000)
    before = [(each.sequence, each.time_ns, each.data) async for each in stream.read()]

    await stream.backup(tmp_path / "backup", check=True, chunk_size=4_096)
    await stream.delete()
    restored = await js.streams.restore(tmp_path / "backup")

    assert [(each.sequence, each.time_ns, each.data) async for each in restored.read()] == before


async def test_another_name_is_refused_before_anything_goes_where_it_would_fail(
    js: JetStream, line: tuple[int, int], stream_name: str, tmp_path: Path
) -> None:
    stream = await fill(js, stream_name, 5)
    await stream.backup(tmp_path / "backup")

    if line >= (2, 15):
        copy = await js.streams.restore(
            tmp_path / "backup", name=f"{stream_name}_2", subjects=[f"{stream_name}_2.>"]
        )
        assert (await copy.info()).state.messages == 5
        return
    with pytest.raises(UnsupportedServerError):
        await js.streams.restore(
            tmp_path / "backup", name=f"{stream_name}_2", subjects=[f"{stream_name}_2.>"]
        )
    with pytest.raises(StreamNotFoundError):
        await js.streams.get(f"{stream_name}_2")


async def test_stream_in_memory_is_saved_or_refused(
    js: JetStream, line: tuple[int, int], stream_name: str, tmp_path: Path
) -> None:
    stream = await fill(js, stream_name, 5, storage="memory")

    if line >= (2, 15):
        assert (await stream.backup(tmp_path / "backup")).messages == 5
        return
    with pytest.raises(UnsupportedServerError):
        await stream.backup(tmp_path / "backup")


async def test_direct_reads_of_several_messages_need_2_11(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    stream = await fill(js, stream_name, 6, allow_direct=True)

    message = await stream.direct.get(3)
    assert message is not None
    assert message.sequence == 3
    if line >= (2, 11):
        assert len(await stream.direct.batch(4)) == 4
        assert len(await stream.direct.latest()) == 3
        return
    for call in (stream.direct.batch(4), stream.direct.latest()):
        with pytest.raises(UnsupportedServerError):
            await call


async def test_chain_is_written_and_verified(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 2)
    async with stream.chained(writer="w1") as chain:
        for number in range(3):
            await chain.send(f"{stream_name}.{number}", b"x", headers={"A": "1"})

    assert (await stream.verify_chain(head={"w1": chain.head})).links == 3


@pytest.mark.parametrize("storage", ["file", "memory"])
async def test_purge_up_to_zero_removes_nothing(
    js: JetStream, stream_name: str, storage: str
) -> None:
    stream = await fill(js, stream_name, 6, storage=storage)

    assert await stream.purge(last_seq=0) == 0
    assert await stream.purge(last_seq=0, subject=f"{stream_name}.0") == 0
    assert await stream.purge(last_seq=3, subject=f"{stream_name}.0") == 1
    assert await stream.purge(keep=2) == 3
