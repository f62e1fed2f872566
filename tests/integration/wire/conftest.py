"""Connections below JetStream, for the tests of the wire room."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import pytest

from natsstream._wire.client import Client
from natsstream.options import ConnectOptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from natsstream.events import ConnectionEvent


class Opener(Protocol):
    """Opens a client that notes its events."""

    def __call__(
        self, *servers: str, **options: object
    ) -> AbstractAsyncContextManager[tuple[Client, list[ConnectionEvent]]]: ...


@pytest.fixture
def open_client() -> Opener:
    """Return how to open a client, closed at the end of its block, with the list of its events."""

    @asynccontextmanager
    async def opened(
        *servers: str, **options: object
    ) -> AsyncGenerator[tuple[Client, list[ConnectionEvent]]]:
        # The options of a test are of many types.
        client = await Client.connect(ConnectOptions(servers=servers, **options))  # pyright: ignore[reportArgumentType]
        events: list[ConnectionEvent] = []
        client.listen(events.append)
        try:
            yield client, events
        finally:
            await client.close()

    return opened
