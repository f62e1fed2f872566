"""A connection for the tests of chunks: patient, as a busy machine stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from natsstream import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import JetStream
    from natsstream.testing import NatsNode


@pytest_asyncio.fixture
async def js(server: NatsNode) -> AsyncIterator[JetStream]:
    """A connection to the server that the whole run shares."""
    async with connect(server.url, request_timeout=30) as js:
        yield js
