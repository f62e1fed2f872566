"""Computes the SHA-256 of a flow of bytes without blocking the loop.

Law: the digest is that of all added bytes, in order.

A core hashes 1.5 GiB/s. A chunk of 128 KiB takes 85 us, which is not worth a thread: with client
and server on two cores threads made puts no faster and gets a tenth slower. A chunk of 8 MiB takes
5 ms, which is too long for the loop.
"""

from __future__ import annotations

import asyncio
import hashlib

_INLINE_MAX = 1 << 20


class RunningHash:
    """Hashes bytes as they come."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    async def add(self, piece: bytes) -> None:
        """Add some bytes."""
        if len(piece) > _INLINE_MAX:
            await asyncio.to_thread(self._hash.update, piece)
        else:
            self._hash.update(piece)

    def digest(self) -> bytes:
        """Return the digest of all bytes so far."""
        return self._hash.digest()
