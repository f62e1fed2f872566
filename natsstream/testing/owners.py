"""The processes that have made servers for tests: their names, and whether they are gone.

Law: a process counts as gone only where that is certain.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path


def this_process() -> str:
    """Return a text that names this process; empty where that cannot be told (not on Linux)."""
    machine = _machine()
    started = _start_ticks(os.getpid())
    return f"{machine} {os.getpid()} {started}" if machine and started is not None else ""


def is_dead(owner: str) -> bool:
    """Return True if a text names a process of this machine that is gone."""
    rest, _, started = owner.rpartition(" ")
    machine, _, process = rest.rpartition(" ")
    if not machine or machine != _machine() or not re.fullmatch(r"[1-9][0-9]{0,8}", process):
        return False
    pid = int(process)
    try:
        os.kill(pid, 0)  # Sends nothing. Where /proc hides the processes of others, it still tells.
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    # A pid is used again; the time of the start tells the processes apart.
    ticks = _start_ticks(pid)
    return ticks is not None and str(ticks) != started


def _machine() -> str:
    """Return what tells this machine, boot and process namespace from others; empty if unknown.

    Two CI jobs in containers may share a Docker daemon and have the same pids.
    """
    if sys.platform != "linux":
        return ""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since the boot; None for no process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Field 22; the program's name before it may hold blanks and brackets.
    return int(stat.rpartition(b") ")[2].split()[19])
