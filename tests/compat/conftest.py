"""The server versions that natsstream promises to work with, each as a real server."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
import pytest_asyncio

from natsstream import connect
from natsstream.testing import NatsServer, server_binary
from natsstream.testing.versions import RELEASES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from natsstream import JetStream


@pytest.fixture(scope="session", params=RELEASES)
def versioned(request: pytest.FixtureRequest) -> Iterator[NatsServer]:
    """A server of each version; nothing is reset between tests, so use unique names."""
    with NatsServer(binary=server_binary(cast("str", request.param))) as server:
        yield server


@pytest_asyncio.fixture
async def js(versioned: NatsServer) -> AsyncIterator[JetStream]:
    """A connection to the server of one version."""
    async with connect(versioned.url, request_timeout=30) as js:
        yield js


@pytest.fixture
def line(versioned: NatsServer) -> tuple[int, int]:
    """The release line of the server, such as `(2, 10)`."""
    major, minor, _ = versioned.version.split(".")
    return int(major), int(minor)
