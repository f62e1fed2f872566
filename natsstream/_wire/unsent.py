"""How much of what was written the peer has not taken yet."""

from __future__ import annotations

import array
import asyncio
import sys
from contextlib import suppress


def unsent_bytes(transport: asyncio.Transport | None) -> int:
    """Return the bytes in asyncio's buffer and, on Linux, those that the peer's kernel lacks."""
    if transport is None or transport.is_closing():
        return 0
    size = transport.get_write_buffer_size()
    sock = transport.get_extra_info("socket")
    if sys.platform == "linux" and sock is not None:
        import fcntl  # noqa: PLC0415 - not on every system.
        import termios  # noqa: PLC0415

        queued = array.array("i", [0])
        with suppress(OSError, ValueError):  # It was closed meanwhile.
            fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, queued)
        size += queued[0]
    return size
