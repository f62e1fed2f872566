"""Requests to a server over a plain socket, for tests that must not stand on the library."""

from __future__ import annotations

import json
import secrets
import socket
from typing import cast


def request(
    server_port: int,
    subject: str,
    payload: bytes = b"",
    *,
    timeout_s: float = 30,
    msg_id: str = "",
    headers: bytes = b"",
) -> dict[str, object]:
    """Send one request in the NATS protocol and return the JSON answer.

    With a message id, a message that was sent before and whose ack was lost is stored once. The
    headers are a whole block, which nothing looks at.

    Raises:
        OSError: The server refuses the connection, ends it, or does not answer in time.
    """
    # Its own: the late answer to an earlier request must not be taken for this one's.
    inbox = f"_INBOX.{secrets.token_hex(8)}"
    with socket.create_connection(("127.0.0.1", server_port), timeout_s) as wire:
        header = f"NATS/1.0\r\nNats-Msg-Id: {msg_id}\r\n\r\n".encode() if msg_id else headers
        verb, sizes = ("HPUB", f"{len(header)} ") if header else ("PUB", "")
        head = f'CONNECT {{"verbose":false,"headers":true}}\r\nSUB {inbox} 1\r\n'
        head += f"{verb} {subject} {inbox} {sizes}{len(header) + len(payload)}\r\n"
        wire.sendall(head.encode() + header + payload + b"\r\n")
        with wire.makefile("rb") as lines:
            for line in lines:
                if line.startswith(b"MSG "):
                    size = int(line.split()[-1])
                    return cast("dict[str, object]", json.loads(lines.read(size)))
    raise ConnectionError("the server closed the connection without an answer")
