"""The blocking door against a real server: a connection, a stream, and the loop under both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import natsstream
from natsstream import blocking
from natsstream.blocking.portal import Portal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream.testing import NatsServer


@pytest.fixture
def js(server: NatsServer) -> Iterator[blocking.JetStream]:
    with blocking.connect(server.url) as context:
        yield context


@pytest.fixture
def stream(js: blocking.JetStream, stream_name: str) -> blocking.Stream:
    """A stream of 2,000 messages: their data is their number, from 1."""
    made = js.streams.ensure(stream_name, subjects=[stream_name], storage="memory")
    with js.publisher() as publisher:
        for number in range(1, 2_001):
            publisher.send(stream_name, str(number).encode())
    return made


@pytest.fixture
def portal(server: NatsServer) -> Iterator[Portal]:
    opened = Portal(natsstream.connect(server.url))
    opened.open()
    yield opened
    opened.stop()
