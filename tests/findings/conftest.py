"""Connections for the tests of nats-py's findings: ours, and nats-py's own beside it.

What nats-py does beside ours is noted in the report (`--junit-xml`) and never
asserted: the day it is mended, no test here fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import nats
import pytest_asyncio

from natsstream import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import JetStream
    from natsstream.testing import NatsNode, NatsServer


@pytest_asyncio.fixture
async def js(server: NatsNode, stream_name: str) -> AsyncIterator[JetStream]:
    """A connection of the test's own name to the server that the whole run shares."""
    async with connect(server.url, name=stream_name, request_timeout=30) as js:
        yield js


@pytest_asyncio.fixture
async def fresh_js(fresh_server: NatsServer) -> AsyncIterator[JetStream]:
    """A connection to the server of this test alone."""
    async with connect(fresh_server.url, request_timeout=30) as js:
        yield js


@pytest_asyncio.fixture
async def nats_py(server: NatsNode) -> AsyncIterator[Any]:
    """nats-py's client on the shared server; it leaves the types of its options open."""

    async def ignore(error: Exception) -> None:
        """Take what nats-py would log, such as a slow consumer."""

    client = await cast("Any", nats).connect(server.url, error_cb=ignore)
    try:
        yield client
    finally:
        await client.close()
