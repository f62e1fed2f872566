"""Streams for the tests of consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

if TYPE_CHECKING:
    from natsstream import JetStream, Stream


@pytest_asyncio.fixture
async def stream(js: JetStream, stream_name: str) -> Stream:
    """An empty stream of this test alone."""
    return await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
