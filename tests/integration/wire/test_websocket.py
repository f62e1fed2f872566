"""Standing on a WebSocket of the application: without the lane, by nats-py's own parser."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import nats
import pytest
import pytest_asyncio

from natsstream._wire.client import Client
from natsstream.errors import PermissionDeniedError
from natsstream.events import Connected, Disconnected, PeerSilent
from natsstream.jetstream import JetStream
from natsstream.options import ConnectOptions
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream.events import ConnectionEvent

# The first is nats-py's call of aiohttp.
pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.filterwarnings("ignore:parameter 'timeout':DeprecationWarning"),
]

CONFIG = """
websocket { host: "127.0.0.1", port: -1, no_tls: true }
authorization { users: [
  { user: a, password: p, permissions: { publish: { deny: "No.>" } } }
] }
"""


@pytest_asyncio.fixture
async def web_server() -> AsyncIterator[NatsServer]:
    """A server that listens for WebSockets, too."""
    with NatsServer(config=CONFIG, max_payload_bytes=8 << 20) as server:
        yield server


@pytest_asyncio.fixture
async def application(web_server: NatsServer) -> AsyncIterator[Any]:
    """The application's connection, by WebSocket."""
    log = await asyncio.to_thread(web_server.log_tail, 200)
    port = next(line.rpartition(":")[2] for line in log.splitlines() if "websocket clients" in line)

    async def ignore(error: Exception) -> None:
        del error  # nats-py would log each.

    connected = await cast("Any", nats).connect(
        f"ws://127.0.0.1:{port}",
        user="a",
        password="p",  # noqa: S106 - a test's.
        error_cb=ignore,
        connect_timeout=1,
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.1,
    )
    yield connected
    await connected.close()


async def test_reading_works_without_the_lane_and_says_so(
    application: Any, caplog: pytest.LogCaptureFixture
) -> None:
    js = JetStream(await Client.attach(application, ConnectOptions()))
    stream = await fill(js, "S", 2_000)
    await stream.publish("S.h", bytes(4 << 20), headers={"A": ["1", "2"]})

    messages = [message async for message in stream.read()]
    table = await stream.read().to_arrow(["sequence"])
    with_lane = js.has_fast_lane
    await js.close()

    assert not with_lane
    assert "no fast lane" in caplog.text
    assert [message.sequence for message in messages] == list(range(1, 2_002))
    assert messages[-1].headers.all("A") == ("1", "2")
    assert messages[-1].data == bytes(4 << 20)
    assert table.num_rows == 2_001


async def test_idle_connection_is_kept(application: Any) -> None:
    """The answers to pings go through nats-py's parser, where no lane hears them."""
    # As of a silent server with the lane: a server without a CPU is not given up here.
    options = ConnectOptions(ping_interval=0.1, max_missed_pings=100)
    client = await Client.attach(application, options)
    events: list[ConnectionEvent] = []
    client.listen(events.append)
    asked = application._pongs_received

    async def was_asked_and_heard() -> bool:
        dog = client._state.watchdog  # pyright: ignore[reportPrivateUsage]
        is_heard = dog._has_heard and dog._missed == 0  # pyright: ignore[reportPrivateUsage]
        return application._pongs_received >= asked + 5 and is_heard

    await eventually_async(was_asked_and_heard)
    assert events == []
    assert client.connections == 1
    await client.close()


async def test_frozen_server_is_left_and_found_again(
    application: Any, web_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    client = await Client.attach(application, ConnectOptions(ping_interval=0.2))
    events: list[ConnectionEvent] = []
    client.listen(events.append)
    frames: list[object] = []
    await client.subscribe("a", frames.extend)
    web_server.pause()

    async def is_left() -> bool:
        return not client.is_connected

    await eventually_async(is_left)
    web_server.resume()
    await client.wait_connected(30)
    client.write(client.publish_command("a", "", b"", b"x"))
    await client.flush(30)

    assert [type(each) for each in events] == [PeerSilent, Disconnected, Connected]
    assert len(frames) == 1
    assert caplog.text.count("no fast lane") == 1
    await client.close()


async def test_denied_request_is_typed_whatever_the_case_of_its_subject(application: Any) -> None:
    """nats-py makes the server's words lower case."""
    client = await Client.attach(application, ConnectOptions())

    with pytest.raises(PermissionDeniedError) as raised:
        await client.request("No.Way", timeout=30)

    assert raised.value.subject == "No.Way"
    await client.close()
