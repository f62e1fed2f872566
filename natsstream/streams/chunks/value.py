"""The description of a value in chunks, and its verification; pure rules.

Law: bytes that are returned as a whole value have the size, the number of chunks and the digest
that its writer gave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from natsstream.errors import ChunksDamagedError

CHUNK_BYTES = 131_072
"""The default chunk of every NATS client: 128 KiB."""

Progress: TypeAlias = Callable[[int, int | None], object]
"""Called with the bytes done and the bytes in all, None if not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedValue:
    """A value stored as chunks.

    Attributes:
        subject: The subject of all its chunks, and of no other messages.
        size: Bytes in all.
        chunks: Number of chunks.
        digest: SHA-256 over all bytes, 32 bytes; empty if it is not known.
        chunk_size: Bytes that no chunk exceeds, by the writer; 0 if it is not known.
    """

    subject: str
    size: int
    chunks: int
    digest: bytes = b""
    chunk_size: int = 0

    @property
    def last_bytes(self) -> int | None:
        """Bytes of the last chunk if all others are full; None if they cannot all be full."""
        if not self.chunk_size or self.chunks != -(-self.size // self.chunk_size):
            return None
        return self.size - (self.chunks - 1) * self.chunk_size


class DigestVerifier:
    """Checks the chunks of one value, in order.

    Attributes:
        size: Bytes so far.
        chunks: Chunks so far.
    """

    def __init__(self, value: ChunkedValue) -> None:
        self._value = value
        self.size: int = 0
        self.chunks: int = 0

    @property
    def has_all(self) -> bool:
        """True once all chunks were counted."""
        return self.chunks >= self._value.chunks

    def count(self, chunk: bytes) -> None:
        """Count a chunk.

        Raises:
            ChunksDamagedError: There are too many chunks or bytes.
        """
        value = self._value
        self.chunks += 1
        self.size += len(chunk)
        if self.chunks > value.chunks or self.size > value.size:
            raise self._damaged("surplus", f"there are {self.size} bytes or more")

    def end(self, digest: bytes) -> None:
        """Check the whole value at its end.

        Args:
            digest: SHA-256 over all bytes read.

        Raises:
            ChunksDamagedError: Chunks are missing, or the digest differs.
        """
        value = self._value
        if self.chunks != value.chunks or self.size != value.size:
            raise self._damaged("missing", f"there are {self.chunks} chunks with {self.size} bytes")
        if value.digest and digest != value.digest:
            raise self._damaged("digest", f"SHA-256 is {digest.hex()}")

    def _damaged(self, kind: str, detail: str) -> ChunksDamagedError:
        value = self._value
        reasons = {
            "surplus": "there are more than its writer stored",
            "missing": "some that its writer stored are missing",
            "digest": "the digest is not its writer's",
        }
        return ChunksDamagedError(
            f"{value.chunks} chunks with {value.size} bytes under {value.subject}: {reasons[kind]}",
            subject=value.subject,
            kind=kind,
            detail=detail,
            hint="the value must be stored again; reading has changed nothing",
        )
