"""Prints the tests that failed in the last run, a line each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

CACHE = Path(".pytest_cache/v/cache/lastfailed")


def read_last_failed(path: Path) -> list[str]:
    """Return the node ids that pytest has noted as failed; none when it has noted nothing."""
    if not path.exists():
        return []
    return sorted(json.loads(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}\n" for name in read_last_failed(CACHE))
