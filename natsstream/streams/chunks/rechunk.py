"""Cuts pieces of any size into chunks of one size; pure rules.

Law: the chunks joined are the pieces joined; all chunks but the last have the same size; none is
empty. No byte of a caller's buffer is kept once the chunks of `feed` are taken.
"""

from __future__ import annotations

from collections.abc import Iterator


def flat(piece: bytes | bytearray | memoryview) -> memoryview:
    """Return a buffer's bytes in a row; a buffer with gaps, or of columns, is copied."""
    view = memoryview(piece)
    if not view.nbytes:
        return memoryview(b"")
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


class Rechunker:
    """Takes pieces, gives chunks.

    Args:
        size: Bytes of a chunk.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._rest = bytearray()

    def feed(self, piece: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Yield the chunks that this piece completes.

        Cost: each byte is copied once, and twice in a chunk with parts of two pieces; a piece of
        bytes with the size of a chunk is not copied.
        """
        size = self._size
        if not self._rest and isinstance(piece, bytes) and len(piece) == size:
            yield piece
            return
        view = flat(piece)
        start = 0
        if self._rest:
            start = min(size - len(self._rest), len(view))
            self._rest += view[:start]
            if len(self._rest) < size:
                return
            yield bytes(self._rest)
            self._rest.clear()
        while len(view) - start >= size:
            yield bytes(view[start : start + size])
            start += size
        self._rest += view[start:]

    def end(self) -> bytes:
        """Return the last, shorter chunk, or empty bytes."""
        rest = bytes(self._rest)
        self._rest.clear()
        return rest
