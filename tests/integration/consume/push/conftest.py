"""Connections for the tests of push consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from natsstream import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import JetStream, Stream
    from natsstream.testing import NatsNode


@pytest_asyncio.fixture
async def stream(js: JetStream, stream_name: str) -> Stream:
    """An empty stream of this test alone."""
    return await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])


@pytest_asyncio.fixture
async def other(server: NatsNode) -> AsyncIterator[JetStream]:
    """A second connection to the same server."""
    async with connect(server.url) as js:
        yield js
