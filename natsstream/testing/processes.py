"""The state of a process by its pid."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_S = 0.01
PS_TIMEOUT_S = 10.0


def command_line(pid: int) -> str:
    """Return program and arguments with a blank between them.

    It is empty where there is no such process, for a zombie, and for one that we may not see.
    """
    if sys.platform != "linux":
        return _ps(pid, "command=")
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return os.fsdecode(raw.replace(b"\0", b" "))


def is_frozen(pid: int) -> bool:
    """Return True if the process is stopped by SIGSTOP."""
    return _state(pid) == "T"


def has_exited(pid: int) -> bool:
    """Return True if all threads of the process are gone.

    A zombie counts as gone: in a container nobody may ever collect it. The first thread of a dying
    process is a zombie while the others finish their system calls, so on Linux they are counted.
    """
    if sys.platform != "linux":
        return _state(pid) in {"", "Z"}
    try:
        n_threads = len(os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return True
    return n_threads <= 1 and _state(pid) in {"", "Z"}


def poll_until(condition: Callable[[], bool], deadline_s: float) -> bool:
    """Return True as soon as the condition holds, False when it does not within the deadline."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def _state(pid: int) -> str:
    """Return the state letter of `ps`, T stopped, Z zombie; empty for no process."""
    if sys.platform != "linux":
        return _ps(pid, "state=")[:1]
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    # "pid (program name) state ...", and the name may hold blanks and brackets.
    return stat.rpartition(b") ")[2][:1].decode()


def _ps(pid: int, column: str) -> str:
    answer = subprocess.run(  # noqa: S603 - A list, no shell.
        ["ps", "-ww", "-p", str(pid), "-o", column],  # noqa: S607 - Systems differ in where ps is.
        capture_output=True,
        text=True,
        timeout=PS_TIMEOUT_S,
        check=False,
    )
    return answer.stdout.strip()
