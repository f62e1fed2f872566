"""The bytes that publish a message, for senders of many.

What lives here: the `PUB` and `HPUB` commands, in two steps, so that what a subject costs is paid
once. What must not: checks. The subject is legal, the block is one of `headers.py`, and headers and
payload together fit into the server's `max_payload`.
"""

from __future__ import annotations


def publish_start(subject: str, reply_prefix: str) -> bytes:
    """Return what the commands of one subject share, from the verb up to the reply's last token."""
    return f" {subject} {reply_prefix}".encode()


def publish_command(start: bytes, token: bytes, headers: bytes, payload: bytes) -> bytes:
    """Return the command of one message, whose answer goes to the reply prefix and the token."""
    size = len(payload)
    if headers:
        header_size = len(headers)
        line = (start, token, header_size, header_size + size, headers, payload)
        return b"HPUB%b%b %d %d\r\n%b%b\r\n" % line
    return b"PUB%b%b %d\r\n%b\r\n" % (start, token, size, payload)
