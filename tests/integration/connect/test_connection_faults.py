"""Connections that break in odd ways: frozen peers, garbage after the handshake, TLS."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import connect
from natsstream._wire.client import Client
from natsstream.errors import ConnectError, PayloadTooLargeError, TransportError
from natsstream.options import ConnectOptions
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.patience import set_patience
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

MIB = 1 << 20
INFO = b'INFO {"server_id":"x","version":"2.15.1","headers":true,"max_payload":1048576%b}\r\n'


def client_of(js: JetStream) -> Client:
    """Return the connection under a context."""
    return js._client  # pyright: ignore[reportPrivateUsage]


def nats_of(client: Client) -> Any:
    """Return nats-py's client under a connection."""
    return client._nats  # pyright: ignore[reportPrivateUsage]


@asynccontextmanager
async def fake_server(*scripts: tuple[bytes, bytes], hangs_up: bool) -> AsyncGenerator[str]:
    """Run a program that greets, answers the handshake, and hangs up if told to; gives its URL.

    Args:
        scripts: Greeting and answer to PING, one for each connection; the last is for all others.
        hangs_up: Ends each connection when the client has sent its first command.
    """
    left = list(scripts)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        info, after_ping = left.pop(0) if len(left) > 1 else left[0]
        writer.write(info)
        while (await reader.readline()) not in (b"PING\r\n", b""):
            pass
        writer.write(after_ping)
        await (reader.readline() if hangs_up else reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def fill_the_socket(client: Client) -> None:
    """Write until the peer, which reads nothing, has filled every buffer on the way."""
    transport = nats_of(client)._transport._io_writer.transport
    while not transport.get_write_buffer_size() > 2 * MIB:
        client.write(client.publish_command("nobody.listens", "", b"", bytes(MIB)))


async def test_closing_a_connection_to_a_frozen_server_ends_in_time_and_frees_the_socket(
    fresh_server: NatsServer,
) -> None:
    client = await Client.connect(ConnectOptions(servers=fresh_server.url))
    transport = nats_of(client)._transport._io_writer.transport
    fresh_server.pause()
    await fill_the_socket(client)

    async with asyncio.timeout(30):
        await client.close()

    async def is_freed() -> bool:
        return transport._sock is None

    await eventually_async(is_freed)
    assert transport.get_write_buffer_size() == 0
    fresh_server.resume()


async def test_reconnect_leaves_a_frozen_server_with_bytes_on_their_way(
    server: NatsServer, fresh_server: NatsServer
) -> None:
    """As when the ping timer gives a server up: nats-py waits for the old socket to be flushed."""
    client = await Client.connect(ConnectOptions(servers=[fresh_server.url, server.url]))
    nats_of(client).set_server_pool([server.url])
    fresh_server.pause()
    await fill_the_socket(client)

    await nats_of(client).force_reconnect()

    async def is_elsewhere() -> bool:
        return client.connections == 2 and client.url == server.url

    await eventually_async(is_elsewhere)
    await client.close()
    fresh_server.resume()


async def test_request_that_failed_while_the_server_was_away_is_not_done_when_it_is_back(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await fill(js, stream_name, 10)
        await asyncio.to_thread(fresh_server.kill)
        await eventually_async(lambda: connected(js, is_connected=False))
        set_patience(js, request_timeout=1)

        with pytest.raises(TransportError):
            await js.streams.delete(stream_name)
        with pytest.raises(TransportError):
            await js.publish(f"{stream_name}.0", b"x", timeout=0.3)
        cancelled = asyncio.ensure_future(js.streams.delete(stream_name))
        await asyncio.wait([cancelled], timeout=0.05)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        set_patience(js, request_timeout=30)
        await asyncio.to_thread(fresh_server.start)
        await eventually_async(lambda: connected(js, is_connected=True))

        assert (await stream.info()).state.messages == 10
        assert nats_of(client_of(js))._pending_data_size == 0


async def test_request_that_was_refused_or_answered_leaves_no_reply_behind(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name])
    replies = client_of(js).requests._waiting  # pyright: ignore[reportPrivateUsage]

    with pytest.raises(PayloadTooLargeError):
        await js.publish(stream_name, bytes(64 * MIB))
    await js.publish(stream_name, b"x")

    assert replies == {}


async def connected(js: JetStream, *, is_connected: bool) -> bool:
    """Tell whether the connection is as wanted."""
    return js.is_connected is is_connected


async def test_server_that_was_announced_is_taken_when_the_first_is_gone(
    server: NatsServer,
) -> None:
    """In a cluster one URL is enough: the servers tell of each other."""
    info = INFO % (b',"connect_urls":["127.0.0.1:%d"]' % server.port)
    async with fake_server((info, b"PONG\r\n"), hangs_up=True) as url:
        client = await Client.connect(ConnectOptions(servers=url))

        async def is_elsewhere() -> bool:
            return client.url == server.url and client.is_connected

        await eventually_async(is_elsewhere)
        await client.close()


@pytest.mark.parametrize(
    ("greeting", "answer"),
    [
        (INFO % b"", b"-ERR 'Maximum Connections Exceeded'\r\n"),
        (INFO % b"", b"INFO {}\r\nPONG\r\n"),
        (b"INFO 5\r\n", b""),
        (b"INFO {\r\n", b""),
        (b"INFO \xff\r\n", b""),
        (b'INFO {"connect_urls":5}\r\n', b"PONG\r\n"),
        (b"x" * 100_000, b""),
        (b"", b""),
    ],
)
async def test_handshake_that_goes_wrong_is_a_typed_error_and_leaves_no_task(
    greeting: bytes, answer: bytes
) -> None:
    before = asyncio.all_tasks()
    async with fake_server((greeting, answer), hangs_up=True) as url:
        with pytest.raises(ConnectError):
            await Client.connect(ConnectOptions(servers=url, connect_timeout=1))

    async def is_clean() -> bool:
        return asyncio.all_tasks() <= before

    await eventually_async(is_clean)


@pytest.mark.parametrize("garbage", [b"MSG what is this now\r\n", b"what is this\r\n", b""])
async def test_server_that_breaks_after_each_handshake_leaves_no_task(garbage: bytes) -> None:
    before = asyncio.all_tasks()
    async with fake_server((INFO % b"", b"PONG\r\n" + garbage), hangs_up=True) as url:
        client = await Client.connect(ConnectOptions(servers=url))
        first = nats_of(client)._reconnection_task

        async def is_tried_again() -> bool:
            return nats_of(client)._reconnection_task not in (first, None)

        await eventually_async(is_tried_again)
        with pytest.raises(TransportError):
            await client.request("a", timeout=0.5)
        await client.close()

    async def is_clean() -> bool:
        return asyncio.all_tasks() <= before

    await eventually_async(is_clean)


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    ("greeting", "answer"),
    [
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", b""),
        (b"INFO 5\r\n", b""),
        (b'INFO {"connect_urls":5}\r\n', b"PONG\r\n"),
        (b"x" * 100_000, b""),
        (INFO % b"", b"PONG\r\nwhat is this\r\n"),
        (INFO % b"", b"PONG\r\nMSG what is this now\r\n"),
        (INFO % b"", b"-ERR 'Authorization Violation'\r\n"),
    ],
)
async def test_stranger_at_the_address_does_not_end_the_attempts_to_reconnect(
    greeting: bytes, answer: bytes
) -> None:
    """As behind a proxy while the servers restart."""
    good = (INFO % b"", b"PONG\r\nPONG\r\n")
    async with fake_server(good, (greeting, answer), good, hangs_up=True) as url:
        client = await Client.connect(ConnectOptions(servers=url))

        async def is_back() -> bool:
            return client.connections >= 2

        await eventually_async(is_back)
        await client.close()


async def test_cancelled_connecting_leaves_nothing() -> None:
    before = asyncio.all_tasks()
    async with fake_server((INFO % b"", b""), hangs_up=False) as url:
        connecting = asyncio.ensure_future(Client.connect(ConnectOptions(servers=url)))
        await asyncio.wait([connecting], timeout=0.1)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting

        async def is_clean() -> bool:
            return asyncio.all_tasks() <= before

        await eventually_async(is_clean)


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that this process trusts, and its key."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return certificate, key


async def test_lane_reads_and_writes_through_tls_and_after_a_restart(
    certificate: tuple[Path, Path], stream_name: str
) -> None:
    files = f'cert_file: "{certificate[0]}", key_file: "{certificate[1]}"'
    with NatsServer(config=f"tls {{ {files} }}", max_payload_bytes=16 * MIB) as server:
        async with connect(server.url, request_timeout=30) as js:
            stream = await fill(js, stream_name, 20_000)
            await stream.publish(f"{stream_name}.0", bytes(8 * MIB))

            found = [message.sequence async for message in stream.read()]
            await asyncio.to_thread(server.restart)
            table = await stream.read().to_arrow(["sequence", "data"])

    assert found == list(range(1, 20_002))
    assert table.column("sequence").to_pylist() == found
    assert cast("bytes", table.column("data").to_pylist()[-1]) == bytes(8 * MIB)


async def test_messages_that_wait_for_a_server_are_counted_when_the_connection_closes(
    fresh_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(fresh_server.url) as js:
        await asyncio.to_thread(fresh_server.kill)

        async def is_lost() -> bool:
            return not js.is_connected

        await eventually_async(is_lost)
        for _ in range(2):
            await js.core.publish("s", b"x")
        await js.core.publish("s", b"x", headers={"A": "1"})

    told = [each.getMessage() for each in caplog.records if "not sent" in each.getMessage()]
    assert len(told) == 1
    assert told[0].endswith("messages of js.core.publish that were not sent: 3")


async def test_readers_that_end_without_a_server_count_as_no_message(
    fresh_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await js.streams.create("S", subjects=["s"])
        bucket = await js.kv.create("b")
        await js.publish("s", b"x")
        reading = aiter(stream.read(until_closed=False))
        async with stream.ordered() as tail, stream.latest() as latest, bucket.watch():
            assert await anext(tail)
            assert await anext(latest)
            assert await anext(reading)
            await asyncio.to_thread(fresh_server.kill)
        await reading.aclose()

    assert [each.getMessage() for each in caplog.records if "not sent" in each.getMessage()] == []
