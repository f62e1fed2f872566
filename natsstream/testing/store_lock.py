"""The claim to a store folder: one owner at a time, and no server that a dead owner left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from pathlib import Path

from natsstream.testing.binary import BINARY_NAME, ServerStartError
from natsstream.testing.processes import command_line, has_exited, poll_until

LOCK_NAME = "server.lock"
# An orphan may have a large store to flush before it ends.
ORPHAN_TERM_WAIT_S = 10.0
ORPHAN_KILL_WAIT_S = 10.0


def lock_folder(folder: Path) -> int:
    """Return a descriptor that holds the folder's lock; closing it frees the lock.

    The end of this process frees it as well. A forked child of this process shares it.

    Raises:
        ServerStartError: Another owner holds it, in this process or in another one, or the lock is
            a link.
    """
    # os.open() gives descriptors that children do not inherit (PEP 446), so a server that outlives
    # its owner does not hold the lock.
    path = folder / LOCK_NAME
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ServerStartError(f"{path} is a link", hint="remove it: it is not ours") from error
    try:
        _lock(fd)
        os.truncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())
    except BlockingIOError as error:
        pid = os.read(fd, 32).decode(errors="replace") or "unknown"
        os.close(fd)
        is_own = pid == str(os.getpid())
        owner = "another NatsServer of this process" if is_own else f"another process (pid {pid})"
        message = f"{owner} uses the folder {folder}"
        raise ServerStartError(message, hint="end it, or use another store_dir") from error
    except BaseException:
        os.close(fd)
        raise
    return fd


def lock_given(folder: Path) -> int:
    """Return a descriptor that holds a folder that somebody has given; no file is made in it.

    Raises:
        ServerStartError: Another owner holds it, in this process or in another one.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(fd)
    except BlockingIOError as error:
        os.close(fd)
        message = f"another cluster uses the folder {folder}"
        raise ServerStartError(message, hint="end it, or use another store_dir") from error
    except BaseException:
        os.close(fd)
        raise
    return fd


def _lock(fd: int) -> None:
    try:
        import fcntl  # noqa: PLC0415 - not on every system.
    except ModuleNotFoundError as error:
        raise ServerStartError(
            "NatsServer needs Linux or macOS", hint="use NatsContainer, or WSL on Windows"
        ) from error
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_private(path: Path, text: str) -> None:
    """Write a file anew that only this user may read; never through a link."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)


def end_orphan(pid_file: Path, binary: Path | None = None) -> None:
    """End the server that a killed owner left on this folder; the caller holds the lock.

    Args:
        pid_file: Absolute path of the file that nats-server wrote its pid to.
        binary: The program that is about to be started: it may have a name of its own. None is any
            program, which is killed at once: nobody needs the data of a temporary folder.

    Raises:
        ServerStartError: The orphan does not end.

    Cost: nothing without an orphan; otherwise at most 20 s, usually as long as a normal stop.
    """
    try:
        pid = int(pid_file.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return
    steps = [(signal.SIGTERM, ORPHAN_TERM_WAIT_S), (signal.SIGKILL, ORPHAN_KILL_WAIT_S)]
    for end_signal, wait_s in steps if binary is not None else steps[1:]:
        # Checked before each signal: pids are used again.
        if not _is_server_of(pid, pid_file, binary):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, end_signal)
            os.kill(pid, signal.SIGCONT)  # It may be paused.
        if poll_until(lambda: has_exited(pid), wait_s):
            return
    message = f"nats-server with pid {pid}, left on {pid_file.parent}, does not end"
    raise ServerStartError(message, hint="end it by hand, or use another store_dir")


def _is_server_of(pid: int, pid_file: Path, binary: Path | None) -> bool:
    """Return True if the process is a nats-server with this pid file, and so on this folder."""
    program, flag, rest = command_line(pid).partition(" -P ")
    is_named = program == str(binary) or Path(program).name.startswith(BINARY_NAME)
    is_server = binary is None or is_named
    return is_server and bool(flag) and rest.startswith(f"{pid_file} ")
