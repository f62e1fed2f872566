"""natsstream on a connection of nats-py: what it writes and reads is what it does on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import nats
import pytest
import pytest_asyncio

from natsstream import attach
from tests.interop.clients.client import Ack, Stored, Taken
from tests.interop.clients.nats_py_streams import PyStreams
from tests.interop.clients.ours import Ours

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream.testing import NatsServer
    from tests.interop.clients.client import Client, Pushed

pytestmark = [pytest.mark.asyncio, pytest.mark.sampled]

NAME = "billing"
DATA = bytes(range(256))


@pytest_asyncio.fixture
async def sides(server: NatsServer) -> AsyncIterator[tuple[Ours, PyStreams]]:
    """natsstream and nats-py on one connection."""
    client = await cast("Any", nats).connect(server.url, connect_timeout=30)
    try:
        async with attach(client) as js:
            yield Ours(js), PyStreams(client.jetstream(timeout=30))
    finally:
        await client.close()


async def test_message_over_a_shared_connection_reads_as_it_was_written(
    sides: tuple[Ours, PyStreams], reader: Client, stream_name: str
) -> None:
    attached, theirs = sides
    await attached.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})
    headers = {"A": ["1", "zwölf"], "a": [""]}

    assert await attached.publish(f"{stream_name}.a", DATA, headers=headers) == Ack(stream_name, 1)
    assert await theirs.publish(f"{stream_name}.a", b"2", headers={"B": ["2"]}) == Ack(
        stream_name, 2
    )

    stored = [
        Stored(f"{stream_name}.a", 1, headers, DATA),
        Stored(f"{stream_name}.a", 2, {"B": ["2"]}, b"2"),
    ]
    assert await reader.read(stream_name, 2) == stored
    assert await attached.read(stream_name, 2) == stored


async def test_consumer_over_a_shared_connection_is_shared_with_others(
    sides: tuple[Ours, PyStreams], worker: Pushed, stream_name: str
) -> None:
    attached, theirs = sides
    await attached.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})
    await theirs.create_consumer(stream_name, {"durable_name": NAME, "ack_policy": "explicit"})
    # One message: what is new may come before what a nak gave back a moment ago.
    await worker.publish(f"{stream_name}.a", b"0")

    assert await attached.settle(stream_name, NAME, "nak") == Taken(1, 1)
    assert await worker.settle(stream_name, NAME, "ack") == Taken(1, 2)
    for number in (1, 2):
        await worker.publish(f"{stream_name}.a", b"%d" % number)
    assert await theirs.settle(stream_name, NAME, "ack") == Taken(2, 1)
    assert await attached.settle(stream_name, NAME, "ack") == Taken(3, 1)
