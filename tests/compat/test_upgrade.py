"""A server that is upgraded under a connection: what it can do is asked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import UnsupportedServerError
from natsstream.testing import NatsServer, server_binary
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_versions]


async def requests_of(js: JetStream) -> int:
    """Return how many requests JetStream has answered, this one left out."""
    return (await js.account()).api_requests


async def test_level_is_read_once_a_connection_and_again_after_a_reconnect(tmp_path: Path) -> None:
    old = NatsServer(store_dir=tmp_path, binary=server_binary("2.11"))
    with old:
        async with connect(old.url) as js:
            for _ in range(3):
                with pytest.raises(UnsupportedServerError):
                    await js.streams.ensure("S", allow_batched=True)
            # Each `ensure` looks for the stream, and only the first one asks for the level.
            assert await requests_of(js) == 4
            port = old.port
            old.stop()

            with NatsServer(store_dir=tmp_path, port=port, binary=server_binary("2.15")):

                async def is_back() -> bool:
                    return js.is_connected

                await eventually_async(is_back, within_s=20)
                stream = await js.streams.ensure("S", allow_batched=True)

                assert stream.cached.config.allow_batched is True
