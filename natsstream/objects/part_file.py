"""The file that an object is gathered in, beside the one that it is to become.

Law: a part file belongs to one version of the object, whose nuid its name has, and to one download
at a time, in whatever process: a lock says so, which ends with a process that is killed. A second
download gathers in a file that nobody goes on with. So does one that finds something else under the
name: bytes go into a regular file of this user's that has no other name, and through no link.
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
# One step of hashing what is there; a cancelled download waits for it.
_STEP_BYTES = 16 << 20
# A file's name has 255 bytes at most; a version, a token and the ending come on top.
_NAME_BYTES_MAX = 150
_PLAIN_NUID_CHARS_MAX = 32
# Each attempt that fails means that another download has ended meanwhile.
_CLAIMS_MAX = 10


class PartFile:
    """A file on its way to becoming another one.

    Attributes:
        done: Bytes in it that are the object's, as far as anybody knows.

    Args:
        target: What it is to become.
        nuid: The object's version.
    """

    def __init__(self, target: Path, nuid: str) -> None:
        self.done: int = 0
        self._target = target
        self._path = part_path(target, nuid)
        self._file: BinaryIO | None = None
        self._is_shared = True
        # Of what an earlier download has left; without that, the reader verifies all of it.
        self._hash = None

    @property
    def is_kept(self) -> bool:
        """True when a later download can go on with it."""
        return self._is_shared

    def open(self) -> None:
        """Claim the file.

        Raises:
            OSError: It can not be written there, or the target is a folder.
        """
        if self._target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self._target))
        try:
            self._file = _claim(self._path)
            if self._file is None:
                self._is_shared = False
                self._path = self._path.with_suffix(f".{secrets.token_hex(4)}.part")
                self._file = _opened(self._path, os.O_EXCL)
        except OSError as error:
            # The caller knows of the target; its folder is what is wrong.
            raise OSError(error.errno, error.strerror, str(self._target)) from error

    def take_over(self, size_max: int) -> bool:
        """Take over some of what an earlier download has left; True when there is more.

        Args:
            size_max: The object's bytes; a file with more of them is none of it.
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
        """Forget what is in it."""
        self._opened().truncate(0)
        self._hash, self.done = None, 0

    def append(self, pieces: list[bytes]) -> None:
        """Write pieces behind what is there.

        Raises:
            OSError: They can not be written.
        """
        file = self._opened()
        file.seek(self.done)
        block = b"".join(pieces)
        if self._hash is not None:
            self._hash.update(block)
        left = memoryview(block)
        while left:  # A file without a buffer may take less than it was given.
            left = left[file.write(left) :]
        self.done += len(block)

    def digest(self) -> bytes | None:
        """Return the SHA-256 of it; None where no earlier download has left anything."""
        return None if self._hash is None else self._hash.digest()

    def finish(self) -> None:
        """Let it become the target.

        Raises:
            OSError: It can not.
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
        """Leave it to others."""
        if self._file is not None:
            self._file.close()

    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise UsageError("the part file is not open")
        return self._file


def part_path(target: Path, nuid: str) -> Path:
    """Return where an object is gathered before it is whole."""
    is_plain = nuid.isalnum() and nuid.isascii() and len(nuid) <= _PLAIN_NUID_CHARS_MAX
    # Other clients' may have what names of files may not.
    version = nuid if is_plain else hashlib.sha256(nuid.encode()).hexdigest()[:22]
    stem = os.fsencode(target.name)[:_NAME_BYTES_MAX].decode(errors="ignore")
    return target.with_name(f"{stem}.{version}.part")


def _opened(path: Path, flags: int = 0) -> BinaryIO:
    # A pipe under the name must not hold the thread up; for a file it means nothing.
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)  # Not on every system.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
    return os.fdopen(descriptor, "r+b", buffering=0)


def _claim(path: Path) -> BinaryIO | None:
    """Open a file that no other download has; None where one has it, or it is no file of ours."""
    for _ in range(_CLAIMS_MAX):
        try:
            file = _opened(path)
        except OSError:
            if os.path.lexists(path):
                return None  # A link, a folder, or a file that is another user's.
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
        file.close()  # It has become a target between the two.
    return None


def _is_ours(found: os.stat_result) -> bool:
    """Tell whether a file may be written: a regular one, of this user, with one name or none."""
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        return False
    return sys.platform == "win32" or found.st_uid == os.geteuid()


def _lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed; False when another one holds it."""
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
