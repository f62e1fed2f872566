"""Requests to a server over a plain socket, for tests that must not stand on the library."""

from __future__ import annotations

import json
import secrets
import socket
from typing import cast

import pytest


def request(
    server_port: int, subject: str, payload: bytes = b"", *, timeout_s: float = 10
) -> dict[str, object]:
    """Send one request in the NATS protocol and return the JSON answer.

    Raises:
        OSError: The server refuses the connection, resets it, or does not answer in time.
    """
    # Its own: the late answer to an earlier request must not be taken for this one's.
    inbox = f"_INBOX.{secrets.token_hex(8)}"
    with socket.create_connection(("127.0.0.1", server_port), timeout_s) as wire:
        head = f'CONNECT {{"verbose":false}}\r\nSUB {inbox} 1\r\nPUB {subject} {inbox} '
        wire.sendall(head.encode() + f"{len(payload)}\r\n".encode() + payload + b"\r\n")
        with wire.makefile("rb") as lines:
            for line in lines:
                if line.startswith(b"MSG "):
                    size = int(line.split()[-1])
                    return cast("dict[str, object]", json.loads(lines.read(size)))
    pytest.fail("the server closed the connection without an answer")
