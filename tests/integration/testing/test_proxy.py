"""The fault proxy without its faults: bytes, connections, start and end, threads and forks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import NatsStreamError, UsageError
from natsstream.testing import FaultProxy, NatsServer, pipes, proxy
from natsstream.testing.loops import LoopThread
from tests.support import held
from tests.support.eventually import eventually
from tests.support.upstream import (
    WAIT_S,
    Upstream,
    is_ended,
    is_silent,
    is_turned_away,
    read_all,
    read_exactly,
)

if TYPE_CHECKING:
    pass


def test_bytes_arrive_unchanged_in_both_directions(front: FaultProxy, upstream: Upstream) -> None:
    client, server = upstream.connect_through(front)
    request, answer = os.urandom(3_000_001), os.urandom(1_000_001)

    def serve() -> None:
        assert read_all(server) == request
        server.sendall(answer)
        server.close()

    serving = threading.Thread(target=serve)
    serving.start()
    client.sendall(request)
    client.shutdown(socket.SHUT_WR)
    assert read_all(client) == answer
    serving.join(WAIT_S)

    assert front.byte_count("to_server") == len(request)
    assert front.byte_count("to_client") == len(answer)
    eventually(lambda: front.connection_count == 0)


def test_url_and_counts_tell_about_the_proxy(front: FaultProxy, upstream: Upstream) -> None:
    assert front.url == f"nats://127.0.0.1:{front.port}"
    assert front.port != upstream.port

    client, server = upstream.connect_through(front)
    assert (front.connection_count, front.accepted_count) == (1, 1)

    client.close()
    assert is_ended(server)
    server.close()
    eventually(lambda: front.connection_count == 0)
    assert front.accepted_count == 1


def test_new_connections_work_after_the_server_was_away(
    front: FaultProxy, upstream: Upstream
) -> None:
    upstream.listener.close()
    assert is_turned_away(front)

    with socket.create_server(("127.0.0.1", upstream.port)) as listener:
        client = upstream.dial(front)
        listener.settimeout(WAIT_S)
        server, _ = listener.accept()
        with server:
            server.sendall(b"back")
            assert read_exactly(client, 4) == b"back"


def test_connections_wait_for_a_target_that_is_not_known_yet(upstream: Upstream) -> None:
    with FaultProxy() as front:
        client = upstream.dial(front)
        client.sendall(b"early")
        assert is_silent(client)

        front.target_port = upstream.port

        server, _ = upstream.listener.accept()
        with server:
            assert read_exactly(server, 5) == b"early"


def test_close_and_reset_of_one_end_reach_the_other(front: FaultProxy, upstream: Upstream) -> None:
    client, server = upstream.connect_through(front)
    server.close()
    assert client.recv(1) == b""

    client, server = upstream.connect_through(front)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pipes.RESET_ON_CLOSE)
    client.close()
    with pytest.raises(ConnectionResetError):
        server.recv(1)


def test_more_connections_than_the_limit_are_reset(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "CONNECTIONS_MAX", 2)
    with FaultProxy(upstream.port) as front:
        kept = [upstream.connect_through(front) for _ in range(2)]
        assert is_turned_away(front)
        assert front.connection_count == 2

        kept[0][0].close()
        kept[0][1].close()
        eventually(lambda: front.connection_count == 1)
        upstream.connect_through(front)


def test_stop_frees_threads_and_descriptors(upstream: Upstream) -> None:
    threads, descriptors = held.threads(), held.descriptors()
    with FaultProxy(upstream.port) as front:
        port = front.port
        pairs = [upstream.connect_through(front) for _ in range(5)]
        front.delay(3600)
        pairs[0][0].sendall(b"x")
        front.truncate(1, direction="to_client")
        pairs[1][1].sendall(b"x")

    front.stop()
    assert held.threads() <= threads
    for client, server in pairs:
        client.close()
        server.close()
    assert held.descriptors() <= descriptors
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taker.bind(("127.0.0.1", port))
    with pytest.raises(UsageError, match="not running"):
        _ = front.port


def test_stopped_proxy_starts_again(upstream: Upstream) -> None:
    front = FaultProxy(upstream.port)
    for _ in range(2):
        with front:
            client, server = upstream.connect_through(front)
            client.sendall(b"x")
            assert read_exactly(server, 1) == b"x"


def test_proxies_may_share_a_thread(upstream: Upstream) -> None:
    threads = held.threads()
    thread = LoopThread("shared")
    thread.start()
    with (
        FaultProxy(upstream.port, loop_thread=thread) as one,
        FaultProxy(upstream.port, loop_thread=thread) as other,
    ):
        one.stall()
        client, server = upstream.connect_through(other)
        client.sendall(b"x")
        assert read_exactly(server, 1) == b"x"
        assert len(held.threads() - threads) == 1
    thread.stop()
    assert held.threads() <= threads


def test_thread_that_is_not_running_is_told() -> None:
    with pytest.raises(NatsStreamError, match="not running"):
        FaultProxy(4222, loop_thread=LoopThread("never started")).start()


@pytest.mark.asyncio
async def test_faults_may_be_changed_from_async_code(server: NatsServer) -> None:
    with FaultProxy(server.port) as front:
        async with asyncio.timeout(WAIT_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
            assert (await reader.readline()).startswith(b"INFO ")
            front.cut()
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
            with contextlib.suppress(ConnectionResetError):
                await writer.wait_closed()


def test_program_that_forgets_stop_ends_in_good_order() -> None:
    program = """
import socket
from natsstream.testing import FaultProxy
front = FaultProxy(9).start()
front.stall()
client = socket.create_connection(("127.0.0.1", front.port))
client.close()
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert ended.stderr == ""


def test_forked_child_that_leaves_the_block_does_no_harm() -> None:
    """In a program of its own, since forking this process would copy its threads' locks."""
    program = """
import os, socket
from natsstream.testing import FaultProxy
with socket.create_server(("127.0.0.1", 0)) as listener:
    with FaultProxy(listener.getsockname()[1]) as front:
        pid = os.fork()
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
            client = socket.create_connection(("127.0.0.1", front.port), 10)
            server, _ = listener.accept()
            server.sendall(b"x")
            assert client.recv(1) == b"x"
            client.close()
            server.close()
"""
    ended = subprocess.run(
        # From 3.12 on Python warns of any fork beside threads.
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", program],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ended.stderr == ""
    assert ended.returncode == 0
