"""What this process holds: threads and descriptors, each told from all others.

Counting them is not enough: what an earlier test has left may go at any moment, and take the place
of a leak in the count.
"""

from __future__ import annotations

import contextlib
import os
import threading


def threads() -> set[threading.Thread]:
    """Return the threads that live."""
    return set(threading.enumerate())


def descriptors() -> set[tuple[int, str]]:
    """Return each open descriptor with what it is of."""
    found: set[tuple[int, str]] = set()
    for name in os.listdir("/proc/self/fd"):
        # That of the listing itself is closed by now.
        with contextlib.suppress(OSError):
            found.add((int(name), os.readlink(f"/proc/self/fd/{name}")))
    return found
