"""Pieces of any size become chunks of one size, whatever becomes of the caller's buffers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from natsstream.streams.chunks.rechunk import Rechunker

PIECES = st.lists(st.binary(max_size=20), max_size=12)


@given(PIECES, st.integers(1, 7))
def test_the_chunks_joined_are_the_pieces_joined(pieces: list[bytes], size: int) -> None:
    rechunker = Rechunker(size)
    chunks = [chunk for piece in pieces for chunk in rechunker.feed(piece)]
    rest = rechunker.end()

    assert b"".join([*chunks, rest]) == b"".join(pieces)
    assert all(len(chunk) == size for chunk in chunks)
    assert len(rest) < size


@given(PIECES, st.integers(1, 7))
def test_a_buffer_may_be_used_again_for_the_next_piece(pieces: list[bytes], size: int) -> None:
    rechunker = Rechunker(size)
    chunks: list[bytes] = []
    buffer = bytearray(20)
    for piece in pieces:
        buffer[: len(piece)] = piece
        chunks += rechunker.feed(memoryview(buffer)[: len(piece)])
    chunks.append(rechunker.end())

    assert b"".join(chunks) == b"".join(pieces)


def test_a_piece_of_the_chunks_size_is_not_copied() -> None:
    piece = b"x" * 8
    assert next(Rechunker(8).feed(piece)) is piece


def test_end_gives_the_rest_once() -> None:
    rechunker = Rechunker(4)
    assert list(rechunker.feed(b"abcde")) == [b"abcd"]
    assert (rechunker.end(), rechunker.end()) == (b"e", b"")
