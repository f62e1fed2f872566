"""Containers whose Python process was killed: whose they are, and their end.

testcontainers has a reaper container for this, but its image is not everywhere. So what is made
here bears a label with its owner, and the next owner on the same machine removes what a dead one
left.
Its law: where it is not certain that the owner is dead, nothing is removed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from docker.errors import DockerException

if TYPE_CHECKING:
    from collections.abc import Generator

    from docker import DockerClient

OWNER_LABEL = "natsstream.testing.owner"

_log = logging.getLogger(__name__)


def owner_labels() -> dict[str, str]:
    """Return the label that names this process as the owner."""
    machine = _machine()
    started = _start_ticks(os.getpid())
    if not machine or started is None:
        return {}
    return {OWNER_LABEL: f"{machine} {os.getpid()} {started}"}


def remove_leftovers(client: DockerClient) -> int:
    """Remove the containers and networks that dead processes of this machine left.

    Returns:
        How many were removed. A failure to remove one is logged, not raised: it is not the
        caller's container, and the next call tries again.
    """
    removed = 0
    filters = {"label": OWNER_LABEL}
    for container in client.containers.list(all=True, filters=filters, ignore_removed=True):
        if is_dead(container.labels.get(OWNER_LABEL, "")):
            with _logged(f"container {container.name}"):
                container.remove(force=True, v=True)
                removed += 1
    for network in client.networks.list(filters=filters):
        labels: dict[str, str] = network.attrs.get("Labels") or {}
        if is_dead(labels.get(OWNER_LABEL, "")):
            with _logged(f"network {network.name}"):
                network.remove()
                removed += 1
    return removed


def is_dead(owner: str) -> bool:
    """Return True if the owner that a label names is a process of this machine that is gone."""
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


@contextlib.contextmanager
def _logged(what: str) -> Generator[None]:
    try:
        yield
    except DockerException as error:
        _log.warning("%s was left by a dead process and cannot be removed: %s", what, error)
    else:
        _log.info("removed %s, which a dead process had left", what)


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
