"""The folder of a backup: `backup.json` and `stream.tar.s2`, as the nats CLI writes them.

Law: a damaged folder is refused before anything is sent. The nats CLI reads only `config` and
`state`; natsstream's fields are under a key of their own.

Source: jsm.go snapshots.go; the framing format of S2 (klauspost/compress s2, after snappy's
framing_format.txt).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo, StreamState
from natsstream.errors import BackupError
from natsstream.fields import Fields

META_NAME = "backup.json"
DATA_NAME = "stream.tar.s2"

_OWN_KEY = "natsstream"
# Fields that a caller may set narrower than in the backup.
_LIMITS = {"max_msgs", "max_bytes", "max_age", "max_msgs_per_subject", "max_msg_size"}
_BLOCK_BYTES = 1 << 20
_MAGIC = (b"\xff\x06\x00\x00S2sTwO", b"\xff\x06\x00\x00sNaPpY")
_HEADER_BYTES = 4
# Types that a reader must know; all others from 0x02 to 0x7f make the archive unreadable.
_COMPRESSED, _PLAIN, _SKIPPABLE = 0x00, 0x01, 0x80
_UNREADABLE = 0x02


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """A backup in a folder.

    Attributes:
        path: The folder.
        stream: Name of the stream.
        messages: Messages of the stream.
        last_seq: Last sequence of the stream.
        archive_bytes: Size of `stream.tar.s2`.
        sha256: SHA-256 of `stream.tar.s2` in hex; empty in a backup of another client.
        config: The stream's configuration, as the server sent it.
        state: The stream's state, as the server sent it.
    """

    path: Path
    stream: str
    messages: int
    last_seq: int
    archive_bytes: int
    sha256: str
    config: Mapping[str, object]
    state: Mapping[str, object]


def meta_text(
    config: Mapping[str, object], state: Mapping[str, object], *, archive_bytes: int, sha256: str
) -> str:
    """Return the text of `backup.json`."""
    own = {"archive_bytes": archive_bytes, "sha256": sha256}
    return json.dumps({"config": config, "state": state, _OWN_KEY: own}, indent=2)


def read_folder(path: Path) -> BackupInfo:
    """Return the backup in a folder, checked.

    Raises:
        BackupError: It is no backup, or its archive is damaged.

    Cost: one read of an archive of natsstream, else one header for each of its blocks.
    """
    meta = _read_meta(path)
    config, state, own = meta.part("config"), meta.part("state"), meta.part(_OWN_KEY, {})
    # These raise for fields that no server sends or accepts.
    StreamConfig.from_json(config)
    StreamState.from_json(state)
    with open_archive(path) as file:
        size = os.fstat(file.fileno()).st_size
        info = BackupInfo(
            path,
            config.text("name"),
            state.count("messages", None),
            state.count("last_seq", None),
            size,
            own.text("sha256", ""),
            config.raw,
            state.raw,
        )
        _check_frames(path, file, size)
        if info.sha256:
            _check_digest(path, file, size, own)
    return info


def open_archive(path: Path) -> BinaryIO:
    """Open the archive in a folder.

    Raises:
        BackupError: There is no readable archive.
    """
    archive = path / DATA_NAME
    try:
        if archive.exists() and not archive.is_file():  # Opening a pipe would wait for its writer.
            raise _damaged(path, f"{DATA_NAME} is no file")
        return archive.open("rb")
    except OSError as error:
        raise _damaged(path, f"there is no {DATA_NAME} to read", str(error)) from error


def check_whole(
    info: StreamInfo, backup: BackupInfo, changes: Mapping[str, object], what: str
) -> None:
    """Compare a restored stream with its backup; servers skip messages that they cannot read.

    Args:
        info: The restored stream.
        backup: The backup.
        changes: The caller's changes of the configuration.
        what: The operation, for the error.

    Raises:
        BackupError: Messages are missing, and no limit can have removed them.
    """
    state, config = info.state, info.config
    # Limits that remove messages as soon as the stream exists.
    may_shrink = (
        config.max_age
        or config.allow_msg_ttl
        or config.allow_msg_schedules
        or config.retention not in (None, "limits")
        or not _LIMITS.isdisjoint(changes)
    )
    has_all = state.messages >= backup.messages or may_shrink
    if has_all and state.last_seq >= backup.last_seq:
        return
    raise BackupError(
        f"{what}: the stream is there now, but with {state.messages} messages up to sequence "
        f"{state.last_seq} instead of {backup.messages} up to {backup.last_seq}",
        hint="nothing was undone: check the stream, then keep it or delete it",
    )


def _read_meta(path: Path) -> Fields:
    def damaged(message: str, /, *, detail: str = "", hint: str = "") -> BackupError:
        error = _damaged(path, message, detail)
        error.hint = hint or error.hint
        return error

    try:
        if not (path / META_NAME).is_file():
            raise FileNotFoundError(f"no file {META_NAME}")
        text = (path / META_NAME).read_bytes()
    except OSError as error:
        raise BackupError(
            f"{path} is no backup: there is no {META_NAME} to read",
            detail=str(error),
            hint="give the folder that stream.backup() or nats stream backup wrote",
        ) from error
    return Fields.parse(text, META_NAME, error=damaged)


def _check_frames(path: Path, file: BinaryIO, size: int) -> None:
    """Check the archive's blocks: it starts with S2's magic, and ends with a whole block."""
    if file.read(len(_MAGIC[0])) not in _MAGIC:
        raise _damaged(path, f"{DATA_NAME} does not start as an S2 archive")
    offset = len(_MAGIC[0])
    while offset < size:
        file.seek(offset)
        header = file.read(_HEADER_BYTES)
        kind = header[0] if header else _UNREADABLE
        end = offset + _HEADER_BYTES + int.from_bytes(header[1:], "little")
        is_known = kind in (_COMPRESSED, _PLAIN) or kind >= _SKIPPABLE
        if len(header) < _HEADER_BYTES or end > size or not is_known:
            raise _damaged(path, f"{DATA_NAME} is cut off or changed at byte {offset} of {size}")
        offset = end


def _check_digest(path: Path, file: BinaryIO, size: int, own: Fields) -> None:
    expected = own.count("archive_bytes", None)
    if expected != size:
        raise _damaged(path, f"{DATA_NAME} has {size} bytes instead of {expected}")
    file.seek(0)
    digest = hashlib.sha256()
    while block := file.read(_BLOCK_BYTES):
        digest.update(block)
    if digest.hexdigest() != own.text("sha256"):
        raise _damaged(
            path,
            f"{DATA_NAME} is not what was written",
            f"SHA-256 is {digest.hexdigest()} instead of {own.text('sha256')}",
        )


def _damaged(path: Path, what: str, detail: str = "") -> BackupError:
    return BackupError(
        f"the backup in {path} is damaged: {what}",
        detail=detail,
        hint="restore another backup; nothing was sent",
    )
