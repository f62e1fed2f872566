"""The demo with three programs and a killed server ends with one list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_three_programs_have_the_same_list_after_their_server_was_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.three_clients", "--seconds", "3", "--kills", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kills: the same list everywhere, each message once" in done.stdout
