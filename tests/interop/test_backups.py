"""Backups of the nats CLI restored by natsstream, and the other way round."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream import connect
from tests.support.eventually import eventually_async
from tests.support.streams import change, consumer_count, fill

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from natsstream import JetStream, Stream
    from natsstream.testing import NatsServer
    from tests.interop.clients.nats_cli import NatsCli

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_go]


@pytest_asyncio.fixture
async def js(server: NatsServer) -> AsyncIterator[JetStream]:
    """A connection to the server that the whole run shares."""
    async with connect(server.url) as js:
        yield js


async def content(stream: Stream) -> list[tuple[int, str, int, bytes, bytes]]:
    """Return all that a stream holds."""
    return [
        (each.sequence, each.subject, each.time_ns, each.headers.source, each.data)
        async for each in stream.read()
    ]


async def readers_gone(stream: Stream) -> None:
    """Wait until the server has removed what a read has made; a consumer of the test stays."""

    async def is_one() -> bool:
        return await consumer_count(stream) == 1

    await eventually_async(is_one, within_s=30)


async def filled(js: JetStream, name: str) -> Stream:
    """Return a stream with messages, a hole, headers and a consumer."""
    stream = await fill(js, name, 400, size=900)
    await js.publish(f"{name}.0", b"last", headers={"A": ["1", "2"]})
    await stream.delete_message(7)
    config = {"name": "c", "durable_name": "c", "ack_policy": "explicit"}
    await change(js, f"CONSUMER.CREATE.{name}.c", {"stream_name": name, "config": config})
    return stream


@pytest.mark.proves("1a", "snapshot / restore (backup)")
async def test_cli_restores_what_natsstream_saved(
    js: JetStream, nats_cli: NatsCli, stream_name: str, tmp_path: Path
) -> None:
    stream = await filled(js, stream_name)
    before = await content(stream)
    await readers_gone(stream)
    await stream.backup(tmp_path / "backup")
    await stream.delete()

    await nats_cli.run("stream", "restore", str(tmp_path / "backup"), "--no-progress")

    restored = await js.streams.get(stream_name)
    assert await content(restored) == before
    assert restored.cached.state.consumer_count == 1


@pytest.mark.proves("1a", "snapshot / restore (backup)")
async def test_natsstream_restores_what_the_cli_saved(
    js: JetStream, nats_cli: NatsCli, stream_name: str, tmp_path: Path
) -> None:
    stream = await filled(js, stream_name)
    before = await content(stream)
    await readers_gone(stream)
    flags = ("--no-progress", "--consumers")
    await nats_cli.run("stream", "backup", stream_name, str(tmp_path / "backup"), *flags)
    await stream.delete()

    restored = await js.streams.restore(tmp_path / "backup")
    info = await restored.info()

    assert await content(restored) == before
    assert restored.cached.config.max_msgs == stream.cached.config.max_msgs
    assert info.state.consumer_count == 1


async def test_both_write_the_same_files(
    js: JetStream, nats_cli: NatsCli, stream_name: str, tmp_path: Path
) -> None:
    stream = await filled(js, stream_name)
    await stream.backup(tmp_path / "ours", consumers=False)
    await nats_cli.run("stream", "backup", stream_name, str(tmp_path / "theirs"), "--no-progress")

    ours, theirs = (
        json.loads((tmp_path / name / "backup.json").read_text()) for name in ("ours", "theirs")
    )

    assert {*ours} - {*theirs} == {"natsstream"}
    assert {path.name for path in (tmp_path / "ours").iterdir()} == {
        path.name for path in (tmp_path / "theirs").iterdir()
    }
    # The CLI leaves out what it knows to be the default.
    assert theirs["state"].items() <= ours["state"].items()
    assert {
        name: value for name, value in theirs["config"].items() if name in ours["config"]
    }.items() >= {"name": stream_name, "num_replicas": 1, "storage": "file"}.items()
