"""Type checkers accept what users write, and refuse each line that is marked `# wrong`.

mypy checks the programs of the pages in the same run.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.test_snippets import ROOT, find_snippets, pages

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS = Path(__file__).parent / "programs"
CONFIG = Path(__file__).parent / "mypy.ini"
BIN = Path(sys.executable).parent
# Only a hang reaches it.
TIMEOUT_S = 600.0

Lines = set[tuple[str, int]]


def marked() -> Lines:
    """Return file and number of each line that is wrong on purpose."""
    return {
        (file.name, number)
        for file in PROGRAMS.glob("*.py")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if "  # wrong: " in line
    }


def run(command: list[str], folder: Path) -> str:
    """Run a type checker of this environment, and return what it prints."""
    program, *arguments = command
    done = subprocess.run(
        [BIN / program, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=folder,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def refused_by_mypy(tmp_path: Path) -> Lines:
    """Return the lines that mypy refuses."""
    options = [
        f"--config-file={CONFIG}",
        f"--cache-dir={ROOT / '.mypy_cache' / 'programs'}",
        "--strict",
        "--no-error-summary",
        "--no-color-output",
    ]
    files = [*sorted(map(str, PROGRAMS.glob("*.py"))), *write_snippets(tmp_path)]
    printed = run(["mypy", *options, f"--python-executable={sys.executable}", *files], tmp_path)
    found = re.findall(r"^(.+?):(\d+): error:", printed, re.MULTILINE)
    return {(Path(file).name, int(number)) for file, number in found}


def write_snippets(folder: Path) -> list[str]:
    """Write the programs of the pages, each line where it stands on its page; return the files."""
    files: list[str] = []
    for page in pages():
        name = re.sub(r"\W", "_", str(page.relative_to(ROOT)))
        for snippet in find_snippets(page.read_text()):
            file = folder / f"{name}_{snippet.line}.py"
            file.write_text("\n" * (snippet.line - 1) + snippet.program)
            files.append(str(file))
    assert len(files) > 100
    return files


def refused_by_pyright(tmp_path: Path) -> Lines:
    """Return the lines that basedpyright refuses, with pyright's standard rules."""
    del tmp_path
    options = ["--outputjson", f"--pythonpath={sys.executable}", f"--project={PROGRAMS}"]
    found = json.loads(run(["basedpyright", *options], PROGRAMS))["generalDiagnostics"]
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
        for each in found
        if each["severity"] == "error"
    }


@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.sampled_variants
@pytest.mark.parametrize("refused", [refused_by_mypy, refused_by_pyright])
def test_checker_refuses_the_marked_lines_and_no_others(
    refused: Callable[[Path], Lines], tmp_path: Path
) -> None:
    assert len(marked()) > 20
    assert refused(tmp_path) == marked()
