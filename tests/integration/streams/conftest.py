"""Connections for the integration tests of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from natsstream import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import JetStream
    from natsstream.testing import NatsServer


@pytest_asyncio.fixture
async def js(server: NatsServer) -> AsyncIterator[JetStream]:
    """A connection to the server that the whole run shares."""
    async with connect(server.url) as js:
        yield js


@pytest_asyncio.fixture
async def fresh_js(fresh_server: NatsServer) -> AsyncIterator[JetStream]:
    """A connection to the server of this test alone."""
    async with connect(fresh_server.url) as js:
        yield js
