"""A server of plain sockets behind a fault proxy, and what its two ends see."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from natsstream.testing import FaultProxy

# Only a hang takes this long.
WAIT_S = 30.0
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
