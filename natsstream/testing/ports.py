"""The ports of a server: reading, probing, and keeping one while the server is down.

nats-server chooses its ports by itself: any other way is a race.
"""

from __future__ import annotations

import contextlib
import json
import socket
from typing import TYPE_CHECKING, cast

from natsstream.arguments import check_int
from natsstream.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

HOST = "127.0.0.1"
PROBE_TIMEOUT_S = 1.0


def read_ports(ports_dir: Path, pid: int) -> dict[str, list[str]] | None:
    """Return the addresses of the server with this pid, by service; None while it has not told."""
    for path in ports_dir.glob(f"*_{pid}.ports"):
        try:
            # nats-server writes {"nats": ["nats://127.0.0.1:4222"], "monitoring": ["http://..."]}.
            ports = cast("dict[str, list[str]]", json.loads(path.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError):
            return None  # Half written.
        return ports if ports.get("nats") else None
    return None


def says_info(port: int, host: str = HOST) -> bool:
    """Return True if a NATS server greets on the port."""
    with contextlib.suppress(OSError):
        probe = socket.create_connection((host, port), PROBE_TIMEOUT_S)
        with probe, probe.makefile("rb") as greeting:
            return greeting.read(5) == b"INFO "
    return False


def check_port(port: int | None, *, hint: str) -> int | None:
    """Return a port, or None.

    Raises:
        UsageError: The port is not between 1 and 65535.
    """
    if port is not None and not 0 < check_int(port, "port") < 65536:
        raise UsageError(f"port {port} is not between 1 and 65535", hint=hint)
    return port


class PortReservation:
    """Keeps the port of a server from other programs while the server is down."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None

    def keep(self, port: int) -> None:
        """Reserve a port, if none is reserved."""
        if self._socket is None:
            self._socket = reserve_port(port)

    def release(self) -> None:
        """Give the port back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def reserve_port(port: int) -> socket.socket | None:
    """Bind a port without listening: clients are refused, and nobody else is given it.

    Without this a connection of any local program may get the port as its own end while the server
    is down, since the port is one of those that the kernel hands out.

    Returns:
        The socket to close before the server starts, or None when the port is taken already.
    """
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        reservation.bind((HOST, port))
    except OSError:
        reservation.close()
        return None
    return reservation
