"""Streams in memory live as long as a client has them open.

Source: Conat backend/conat/test/sync/dstream-ephemeral.test.ts; core-stream.md sections 5.2 and 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.conat.configuration import Configuration
from natsstream.conat.names import StreamNames
from natsstream.errors import StreamNotFoundError
from tests.support.core_streams import clients, new_name, remove, until_equal

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


@pytest.mark.smoke
async def test_DE4_a_log_in_memory_is_empty_after_closing_and_opening(js: JetStream) -> None:
    name = new_name()
    async with await js.dstream(name, ephemeral=True) as log:
        log.push("x")
        await log.save()
    with pytest.raises(StreamNotFoundError):
        await js.streams.get(StreamNames(f"hub/{name}").stream)
    async with await js.dstream(name, ephemeral=True) as log:
        assert log.get_all() == []


async def test_a_stream_in_memory_stays_while_another_client_has_it(server: NatsNode) -> None:
    name = new_name()
    async with clients(server, 1, name=name, ephemeral=True) as [one]:
        await one.publish("x")
        async with (
            connect(server.url) as js,
            await js.core_stream(name, ephemeral=True) as two,
        ):
            assert two.get_all() == ["x"]
        await one.publish("y")
        assert one.get_all() == ["x", "y"]


async def test_a_stream_on_a_disk_stays(js: JetStream) -> None:
    name = new_name()
    try:
        async with await js.core_stream(name) as stream:
            await stream.publish("x")
        # The first one that opens it decides where it is.
        async with await js.core_stream(name, ephemeral=True) as stream:
            assert stream.get_all() == ["x"]
        async with await js.core_stream(name) as stream:
            assert stream.get_all() == ["x"]
    finally:
        await remove(js, name)


@pytest.mark.parametrize("ephemeral", [True, False], ids=["memory", "disk"])
async def test_what_a_crashed_client_left_is_gone(js: JetStream, ephemeral: bool) -> None:  # noqa: FBT001 - A parameter of a test.
    name = new_name()
    names = StreamNames(f"hub/{name}")
    await js.streams.create(Configuration().capped().to_stream(names, ephemeral=True))
    await js.publish(names.unkeyed, b"left")
    try:
        async with await js.core_stream(name, ephemeral=ephemeral) as stream:
            assert stream.get_all() == []
            held = (await js.streams.get(names.stream)).cached.config
            assert held.storage == ("memory" if ephemeral else "file")
    finally:
        await remove(js, name)


async def test_clients_make_a_deleted_stream_again(server: NatsNode) -> None:
    async with clients(server, ephemeral=True) as [one, two]:
        await one.publish("x")
        await until_equal(two, values=["x"])
        async with connect(server.url) as js:
            await js.streams.delete(StreamNames(f"hub/{one.name}").stream)
        await one.config()
        await until_equal(one, values=[])
        await one.publish("y")
        await two.config()
        await until_equal(one, two, values=["y"])
