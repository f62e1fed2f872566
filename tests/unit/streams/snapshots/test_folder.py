"""The folder of a backup: what is whole is read, what is damaged is refused."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.stream_info import StreamInfo
from natsstream.errors import BackupError
from natsstream.streams.snapshots.folder import (
    DATA_NAME,
    META_NAME,
    check_whole,
    meta_text,
    read_folder,
)

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"\xff\x06\x00\x00S2sTwO"
CONFIG: dict[str, object] = {"name": "S", "subjects": ["s"]}
STATE: dict[str, object] = {"messages": 2, "last_seq": 3}


def block(kind: int, content: bytes) -> bytes:
    """Return one block of the framing format."""
    return bytes([kind]) + len(content).to_bytes(3, "little") + content


ARCHIVE = MAGIC + block(0, b"x" * 500) + block(1, b"y" * 70_000) + block(0xFE, b"") + block(0, b"z")


def write(folder: Path, archive: bytes, *, digest_of: bytes | None = None) -> Path:
    """Write a backup; `digest_of` is what its digest is made of, None leaves it out."""
    folder.mkdir(exist_ok=True)
    (folder / DATA_NAME).write_bytes(archive)
    if digest_of is None:
        text = '{"config": {"name": "S"}, "state": {"messages": 2, "last_seq": 3}}'
    else:
        sha256 = hashlib.sha256(digest_of).hexdigest()
        text = meta_text(CONFIG, STATE, archive_bytes=len(digest_of), sha256=sha256)
    (folder / META_NAME).write_text(text)
    return folder


@pytest.mark.parametrize("digest_of", [None, ARCHIVE])
def test_whole_backup_is_read(tmp_path: Path, digest_of: bytes | None) -> None:
    info = read_folder(write(tmp_path / "b", ARCHIVE, digest_of=digest_of))

    assert (info.stream, info.messages, info.last_seq) == ("S", 2, 3)
    assert info.archive_bytes == len(ARCHIVE)
    assert bool(info.sha256) == (digest_of is not None)


@given(cut=st.integers(0, len(ARCHIVE) - 1))
def test_archive_that_breaks_off_inside_a_block_is_refused(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    ends = {10, 10 + 504, 10 + 504 + 70_004, 10 + 504 + 70_004 + 4}
    folder = write(tmp_path_factory.mktemp("b"), ARCHIVE[:cut])
    if cut in ends:
        read_folder(folder)  # Without a digest, only the server can tell.
    else:
        with pytest.raises(BackupError, match="damaged"):
            read_folder(folder)


@given(place=st.integers(0, len(ARCHIVE) - 1), bit=st.integers(0, 7))
def test_digest_finds_every_flipped_bit(
    tmp_path_factory: pytest.TempPathFactory, place: int, bit: int
) -> None:
    changed = bytearray(ARCHIVE)
    changed[place] ^= 1 << bit

    with pytest.raises(BackupError, match="damaged"):
        read_folder(write(tmp_path_factory.mktemp("b"), bytes(changed), digest_of=ARCHIVE))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"config": {}, "state": {}}',
        '{"config": [], "state": 3}',
        '{"config": {"name": "S"}, "state": {"messages": "x", "last_seq": 1}}',
        '{"config": {"name": "S"}, "state": {"messages": 1, "last_seq": 1}, "natsstream": 3}',
    ],
)
def test_meta_that_says_nothing_is_refused(tmp_path: Path, text: str) -> None:
    folder = write(tmp_path / "b", ARCHIVE)
    (folder / META_NAME).write_text(text)

    with pytest.raises(BackupError):
        read_folder(folder)


def test_what_is_no_backup_is_told(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="is no backup") as caught:
        read_folder(tmp_path)

    assert "nats stream backup" in caught.value.hint


def info_of(**fields: object) -> StreamInfo:
    """Return the info of a stream with two messages up to sequence 3, or what is given."""
    state = {"messages": fields.pop("messages", 2), "last_seq": fields.pop("last_seq", 3)}
    body = {"config": {"name": "S", **fields}, "created": "2026-01-01T00:00:00Z", "state": state}
    return StreamInfo.from_json(body)


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({}, {}),
        ({"last_seq": 9, "messages": 5}, {}),
        ({"messages": 1, "max_age": 10**9}, {}),
        ({"messages": 0, "allow_msg_ttl": True}, {}),
        ({"messages": 0, "retention": "interest"}, {}),
        ({"messages": 1, "max_msgs": 1}, {"max_msgs": 1}),
    ],
)
def test_restored_stream_that_has_what_it_can_have_is_whole(
    tmp_path: Path, fields: dict[str, object], changes: dict[str, object]
) -> None:
    check_whole(info_of(**fields), read_folder(write(tmp_path / "b", ARCHIVE)), changes, "restore")


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": 1},
        {"messages": 0, "last_seq": 0},
        {"last_seq": 2},
        {"messages": 1, "max_msgs": 9},
    ],
)
def test_restored_stream_that_lacks_messages_is_refused(
    tmp_path: Path, fields: dict[str, object]
) -> None:
    backup = read_folder(write(tmp_path / "b", ARCHIVE))

    with pytest.raises(BackupError, match="is there now, but with"):
        check_whole(info_of(**fields), backup, {}, "restore")
