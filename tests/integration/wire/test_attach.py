"""Standing on a connection that the application has opened with nats-py."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import nats
import pytest
import pytest_asyncio

from natsstream._wire.client import Client
from natsstream.errors import ConfigError, ConnectionClosedError, PermissionDeniedError
from natsstream.options import ConnectOptions
from natsstream.streams.core import Core
from natsstream.streams.jetstream import JetStream
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from nats.aio.msg import Msg

pytestmark = pytest.mark.asyncio

# nats-py leaves the types of its options open.
connect_nats_py = cast("Any", nats).connect


@pytest_asyncio.fixture
async def application(server: NatsServer) -> AsyncIterator[Any]:
    """The application's own connection."""
    connected = await connect_nats_py(server.url)
    yield connected
    if not connected.is_closed:
        await connected.close()


async def test_reads_and_writes_go_through_the_lane(application: Any, stream_name: str) -> None:
    js = JetStream(await Client.attach(application, ConnectOptions()))
    stream = await fill(js, stream_name, 20_000)

    found = [message.sequence async for message in stream.read()]
    table = await stream.read().to_arrow(["sequence"])

    assert js.has_fast_lane
    assert js.raw is application
    assert found == table.column("sequence").to_pylist() == list(range(1, 20_001))
    await js.close()


async def test_application_goes_on_beside_it_and_after_it(
    application: Any, stream_name: str
) -> None:
    inbox = await application.subscribe(f"{stream_name}.app")
    received: list[bytes] = []

    async def note(message: Msg) -> None:
        received.append(message.data)

    await application.subscribe(f"{stream_name}.cb", cb=note)
    js = JetStream(await Client.attach(application, ConnectOptions()))
    stream = await fill(js, stream_name, 100)

    await application.publish(f"{stream_name}.app", b"beside")
    await application.publish(f"{stream_name}.cb", b"beside")
    assert (await inbox.next_msg(timeout=5)).data == b"beside"
    assert len([message async for message in stream.read(last=100)]) == 100
    await js.close()
    with pytest.raises(ConnectionClosedError):
        await stream.info()
    await application.publish(f"{stream_name}.app", b"after")
    await application.publish(f"{stream_name}.cb", b"after", headers={"A": "b"})
    assert (await inbox.next_msg(timeout=5)).data == b"after"
    await application.flush()

    async def has_both() -> bool:
        return received == [b"beside", b"after"]

    await eventually_async(has_both)
    assert "_process_msg" not in vars(application)
    assert not hasattr(application, "_natsstream")


async def test_lane_takes_over_in_the_middle_of_whatever_is_being_received(
    server: NatsServer, application: Any, stream_name: str
) -> None:
    """Large messages under way: the switch comes within a frame, many times, and none is lost."""
    sender = await connect_nats_py(server.url)
    count = 200
    inbox = await application.subscribe(stream_name, pending_bytes_limit=1 << 30)
    await application.flush()

    async def send() -> None:
        for number in range(count):
            await sender.publish(stream_name, (b"%d " % number).ljust(300_000, b"."))
            if number % 10 == 0:
                await sender.flush()
        await sender.flush()

    sending = asyncio.ensure_future(send())
    switches = 0
    while not sending.done():
        client = await Client.attach(application, ConnectOptions())
        await client.flush(10)
        await client.close()
        switches += 1
    await sending
    found = [int((await inbox.next_msg(timeout=10)).data.split()[0]) for _ in range(count)]
    await sender.close()

    assert found == list(range(count))
    assert switches > 3


async def test_lane_is_back_after_a_reconnect_and_callbacks_of_the_application_are_called(
    fresh_server: NatsServer,
) -> None:
    told: list[str] = []

    async def disconnected() -> None:
        told.append("disconnected")

    async def reconnected() -> None:
        told.append("reconnected")

    application = await connect_nats_py(
        fresh_server.url,
        disconnected_cb=disconnected,
        reconnected_cb=reconnected,
        reconnect_time_wait=cast("int", 0.1),
        max_reconnect_attempts=-1,
    )
    js = JetStream(await Client.attach(application, ConnectOptions()))
    stream = await fill(js, "S", 1_000)

    await asyncio.to_thread(fresh_server.restart)
    found = [message.sequence async for message in stream.read()]

    assert found == list(range(1, 1_001))
    assert js.has_fast_lane
    assert told == ["disconnected", "reconnected"]
    await js.close()
    await application.close()
    assert told == ["disconnected", "reconnected", "disconnected"]


@pytest.mark.filterwarnings("ignore:parameter 'timeout':DeprecationWarning")  # nats-py's call.
async def test_websocket_works_without_the_lane_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with NatsServer(config='websocket { host: "127.0.0.1", port: -1, no_tls: true }') as server:
        log = await asyncio.to_thread(server.log_tail, 200)
        port = next(
            line.rpartition(":")[2] for line in log.splitlines() if "websocket clients" in line
        )
        application = await connect_nats_py(f"ws://127.0.0.1:{port}", allow_reconnect=False)
        js = JetStream(await Client.attach(application, ConnectOptions()))
        stream = await fill(js, "S", 2_000)
        await stream.publish("S.h", b"x", headers={"A": ["1", "2"]})

        messages = [message async for message in stream.read()]
        table = await stream.read().to_arrow(["sequence"])
        with_lane = js.has_fast_lane
        await js.close()
        await application.close()

    assert not with_lane
    assert "no fast lane" in caplog.text
    assert [message.sequence for message in messages] == list(range(1, 2_002))
    assert messages[-1].headers.all("A") == ("1", "2")
    assert table.num_rows == 2_001


async def test_denied_request_on_an_attached_connection_is_typed() -> None:
    config = 'authorization { users: [{ user: a, password: p, permissions: { publish: "_X.>" } }] }'
    with NatsServer(config=config) as server:
        application = await connect_nats_py(server.url, user="a", password="p")  # noqa: S106 - a test's.
        client = await Client.attach(application, ConnectOptions())
        with pytest.raises(PermissionDeniedError) as raised:
            await client.request("Not.Allowed", timeout=10)
        await client.close()
        await application.close()

    assert raised.value.subject == "Not.Allowed"


async def test_what_can_not_be_attached_is_refused(application: Any) -> None:
    with pytest.raises(ConfigError, match="takes a client of nats-py"):
        await Client.attach("nats://127.0.0.1:4222", ConnectOptions())
    client = await Client.attach(application, ConnectOptions())
    with pytest.raises(ConfigError, match="already"):
        await Client.attach(application, ConnectOptions())
    await client.close()
    await application.close()
    with pytest.raises(ConfigError, match="not connected"):
        await Client.attach(application, ConnectOptions())


async def test_end_of_the_application_s_connection_ends_ours(application: Any) -> None:
    client = await Client.attach(application, ConnectOptions())
    async with Core(client).subscribe("a") as messages:
        reading = asyncio.ensure_future(anext(messages))
        await asyncio.wait([reading], timeout=0.01)

        await application.close()

        async with asyncio.timeout(5):
            with pytest.raises(ConnectionClosedError):
                await reading
    await client.close()
    assert client.is_closed
