"""What is known of a value that is stored as chunks, and whether what comes is that value; pure.

Law: bytes that are handed out as a whole value have the size, the number of chunks and the digest
that its writer told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from natsstream.errors import ChunksDamagedError

CHUNK_BYTES = 131_072
"""The default chunk of every NATS client: 128 KiB."""

Progress: TypeAlias = Callable[[int, int | None], object]
"""Gets the bytes that are done, and how many there are in all, None where nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedValue:
    """A value stored as chunks.

    Attributes:
        subject: The subject that all of its chunks are stored under, and nothing else.
        size: Bytes in all.
        chunks: Number of chunks.
        digest: SHA-256 over all bytes, 32 bytes; empty where it is not known.
        chunk_size: Bytes that no chunk exceeds, as the writer says; 0 where it is not known.
    """

    subject: str
    size: int
    chunks: int
    digest: bytes = b""
    chunk_size: int = 0

    @property
    def last_bytes(self) -> int | None:
        """Bytes of the last chunk if all the others are full; None where they can not all be."""
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
        """True when as many chunks were taken as there are."""
        return self.chunks >= self._value.chunks

    def count(self, chunk: bytes) -> None:
        """Count a chunk.

        Raises:
            ChunksDamagedError: It is one too many, or has bytes too many.
        """
        value = self._value
        self.chunks += 1
        self.size += len(chunk)
        if self.chunks > value.chunks or self.size > value.size:
            raise self._damaged("surplus", f"there are {self.size} bytes or more")

    def end(self, digest: bytes) -> None:
        """Check the whole when nothing more comes.

        Args:
            digest: SHA-256 over all bytes that came.

        Raises:
            ChunksDamagedError: Something is missing, or the digest differs.
        """
        value = self._value
        if self.chunks != value.chunks or self.size != value.size:
            raise self._damaged("missing", f"there are {self.chunks} chunks with {self.size} bytes")
        if value.digest and digest != value.digest:
            raise self._damaged("digest", f"SHA-256 is {digest.hex()}")

    def _damaged(self, kind: str, detail: str) -> ChunksDamagedError:
        value = self._value
        told = {
            "surplus": "there is more than its writer stored",
            "missing": "some of what its writer stored is missing",
            "digest": "the digest is not its writer's",
        }
        return ChunksDamagedError(
            f"{value.chunks} chunks with {value.size} bytes under {value.subject}: {told[kind]}",
            subject=value.subject,
            kind=kind,
            detail=detail,
            hint="it has to be stored again; nothing of it was changed by reading",
        )
