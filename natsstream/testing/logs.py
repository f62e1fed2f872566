"""The log file of a server: its end, as much as a test report takes."""

from __future__ import annotations

import os
from pathlib import Path

# Some 2,000 lines: enough for a test report, and never the whole log of a long run.
LOG_TAIL_BYTES_MAX = 256 * 1024


def tail_of(path: Path, *, from_offset: int = 0) -> str:
    """Return the end of a file: from the offset, at most 256 KiB; empty when there is no file."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(from_offset, size - LOG_TAIL_BYTES_MAX))
            return log.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
