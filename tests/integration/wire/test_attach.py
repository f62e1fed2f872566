"""Standing on a connection that the application has opened with nats-py."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, cast

import nats
import pytest
import pytest_asyncio
from nats.aio.client import Client as NatsPyClient

from natsstream import attach
from natsstream._wire.client import Client
from natsstream.core.core import Core
from natsstream.errors import (
    ConfigError,
    ConnectionClosedError,
    PermissionDeniedError,
    ProtocolError,
    TransportError,
)
from natsstream.events import Connected, Disconnected, PeerUnreadable
from natsstream.jetstream import JetStream
from natsstream.options import ConnectOptions
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.peers import Peer, scripted
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from nats.aio.msg import Msg

    from natsstream.events import ConnectionEvent

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
    assert (await inbox.next_msg(timeout=30)).data == b"beside"
    assert len([message async for message in stream.read(last_seq=100)]) == 100
    await js.close()
    with pytest.raises(ConnectionClosedError):
        await stream.info()
    await application.publish(f"{stream_name}.app", b"after")
    await application.publish(f"{stream_name}.cb", b"after", headers={"A": "b"})
    assert (await inbox.next_msg(timeout=30)).data == b"after"
    await application.flush()

    async def has_both() -> bool:
        return received == [b"beside", b"after"]

    await eventually_async(has_both)
    assert "_process_msg" not in vars(application)
    assert not hasattr(application, "_natsstream")


@pytest.mark.smoke
async def test_lane_takes_over_in_the_middle_of_whatever_is_being_received(
    server: NatsServer, application: Any, stream_name: str
) -> None:
    """Large messages under way: the switch comes within a frame, many times, and none is lost."""
    sender = await connect_nats_py(server.url)
    count = 200
    inbox = await application.subscribe(stream_name, pending_bytes_limit=1 << 30)
    # Twice: nats-py sends the first PING before the SUB, which waits for its flusher.
    await application.flush()
    await application.flush()

    switches = 0

    async def send() -> None:
        for number in range(count):
            # So that there are at least five switches between the first message and the last.
            while switches < number // 40:
                await asyncio.sleep(0)
            await sender.publish(stream_name, (b"%d " % number).ljust(300_000, b"."))
            if number % 10 == 0:
                await sender.flush()
        await sender.flush()

    sending = asyncio.ensure_future(send())
    while not sending.done():
        client = await Client.attach(application, ConnectOptions())
        await client.flush(30)
        await client.close()
        switches += 1
    await sending
    found = [int((await inbox.next_msg(timeout=30)).data.split()[0]) for _ in range(count)]
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


async def test_denied_request_on_an_attached_connection_is_typed() -> None:
    config = 'authorization { users: [{ user: a, password: p, permissions: { publish: "_X.>" } }] }'
    with NatsServer(config=config) as server:
        application = await connect_nats_py(server.url, user="a", password="p")  # noqa: S106 - a test's.
        client = await Client.attach(application, ConnectOptions())
        with pytest.raises(PermissionDeniedError) as raised:
            await client.request("Not.Allowed", timeout=30)
        await client.close()
        await application.close()

    assert raised.value.subject == "Not.Allowed"


async def test_what_can_not_be_attached_is_refused(application: Any) -> None:
    with pytest.raises(ConfigError, match="takes a client of nats-py"):
        attach("nats://127.0.0.1:4222")
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

        async with asyncio.timeout(30):
            with pytest.raises(ConnectionClosedError):
                await reading
    await client.close()
    assert client.is_closed


async def test_client_of_another_event_loop_is_refused(server: NatsServer) -> None:
    """Its transport may be used in its own thread alone; a request would never be answered."""
    elsewhere = asyncio.new_event_loop()
    thread = threading.Thread(target=elsewhere.run_forever)
    thread.start()
    connecting = asyncio.run_coroutine_threadsafe(connect_nats_py(server.url), elsewhere)
    application = await asyncio.wrap_future(connecting)
    try:
        with pytest.raises(ConfigError, match="another event loop"):
            await Client.attach(application, ConnectOptions())
    finally:
        closing = asyncio.run_coroutine_threadsafe(application.close(), elsewhere)
        await asyncio.wrap_future(closing)
        elsewhere.call_soon_threadsafe(elsewhere.stop)
        await asyncio.to_thread(thread.join, 10)
        elsewhere.close()


async def test_attaching_many_times_leaves_the_client_as_it_was(application: Any) -> None:
    after = cast("dict[str, object]", vars(application))
    before = dict(after)
    tasks = asyncio.all_tasks()
    for _ in range(100):
        client = await Client.attach(application, ConnectOptions())
        await client.flush(30)
        await client.close()

    async def changed() -> set[str]:
        return {name for name in after if after[name] is not before.get(name)}

    # The server may be pinging just now, which leaves more for a moment.
    async def is_as_before() -> bool:
        return await changed() <= {"_sid", "_pongs_received", "_pings_outstanding", "_pending"}

    await eventually_async(is_as_before)
    assert after.keys() == before.keys()
    assert (application._subs, application._pongs) == ({}, [])
    assert asyncio.all_tasks() <= tasks


async def test_methods_of_a_subclass_and_of_the_instance_are_called(server: NatsServer) -> None:
    """As of a program that traces its messages."""
    seen: list[str] = []

    class Traced(NatsPyClient):
        async def _process_msg(
            self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes
        ) -> None:
            seen.append("class")
            await super()._process_msg(sid, subject, reply, data, headers)

    application = cast("Any", Traced())
    await application.connect(server.url)
    errors = application._process_err

    async def process_err(text: str) -> None:
        seen.append("instance")
        await errors(text)

    application._process_err = process_err
    client = await Client.attach(application, ConnectOptions())
    inbox = await application.subscribe("traced")
    await application.publish("traced", b"1")
    await inbox.next_msg(30)
    await application._process_err("permissions violation")
    await client.close()

    assert seen == ["class", "instance"]
    assert application._process_err is process_err
    await application.close()


async def test_callback_of_the_application_is_called_when_a_listener_of_ours_fails(
    fresh_server: NatsServer,
) -> None:
    told = asyncio.Event()

    async def reconnected() -> None:
        told.set()

    def fails(event: object) -> None:
        raise RuntimeError(repr(event))

    application = await connect_nats_py(
        fresh_server.url,
        reconnected_cb=reconnected,
        reconnect_time_wait=cast("int", 0.1),
        max_reconnect_attempts=-1,  # The default of 60 is over in 6 s.
    )
    client = await Client.attach(application, ConnectOptions())
    client.listen(fails)
    await asyncio.to_thread(fresh_server.restart)

    async with asyncio.timeout(30):
        await told.wait()
    await client.flush(30)
    await client.close()
    await application.close()


async def test_application_that_does_not_reconnect_ends_ours(fresh_server: NatsServer) -> None:
    application = await connect_nats_py(fresh_server.url, allow_reconnect=False)
    client = await Client.attach(application, ConnectOptions(ping_interval=0.1))
    fresh_server.pause()  # nats-py alone would wait for minutes.
    request = asyncio.ensure_future(client.request("a", timeout=60))

    async with asyncio.timeout(30):
        with pytest.raises(TransportError):
            await request
        with pytest.raises(ConnectionClosedError):
            await client.wait_connected(60)

    fresh_server.resume()
    await client.close()
    await application.close()


async def test_drain_of_the_application_ends_ours(application: Any) -> None:
    client = await Client.attach(application, ConnectOptions())
    request = asyncio.ensure_future(client.request("a.service", timeout=60))
    async with Core(client).subscribe("a.service"):  # Listens, and never answers.
        await asyncio.wait([request], timeout=0.01)
        async with asyncio.timeout(30):
            await application.drain()
            with pytest.raises(TransportError):
                await request
    assert client.is_closed
    await client.close()


@pytest.mark.parametrize(
    "nonsense",
    [b"x" * 20_000 + b"\r\n", b'INFO {"max_payload":"x"}\r\n', b"INFO " + b"[" * 50_000 + b"\r\n"],
    ids=["text", "type", "depth"],
)
async def test_bytes_that_are_no_nats_end_an_attached_connection_which_returns(
    nonsense: bytes,
) -> None:
    async def spoils(peer: Peer) -> None:
        await peer.greet()
        await peer.until(b"PUB spoil")
        peer.writer.write(nonsense)
        await peer.answer_pings()

    async def good(peer: Peer) -> None:
        await peer.greet()
        await peer.answer_pings()

    async with scripted(spoils, good) as url:
        application = await connect_nats_py(url, reconnect_time_wait=0)
        client = await Client.attach(application, ConnectOptions())
        events: list[ConnectionEvent] = []
        client.listen(events.append)
        client.write(client.publish_command("spoil", "", b"", b""))

        async def is_back() -> bool:
            return client.is_connected and client.connections == 2

        await eventually_async(is_back, within_s=40)
        await client.flush(30)
        assert [type(each) for each in events] == [PeerUnreadable, Disconnected, Connected]
        await client.close()
        await application.close()


async def test_server_of_an_application_that_says_nonsense_of_itself_is_refused() -> None:
    async def lies(peer: Peer) -> None:
        peer.writer.write(b'INFO {"server_id":"x","version":"2.15.1","max_payload":"x"}\r\n')
        await peer.until(b"PING\r\n")
        peer.writer.write(b"PONG\r\n")
        await peer.answer_pings()

    async with scripted(lies) as url:
        application = await connect_nats_py(url)
        with pytest.raises(ProtocolError, match="max_payload"):
            await Client.attach(application, ConnectOptions())
        await application.close()
