"""The part file of a download, beside its target.

Law: a part file belongs to one version of the object, whose nuid is in its name, and to one
download at a time in all processes, by a lock that ends with its process. A second download writes
a private part file, which no later one resumes. So does a download that finds a foreign file under
the name: bytes are only written to a regular file of this user with one name, and through no link.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from natsstream.errors import UsageError

_READ_BYTES = 1 << 20
# One step of hashing an earlier download; a cancelled download waits for it.
_STEP_BYTES = 16 << 20
# A file's name has 255 bytes at most; a version, a token and the ending come on top.
_NAME_BYTES_MAX = 150
_PLAIN_NUID_CHARS_MAX = 32
# Each attempt that fails means that another download has ended meanwhile.
_CLAIMS_MAX = 10


class PartFile:
    """The part file of one download.

    Attributes:
        done: Bytes of the object in it, unverified.
        is_kept: True if a later download can resume it.

    Args:
        target: The download's target.
        nuid: The object's version.
    """

    def __init__(self, target: Path, nuid: str) -> None:
        self.done: int = 0
        self.is_kept: bool = True
        self._target = target
        self._path = part_path(target, nuid)
        self._file: BinaryIO | None = None
        # Only for a resumed download; the reader verifies a whole one.
        self._hash = None

    def open(self) -> None:
        """Claim the file.

        Raises:
            OSError: The file cannot be written, or the target is a folder.
        """
        if self._target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self._target))
        try:
            self._file = _claim(self._path)
            if self._file is None:
                self.is_kept = False
                self._path = self._path.with_suffix(f".{secrets.token_hex(4)}.part")
                self._file = _open(self._path, os.O_EXCL)
        except OSError as error:
            # The caller knows the target, so the error names that.
            raise OSError(error.errno, error.strerror, str(self._target)) from error

    def take_over(self, size_max: int) -> bool:
        """Hash some bytes of an earlier download; return True if there are more.

        Args:
            size_max: The object's bytes; a file with more is discarded.
        """
        file = self._opened()
        if os.fstat(file.fileno()).st_size > size_max:
            self.restart()
            return False
        file.seek(self.done)
        stop = self.done + _STEP_BYTES
        while self.done < stop:
            block = file.read(_READ_BYTES)
            if not block:
                return False
            self._hash = self._hash or hashlib.sha256()
            self._hash.update(block)
            self.done += len(block)
        return True

    def restart(self) -> None:
        """Discard all bytes."""
        self._opened().truncate(0)
        self._hash, self.done = None, 0

    def append(self, pieces: list[bytes]) -> None:
        """Append pieces.

        Raises:
            OSError: They cannot be written.
        """
        file = self._opened()
        file.seek(self.done)
        block = b"".join(pieces)
        if self._hash is not None:
            self._hash.update(block)
        left = memoryview(block)
        while left:  # A file without a buffer may write less.
            left = left[file.write(left) :]
        self.done += len(block)

    def digest(self) -> bytes | None:
        """Return the SHA-256 of a resumed download; None for one from the start."""
        return None if self._hash is None else self._hash.digest()

    def finish(self) -> None:
        """Rename it to the target.

        Raises:
            OSError: It cannot be renamed.
        """
        file = self._opened()
        os.fsync(file.fileno())
        if sys.platform == "win32":  # Renames no open file; elsewhere the lock is held until then.
            file.close()
        self._path.replace(self._target)

    def discard(self) -> None:
        """Remove it."""
        if self._file is None:
            return
        with suppress(OSError):
            if sys.platform == "win32":
                self._file.close()
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file, which ends its lock."""
        if self._file is not None:
            self._file.close()

    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise UsageError("the part file is not open")
        return self._file


def part_path(target: Path, nuid: str) -> Path:
    """Return the path of the part file of a target."""
    is_plain = nuid.isalnum() and nuid.isascii() and len(nuid) <= _PLAIN_NUID_CHARS_MAX
    # Other clients' nuids may have characters that are illegal in file names.
    version = nuid if is_plain else hashlib.sha256(nuid.encode()).hexdigest()[:22]
    stem = os.fsencode(target.name)[:_NAME_BYTES_MAX].decode(errors="ignore")
    return target.with_name(f"{stem}.{version}.part")


def _open(path: Path, flags: int = 0) -> BinaryIO:
    # O_NONBLOCK: a pipe under the name must not block the thread.
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)  # Not on every system.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
    return os.fdopen(descriptor, "r+b", buffering=0)


def _claim(path: Path) -> BinaryIO | None:
    """Open the file; return None if another download has it, or it is a foreign file."""
    for _ in range(_CLAIMS_MAX):
        try:
            file = _open(path)
        except OSError:
            if os.path.lexists(path):
                return None  # A link, a folder, or another user's file.
            raise
        try:
            if not _is_ours(os.fstat(file.fileno())) or not _lock(file):
                file.close()
                return None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.lstat()):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()  # Another download has renamed it meanwhile.
    return None


def _is_ours(status: os.stat_result) -> bool:
    """Return True for a regular file of this user with at most one name."""
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        return False
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def _lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed; return False if it is locked already."""
    if sys.platform == "win32":
        return True
    import fcntl  # noqa: PLC0415 - not on every system.

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # A file system without locks.
    return True
