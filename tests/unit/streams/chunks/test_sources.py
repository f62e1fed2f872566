"""How many bytes a source has, where it can be known; and none is guessed."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import ConfigError
from natsstream.streams.chunks.sources import check_source, known_size

if TYPE_CHECKING:
    from pathlib import Path

DATA = bytes(100_000)


def test_files_have_what_is_left_of_them(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(DATA)
    assert known_size(path) == len(DATA)
    for buffering in (-1, 0):
        with path.open("rb", buffering=buffering) as file:
            file.seek(100)
            assert known_size(file) == len(DATA) - 100
    memory = io.BytesIO(DATA)
    memory.seek(1)
    assert known_size(memory) == len(DATA) - 1


def test_buffers_have_their_bytes() -> None:
    assert known_size(DATA) == known_size(bytearray(DATA)) == len(DATA)
    assert known_size(memoryview(DATA).cast("i")) == len(DATA)


def test_a_file_that_is_unpacked_has_not_the_packed_ones_size(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.gz", "wb") as packed:
        packed.write(DATA)
    with gzip.open(tmp_path / "a.gz") as unpacked:
        assert known_size(unpacked) is None
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "a.gz", "a.gz")
    with tarfile.open(tmp_path / "a.tar") as archive:
        assert known_size(archive.extractfile("a.gz")) is None


def test_what_is_not_there_or_only_comes_has_none(tmp_path: Path) -> None:
    assert known_size(tmp_path / "nothing") is None
    assert known_size([DATA]) is None


@pytest.mark.parametrize("source", [{}, {b"a": b"b"}])
def test_dict_is_no_source(source: object) -> None:
    with pytest.raises(ConfigError, match="the source is"):
        check_source(source)
