"""A value is whole when size, number of chunks and digest are its writer's, and not before."""

from __future__ import annotations

import hashlib

import pytest

from natsstream.errors import ChunksDamagedError
from natsstream.streams.chunks.value import ChunkedValue, DigestVerifier

DATA = [b"abc", b"def", b"g"]


def value(**changes: object) -> ChunkedValue:
    digest = hashlib.sha256(b"".join(DATA)).digest()
    given: dict[str, object] = {"subject": "c.1", "size": 7, "chunks": 3, "digest": digest}
    return ChunkedValue(**{**given, **changes})  # pyright: ignore[reportArgumentType]


def verify(chunks: list[bytes], of: ChunkedValue) -> None:
    verifier = DigestVerifier(of)
    for chunk in chunks:
        verifier.count(chunk)
    verifier.end(hashlib.sha256(b"".join(chunks)).digest())


def test_what_was_written_is_whole() -> None:
    verify(DATA, value())


def test_without_a_digest_size_and_count_decide() -> None:
    verify([b"xxx", b"yyy", b"z"], value(digest=b""))


@pytest.mark.parametrize(
    ("chunks", "kind"),
    [
        (DATA[:2], "missing"),
        ([b"abc", b"def", b""], "missing"),
        ([b"abcdefg"], "missing"),
        ([*DATA, b""], "surplus"),
        ([b"abc", b"def", b"gh"], "surplus"),
        ([b"abc", b"deF", b"g"], "digest"),
        ([b"def", b"abc", b"g"], "digest"),
        ([], "missing"),
    ],
)
def test_what_differs_is_told(chunks: list[bytes], kind: str) -> None:
    with pytest.raises(ChunksDamagedError) as caught:
        verify(chunks, value())
    assert caught.value.kind == kind
    assert caught.value.subject == "c.1"
