"""Builds the packages once for all tests of this folder."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
BUILD_TIMEOUT_S = 300.0


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return the files that scripts/build makes, by suffix: `.whl`, `.gz` and `.zip`."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [str(ROOT / "scripts/build"), str(folder)],
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {path.suffix: path for path in folder.iterdir() if path.name != ".gitignore"}
