"""The log of a server for test reports: its end, without secrets."""

from __future__ import annotations

import os
import re
from pathlib import Path

# Some 2,000 lines: enough for a test report, and never the whole log of a long run.
LOG_TAIL_BYTES_MAX = 256 * 1024
# Words of nats-server's configuration that have a secret behind them.
_SECRET = re.compile(
    r"""(?:pass(?:word|phrase)?|token|seed|nkey|secret|jwt)["']?[\s:=]*["']?([^\s"',}\])]{4,})""",
    re.IGNORECASE,
)
_HIDDEN = "(hidden)"
# From the first line of a start to its last one, which stays.
_START = re.compile(
    r"^[^\n]*Starting nats-server\n(?:[^\n]*\n)*?(?=[^\n]*Server is ready)", re.MULTILINE
)


def tail_of(path: Path, *, from_offset: int = 0) -> str:
    """Return the end of a file: from the offset, at most 256 KiB; empty when there is no file."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(from_offset, size - LOG_TAIL_BYTES_MAX))
            return log.read().decode("utf-8", errors="replace")
    except OSError:
        return ""


def without_secrets(log: str, config: str) -> str:
    """Return lines of a log without what stands behind a password, token or seed in a config.

    nats-server takes what begins with "$" and has no quotes, as a bcrypt hash may, for a variable,
    and repeats it when there is none.
    """
    found = {match[1].lstrip("$") for match in _SECRET.finditer(config)}
    for value in sorted(filter(None, found), key=len, reverse=True):
        log = log.replace(value, _HIDDEN)
    return log


def without_starts(log: str) -> str:
    """Return a log in which each start is its last line; one that did not succeed stays whole."""
    return _START.sub("", log)
