"""How tests are dealt out to the workers of pytest-xdist: a file stays together, or is spread."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdist.scheduler import (  # pyright: ignore[reportMissingTypeStubs] - It has none.
    LoadFileScheduling,
)

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
MARK = "pytest.mark.spread"


@cache
def is_spread(file: str) -> bool:
    """Return True if each test of a file may run on another worker, because the file says so."""
    path = ROOT / file
    return path.is_file() and MARK in path.read_text()


class SpreadScheduling(LoadFileScheduling):
    """As `--dist loadfile`, but a file that is marked `spread` is no unit.

    A long file on one worker would outlast everything else.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return nodeid if is_spread(file) else file


def make_scheduler(config: pytest.Config, log: Any) -> SpreadScheduling:
    """Return the scheduler of a run."""
    return SpreadScheduling(config, log)
