"""The faults of the proxy: what each lets through, and what it keeps."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import TYPE_CHECKING, Literal, cast

import pytest

from natsstream.errors import UsageError
from natsstream.testing import FaultProxy, pipes, proxy
from tests.support.eventually import eventually
from tests.support.upstream import (
    FLOOD_BYTES,
    WAIT_S,
    Upstream,
    is_ended,
    is_silent,
    read_all,
    read_exactly,
    send_until_blocked,
)

if TYPE_CHECKING:
    from collections.abc import Callable


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


def test_injected_bytes_stand_behind_those_that_came_before(
    front: FaultProxy, upstream: Upstream
) -> None:
    client, server = upstream.connect_through(front)
    server.sendall(b"before")
    assert read_exactly(client, 6) == b"before"

    front.inject(b"foreign")  # It takes effect before it returns.
    server.sendall(b"after")

    assert read_exactly(client, 12) == b"foreignafter"


@pytest.mark.parametrize("direction", ["to_server", "to_client"])
def test_bytes_are_injected_once_into_each_open_connection(
    direction: Literal["to_server", "to_client"], front: FaultProxy, upstream: Upstream
) -> None:
    pairs = [upstream.connect_through(front) for _ in range(3)]
    for client, server in pairs:  # All are known to be connected through.
        client.sendall(b"x")
        assert read_exactly(server, 1) == b"x"

    front.inject(b"foreign", direction=direction)
    later = upstream.connect_through(front)

    for client, server in pairs:
        assert read_exactly(server if direction == "to_server" else client, 7) == b"foreign"
    for end in [end for pair in (*pairs, later) for end in pair]:
        assert is_silent(end)


@pytest.mark.parametrize("data", [b"", bytes(pipes.HELD_BYTES_MAX + 1)])
def test_no_bytes_and_too_many_are_not_injected(data: bytes, front: FaultProxy) -> None:
    with pytest.raises(UsageError, match="injected"):
        front.inject(data)
