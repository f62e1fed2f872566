"""Streams for the tests of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

if TYPE_CHECKING:
    from natsstream import JetStream, Stream


@pytest_asyncio.fixture
async def stream(js: JetStream, stream_name: str) -> Stream:
    """A stream that takes batches of both kinds."""
    return await js.streams.ensure(
        stream_name, subjects=[f"{stream_name}.>"], allow_atomic=True, allow_batched=True
    )
