"""A stream that others copy is restored: they go on behind it, as the guide says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream import StreamSource
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio


async def holds(stream: Stream, wanted: list[bytes]) -> None:
    async def is_so() -> bool:
        found = [message.data async for message in stream.read()]
        assert len(found) <= len(wanted), found
        return found == wanted

    await eventually_async(is_so, within_s=40)


@pytest.mark.parametrize("is_copy_restored", [False, True])
async def test_copy_continues_behind_the_restored_messages(
    js: JetStream, stream_name: str, tmp_path: Path, *, is_copy_restored: bool
) -> None:
    origin = await js.streams.create(stream_name, subjects=[stream_name])
    copy = await js.streams.create(f"{stream_name}_copy", sources=[stream_name])
    for number in range(3):
        await js.publish(stream_name, b"%d" % number)
    await holds(copy, [b"0", b"1", b"2"])
    await origin.backup(tmp_path / "origin")
    await copy.backup(tmp_path / "copy")
    if is_copy_restored:
        await copy.delete()
    else:
        await js.streams.update(copy.name, sources=[])
    await origin.delete()

    origin = await js.streams.restore(tmp_path / "origin")
    source = StreamSource(name=stream_name, start_seq=origin.cached.state.last_seq + 1)
    if is_copy_restored:
        copy = await js.streams.restore(tmp_path / "copy", sources=[source])
    else:
        await js.streams.update(copy.name, sources=[source])
    await js.publish(stream_name, b"new")
    await holds(copy, [b"0", b"1", b"2", b"new"])

    await js.streams.update(copy.name, sources=[stream_name])
    await js.publish(stream_name, b"newer")
    await holds(copy, [b"0", b"1", b"2", b"new", b"newer"])
