"""The fault proxy between plain sockets: what each fault lets through, and what it keeps."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, cast

import pytest

from natsstream.errors import NatsStreamError, UsageError
from natsstream.testing import FaultProxy, NatsServer, pipes, proxy
from natsstream.testing.loops import LoopThread
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WAIT_S = 10.0
# Long enough for a byte to cross the loopback, short enough to try often.
SILENCE_S = 0.1
# More than all buffers of the system and of the proxy together.
FLOOD_BYTES = 64 * 1024 * 1024


class Upstream:
    """A server that accepts when it is told to."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(WAIT_S)
        self.port = cast("tuple[str, int]", self.listener.getsockname())[1]
        self.open: list[socket.socket] = [self.listener]

    def connect_through(self, front: FaultProxy) -> tuple[socket.socket, socket.socket]:
        """Return the client's end and the server's end of a new connection."""
        client = self.dial(front)
        server, _ = self.listener.accept()
        server.settimeout(WAIT_S)
        self.open.append(server)
        return client, server

    def dial(self, front: FaultProxy) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", front.port), WAIT_S)
        self.open.append(client)
        return client


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    for end in server.open:
        end.close()


@pytest.fixture
def front(upstream: Upstream) -> Iterator[FaultProxy]:
    with FaultProxy(upstream.port) as running:
        yield running


def read_exactly(end: socket.socket, n_bytes: int) -> bytes:
    received = b""
    while len(received) < n_bytes:
        chunk = end.recv(n_bytes - len(received))
        assert chunk, f"the connection ended after {len(received)} bytes"
        received += chunk
    return received


def read_all(end: socket.socket) -> bytes:
    received = b""
    while chunk := end.recv(1 << 16):
        received += chunk
    return received


def is_silent(end: socket.socket) -> bool:
    end.settimeout(SILENCE_S)
    try:
        return not end.recv(1)
    except TimeoutError:
        return True
    finally:
        end.settimeout(WAIT_S)


def is_turned_away(front: FaultProxy) -> bool:
    """Tell whether a new connection comes to its end, during the handshake or after it."""
    try:
        with socket.create_connection(("127.0.0.1", front.port), WAIT_S) as client:
            return client.recv(1) == b""
    except ConnectionResetError:
        return True


def is_ended(end: socket.socket) -> bool:
    try:
        return end.recv(1) == b""
    except ConnectionResetError:
        return True


def send_until_blocked(end: socket.socket) -> int:
    """Send until the system takes no more; return the number of bytes that it took."""
    end.settimeout(SILENCE_S)
    n_sent = 0
    with contextlib.suppress(TimeoutError):
        while n_sent < FLOOD_BYTES:
            n_sent += end.send(bytes(1 << 16))
    return n_sent


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


def test_delay_holds_bytes_back_and_keeps_their_order(
    front: FaultProxy, upstream: Upstream
) -> None:
    client, server = upstream.connect_through(front)
    front.delay(0.2, direction="to_server")

    began = time.monotonic()
    for number in range(100):
        client.sendall(b"%03d" % number)
    received = read_exactly(server, 300)

    assert time.monotonic() - began >= 0.2
    assert received == b"".join(b"%03d" % number for number in range(100))
    server.sendall(b"x")
    assert read_exactly(client, 1) == b"x"


def test_delayed_bytes_wait_beside_each_other(front: FaultProxy, upstream: Upstream) -> None:
    """A link that is long is not narrow: 50 chunks take nothing like 50 delays."""
    client, server = upstream.connect_through(front)
    front.delay(0.5, direction="to_server")

    began = time.monotonic()
    for n_sent in range(1, 51):
        client.sendall(b"x")
        eventually(lambda n=n_sent: front.byte_count() + front.held_count >= n)
    read_exactly(server, 50)

    assert time.monotonic() - began < 50 * 0.5 / 2


def test_end_of_a_delay_lets_held_bytes_go_at_once(front: FaultProxy, upstream: Upstream) -> None:
    client, server = upstream.connect_through(front)
    front.delay(3600)
    client.sendall(b"late")
    assert is_silent(server)

    front.delay(0)

    assert read_exactly(server, 4) == b"late"


def test_delay_holds_a_bounded_number_of_bytes(front: FaultProxy, upstream: Upstream) -> None:
    client, _ = upstream.connect_through(front)
    front.delay(3600)

    assert send_until_blocked(client) < FLOOD_BYTES

    assert front.held_count < pipes.HELD_BYTES_MAX + pipes.CHUNK_BYTES_MAX


def test_stall_delivers_nothing_until_healed(front: FaultProxy, upstream: Upstream) -> None:
    client, server = upstream.connect_through(front)
    front.stall()

    client.sendall(b"to server")
    server.sendall(b"to client")
    assert is_silent(server)
    assert is_silent(client)
    late_client, late_server = upstream.connect_through(front)
    late_client.sendall(b"late")
    assert is_silent(late_server)
    assert front.connection_count == 2

    front.heal()
    assert read_exactly(server, 9) == b"to server"
    assert read_exactly(client, 9) == b"to client"
    assert read_exactly(late_server, 4) == b"late"


def test_stall_of_one_direction_leaves_the_other(front: FaultProxy, upstream: Upstream) -> None:
    client, server = upstream.connect_through(front)
    front.stall(direction="to_client")

    client.sendall(b"request")
    assert read_exactly(server, 7) == b"request"
    server.sendall(b"answer")
    assert is_silent(client)

    front.heal()
    assert read_exactly(client, 6) == b"answer"


def test_stall_holds_the_sender_back(front: FaultProxy, upstream: Upstream) -> None:
    client, server = upstream.connect_through(front)
    front.stall()

    n_sent = send_until_blocked(client)
    assert n_sent < FLOOD_BYTES
    assert front.byte_count() == 0

    front.heal()
    assert len(read_exactly(server, n_sent)) == n_sent


def test_stall_stops_bytes_that_a_slow_receiver_kept_waiting(
    front: FaultProxy, upstream: Upstream
) -> None:
    client, server = upstream.connect_through(front)
    send_until_blocked(client)

    front.stall()
    n_forwarded = front.byte_count("to_server")
    read_exactly(server, n_forwarded)

    assert is_silent(server)
    assert front.byte_count("to_server") == n_forwarded


@pytest.mark.parametrize("direction", ["to_server", "to_client"])
def test_truncate_delivers_exactly_n_bytes_and_the_end(
    front: FaultProxy, upstream: Upstream, direction: proxy.Direction
) -> None:
    client, server = upstream.connect_through(front)
    sender, receiver = (client, server) if direction == "to_server" else (server, client)
    front.truncate(100_003, direction=direction)

    content = os.urandom(300_000)
    with contextlib.suppress(ConnectionError):
        sender.sendall(content)

    assert read_all(receiver) == content[:100_003]
    sender.settimeout(WAIT_S)
    assert is_ended(sender)
    eventually(lambda: front.connection_count == 0)


def test_truncate_ends_one_connection_and_no_other(front: FaultProxy, upstream: Upstream) -> None:
    _, first_server = first = upstream.connect_through(front)
    _, other_server = other = upstream.connect_through(front)
    front.truncate(3)

    first_server.sendall(b"12345")
    assert read_all(first[0]) == b"123"
    other_server.sendall(b"12345")
    assert read_exactly(other[0], 5) == b"12345"
    late_client, late_server = upstream.connect_through(front)
    late_server.sendall(b"12345")
    assert read_exactly(late_client, 5) == b"12345"


def test_truncate_is_taken_back_by_heal(front: FaultProxy, upstream: Upstream) -> None:
    client, server = upstream.connect_through(front)
    front.truncate(3)
    front.heal()

    server.sendall(b"12345")

    assert read_exactly(client, 5) == b"12345"


def test_cut_resets_connections_and_refuses_new_ones_until_healed(
    front: FaultProxy, upstream: Upstream
) -> None:
    client, server = upstream.connect_through(front)
    front.cut()

    with pytest.raises(ConnectionResetError):
        client.recv(1)
    with pytest.raises(ConnectionResetError):
        server.recv(1)
    with pytest.raises(ConnectionRefusedError):
        upstream.dial(front)
    assert front.connection_count == 0

    port = front.port
    front.heal()
    assert front.port == port
    client, server = upstream.connect_through(front)
    client.sendall(b"again")
    assert read_exactly(server, 5) == b"again"


def test_port_of_a_cut_proxy_is_given_to_nobody(front: FaultProxy) -> None:
    front.cut()

    with socket.socket() as taker, pytest.raises(OSError, match="in use"):
        taker.bind(("127.0.0.1", front.port))


def test_cut_and_heal_again_and_again_leave_a_working_proxy(
    front: FaultProxy, upstream: Upstream
) -> None:
    for _ in range(50):
        upstream.connect_through(front)
        front.cut()
        front.cut()
        front.heal()

    client, server = upstream.connect_through(front)
    client.sendall(b"x")
    assert read_exactly(server, 1) == b"x"


def test_reset_ends_connections_and_accepts_new_ones(front: FaultProxy, upstream: Upstream) -> None:
    client, _ = upstream.connect_through(front)

    front.reset()

    with pytest.raises(ConnectionResetError):
        client.recv(1)
    upstream.connect_through(front)


def test_rate_is_a_lower_bound_of_the_time(front: FaultProxy, upstream: Upstream) -> None:
    client, server = upstream.connect_through(front)
    front.limit_rate(100_000, direction="to_server")

    began = time.monotonic()
    client.sendall(bytes(30_000))
    read_exactly(server, 30_000)
    # The first piece, 5,000 bytes, goes at once.
    assert time.monotonic() - began >= 0.2

    front.limit_rate(1)
    client.sendall(bytes(100))
    front.limit_rate(0)
    read_exactly(server, 100)


def test_faults_that_are_set_before_the_start_hold(upstream: Upstream) -> None:
    front = FaultProxy(upstream.port)
    front.stall()
    with front:
        client, server = upstream.connect_through(front)
        client.sendall(b"x")
        assert is_silent(server)
        front.heal()
        assert read_exactly(server, 1) == b"x"


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
    n_threads, n_descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with FaultProxy(upstream.port) as front:
        port = front.port
        held = [upstream.connect_through(front) for _ in range(5)]
        front.delay(3600)
        held[0][0].sendall(b"x")
        front.truncate(1, direction="to_client")
        held[1][1].sendall(b"x")

    front.stop()
    assert threading.active_count() == n_threads
    for client, server in held:
        client.close()
        server.close()
    assert len(os.listdir("/proc/self/fd")) == n_descriptors
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
    n_threads = threading.active_count()
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
        assert threading.active_count() == n_threads + 1
    thread.stop()
    assert threading.active_count() == n_threads


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
        timeout=30,
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
        timeout=30,
        check=False,
    )
    assert ended.stderr == ""
    assert ended.returncode == 0


WRONG_CALLS: dict[str, Callable[[], object]] = {
    "port": lambda: FaultProxy(0),
    "delay": lambda: FaultProxy(4222).delay(-1),
    "endless delay": lambda: FaultProxy(4222).delay(float("inf")),
    "rate": lambda: FaultProxy(4222).limit_rate(-1),
    "bytes": lambda: FaultProxy(4222).truncate(0),
    "direction": lambda: FaultProxy(4222).stall(direction=cast("proxy.Direction", "up")),
}


@pytest.mark.parametrize("wrong", WRONG_CALLS)
def test_impossible_values_are_refused(wrong: str) -> None:
    with pytest.raises(UsageError):
        WRONG_CALLS[wrong]()
