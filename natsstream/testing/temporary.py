"""The temporary folders of servers, and the end of those that killed processes left.

Law: only a folder that bears the name of its owner is removed, and only if that owner is certainly
gone. A folder that somebody has given is never touched.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import tempfile
from pathlib import Path

from natsstream.testing.binary import ServerStartError
from natsstream.testing.owners import is_dead, this_process
from natsstream.testing.store_lock import LOCK_NAME, end_orphan, lock_folder

_PREFIX = "natsstream-"
_OWNER = ".natsstream-owner"
_REMOVED = ".natsstream-removed"
_MARKS = (_OWNER, _REMOVED)

_log = logging.getLogger(__name__)


def temporary_folder() -> Path:
    """Return a new temporary folder, after those of dead owners and their servers were removed.

    Cost: a look at each folder of the kind; servers that were left are killed.
    """
    for folder in Path(tempfile.gettempdir()).resolve().glob(f"{_PREFIX}*"):
        try:
            _remove_left(folder)
        except (OSError, ServerStartError) as error:
            _log.info("temporary folder %s stays: %s", folder, error)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    # With its own name, which a copy of the folder has not.
    (folder / _OWNER).write_text(f"{folder.name} {this_process()}", encoding="utf-8")
    return folder


def keep_folder(folder: Path) -> None:
    """Let a folder that somebody has given stay: it may be in one that a killed process left."""
    for each in (folder, *folder.parents):
        if each.name.startswith(_PREFIX):
            for mark in _MARKS:
                # Of a folder of somebody else it stays: this user never removes that.
                with contextlib.suppress(OSError):
                    (each / mark).unlink()


def _remove_left(folder: Path) -> None:
    """Remove a folder whose owner is dead, with the servers that run on it.

    Raises:
        ServerStartError: A forked child of the owner uses it, or a server does not end.
        OSError: It cannot be removed, or was given to somebody meanwhile.
    """
    mark = next((folder / each for each in _MARKS if (folder / each).is_file()), None)
    if folder.is_symlink() or mark is None:
        return
    name, _, owner = mark.read_text(encoding="utf-8", errors="replace").partition(" ")
    # By a process that ended before all was removed.
    is_moved = mark.name == _REMOVED and re.fullmatch(f"{re.escape(name)}-[0-9]+", folder.name)
    # Those of other users are theirs, also for root.
    is_own = folder.stat().st_uid == os.getuid() and is_dead(owner)
    if not is_own or (folder.name != name and not is_moved):
        return
    # A cluster has a folder for each node, and a lock of its own.
    pid_files = [*folder.glob("server.pid"), *folder.glob("n[0-9]/server.pid")]
    with contextlib.ExitStack() as locks:
        for each in {folder, *(pid_file.parent for pid_file in pid_files)}:
            locks.callback(os.close, lock_folder(each))
        for pid_file in pid_files:
            end_orphan(pid_file)
        # A server that was given a folder in it has taken the mark, or finds the folder gone.
        mark.rename(folder / _REMOVED)
        _remove_all(folder.rename(folder.with_name(f"{name}-{os.getpid()}")))


def _remove_all(folder: Path) -> None:
    """Remove a folder, mark and lock last: another process removes what this one has left."""
    for each in folder.iterdir():
        if each.name in (_REMOVED, LOCK_NAME):
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()
    shutil.rmtree(folder)
