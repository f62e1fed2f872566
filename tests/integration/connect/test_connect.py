"""Integration tests of connecting: addresses that do not answer, credentials, and reconnecting."""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import (
    AuthenticationError,
    ConnectError,
    ConnectionClosedError,
    JetStreamNotEnabledError,
    UsageError,
)
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

pytestmark = pytest.mark.asyncio

USER, PASSWORD, TOKEN = "a", "b", "c"
AUTHORIZATION = f"authorization {{ user: {USER}, password: {PASSWORD} }}"


@asynccontextmanager
async def listener(greeting: bytes) -> AsyncGenerator[str]:
    """A program on a port that says one thing to whoever connects, and then nothing more."""
    leave = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        await leave.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        leave.set()


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port on which nobody listens: it is bound for as long as the test runs."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.mark.parametrize("connect_timeout", [1, 8], ids=["silent", "hangs up"])
async def test_port_for_monitoring_is_told(server: NatsServer, connect_timeout: float) -> None:
    """It waits for a request, and hangs up after 5 seconds."""
    url = server.monitor_url.replace("http://", "nats://")

    with pytest.raises(ConnectError) as caught:
        async with connect(url, connect_timeout=connect_timeout):
            pass

    assert "not the one for monitoring" in caught.value.hint


async def test_closed_port_fails_with_a_hint(closed_port: int) -> None:
    url = f"nats://127.0.0.1:{closed_port}"

    with pytest.raises(ConnectError, match=url) as caught:
        await connect(url).open()

    assert "nats-server -js" in caught.value.hint
    assert caught.value.detail
    assert caught.value.retryable


@pytest.mark.parametrize(
    "greeting",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"INFO {}\r\n",
        b"INFO not json\r\n",
        bytes(range(256)),
    ],
    ids=["silent", "http", "ssh", "empty_info", "broken_info", "noise"],
)
async def test_program_that_is_no_nats_server_is_refused_in_time(greeting: bytes) -> None:
    async with listener(greeting) as url, asyncio.timeout(30):
        with pytest.raises(ConnectError, match=url):
            await connect(url, connect_timeout=1).open()


async def test_unknown_host_fails() -> None:
    async with asyncio.timeout(20):
        with pytest.raises(ConnectError, match=r"nowhere\.invalid") as caught:
            await connect("nats://nowhere.invalid", connect_timeout=1).open()

    assert "no address is known for the host nowhere.invalid" in caught.value.hint
    assert not caught.value.retryable


async def test_host_that_neither_accepts_nor_refuses_is_told_from_a_silent_server() -> None:
    """The queue of a listener is full, so that the kernel drops who comes next."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as queue:
        for _ in range(8):
            each = queue.enter_context(socket.socket())
            each.setblocking(False)  # noqa: FBT003 - socket's own argument.
            each.connect_ex(full.getsockname())
        with pytest.raises(ConnectError) as caught:
            await connect(f"nats://127.0.0.1:{full.getsockname()[1]}", connect_timeout=0.3).open()

    assert "no TCP connection to" in caught.value.detail
    assert caught.value.retryable
    assert re.search("firewall.*longer connect_timeout", caught.value.hint)


async def test_failed_connection_leaves_no_task() -> None:
    tasks = asyncio.all_tasks()
    async with listener(b"") as url:
        with pytest.raises(ConnectError):
            await connect(url, connect_timeout=0.2).open()

    async def is_clean() -> bool:
        return asyncio.all_tasks() == tasks

    await eventually_async(is_clean)


async def test_password_is_not_in_the_error(closed_port: int) -> None:
    with pytest.raises(ConnectError) as caught:
        await connect(f"nats://me:secret@127.0.0.1:{closed_port}").open()

    assert "secret" not in str(caught.value)
    assert "secret" not in repr(caught.value)


async def test_server_without_jetstream_is_told() -> None:
    with NatsServer(jetstream=False) as server:
        async with connect(server.url) as js:
            with pytest.raises(JetStreamNotEnabledError) as caught:
                await js.streams.get("S")

    assert "-js" in caught.value.hint


@pytest.mark.parametrize(("user", "password"), [("a", "wrong"), ("x", "b"), (None, None)])
async def test_wrong_credentials_are_refused(user: str | None, password: str | None) -> None:
    with NatsServer(config=AUTHORIZATION) as server:
        async with asyncio.timeout(30):
            with pytest.raises(AuthenticationError) as caught:
                await connect(server.url, user=user, password=password).open()

    assert caught.value.hint


async def test_right_credentials_are_taken_also_after_a_restart() -> None:
    with NatsServer(config=AUTHORIZATION) as server:
        async with connect(server.url, user=USER, password=PASSWORD, request_timeout=30) as js:
            await js.streams.create("S")
            await asyncio.to_thread(server.restart)
            assert (await js.streams.get("S")).name == "S"


async def test_credentials_in_the_url_are_taken() -> None:
    with NatsServer(config=AUTHORIZATION) as server:
        async with connect(f"nats://a:b@127.0.0.1:{server.port}") as js:
            assert js.is_connected
            assert "b@" not in js.url


async def test_token_is_taken() -> None:
    with NatsServer(config=f"authorization {{ token: {TOKEN} }}") as server:
        async with connect(server.url, token=TOKEN) as js:
            assert js.is_connected
        with pytest.raises(AuthenticationError):
            await connect(server.url, token=f"not {TOKEN}").open()


async def test_second_server_is_taken_when_the_first_is_dead(
    server: NatsServer, closed_port: int
) -> None:
    urls = [f"nats://127.0.0.1:{closed_port}", server.url]

    async with connect(urls) as js:
        assert js.url == server.url


async def test_second_server_is_taken_when_the_first_is_silent(server: NatsServer) -> None:
    async with (
        listener(b"") as silent,
        asyncio.timeout(30),
        # The second one has no more time for its handshake.
        connect([silent, server.url], connect_timeout=2) as js,
    ):
        assert js.url == server.url


async def test_requests_after_close_fail(server: NatsServer, stream_name: str) -> None:
    connection = connect(server.url)
    js = await connection.open()
    stream = await fill(js, stream_name, 1)
    await connection.close()

    with pytest.raises(ConnectionClosedError, match=f"^publish to {stream_name}.0: the connection"):
        await js.publish(f"{stream_name}.0", b"x")
    with pytest.raises(ConnectionClosedError, match=r"^publish to plain: the connection is closed"):
        await js.core.publish("plain")
    with pytest.raises(ConnectionClosedError, match=r"^request on plain: the connection is closed"):
        await js.core.request("plain")
    with pytest.raises(ConnectionClosedError, match=f"^stream {stream_name}: the connection is"):
        await js.streams.get(stream_name)
    with pytest.raises(ConnectionClosedError):
        await anext(aiter(stream.read()))
    with pytest.raises(ConnectionClosedError):
        async with js.publisher():
            pass
    assert not js.is_connected


async def test_closing_twice_is_fine(server: NatsServer) -> None:
    connection = connect(server.url)
    await connection.open()

    await connection.close()
    await connection.close()


async def test_closing_what_was_never_open_is_fine() -> None:
    await connect("nats://127.0.0.1:1").close()


async def test_closing_without_a_server_ends_in_time(fresh_server: NatsServer) -> None:
    connection = connect(fresh_server.url)
    await connection.open()
    await asyncio.to_thread(fresh_server.kill)

    async with asyncio.timeout(30):
        await connection.close()


@pytest.mark.smoke
async def test_closed_connection_leaves_no_task(server: NatsServer) -> None:
    tasks = asyncio.all_tasks()

    async with connect(server.url) as js:
        await js.streams.find("nothing")

    async def is_clean() -> bool:
        return asyncio.all_tasks() == tasks

    await eventually_async(is_clean)


@pytest.mark.parametrize("is_crash", [False, True])
async def test_publish_works_after_the_server_came_back(
    fresh_server: NatsServer,
    is_crash: bool,  # noqa: FBT001
) -> None:
    async with connect(fresh_server.url, request_timeout=30) as js:
        await fill(js, "S", 3)
        if is_crash:
            await asyncio.to_thread(fresh_server.kill)
            await asyncio.to_thread(fresh_server.start)
        else:
            await asyncio.to_thread(fresh_server.restart)

        # A request that only reads waits for the connection; one that writes is asked once.
        stream = await js.streams.get("S")
        ack = await js.publish("S.0", b"x")

        assert ack.sequence == 4
        assert [message.sequence async for message in stream.read()] == [1, 2, 3, 4]


async def test_connection_is_opened_once_at_a_time() -> None:
    """Opened twice, the first one could never be closed."""
    with NatsServer() as server:
        connection = connect(server.url)
        async with connection as js:
            with pytest.raises(UsageError, match="open already"):
                await connection.open()
            assert await js.core.rtt() > 0
        async with connection as js:
            assert await js.core.rtt() > 0
        await connection.close()
