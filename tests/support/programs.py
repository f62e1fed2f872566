"""Runs many short programs in one process: a start takes longer than most of them, Java's most.

Law: a program is told apart from others by its file, its output and its exit code. Programs with
Spark share a Java, to which a relative path means the folder that it was started in.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

_ROOT = Path(__file__).parents[2]
_END_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended, and all that it printed."""

    code: int
    stdout: str
    stderr: str


class ProgramHost:
    """A process that runs programs one after another.

    Args:
        environment: Its environment variables, which the programs have too.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self._answers, writing = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.program_host", str(writing)],
                stdin=subprocess.PIPE,
                cwd=_ROOT,
                env=environment,
                pass_fds=[writing],
                start_new_session=True,
            )
        finally:
            os.close(writing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(BrokenPipeError):
            self._input().close()
        try:
            self._process.wait(_END_WAIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._answers)

    def run(self, file: Path, *, folder: Path, url: str, timeout_s: float) -> Ended:
        """Run a program to its end, in a folder and with the address of a server."""
        stdout, stderr = file.with_suffix(".stdout"), file.with_suffix(".stderr")
        task = {"file": file, "folder": folder, "stdout": stdout, "stderr": stderr, "url": url}
        self._input().write(f"{json.dumps(task, default=str)}\n".encode())
        self._input().flush()
        code = -1
        if select.select([self._answers], [], [], timeout_s)[0]:
            code = int(os.read(self._answers, 16) or b"-1")
        else:  # Its answer must not be taken for that of the next program.
            os.killpg(self._process.pid, signal.SIGKILL)
        return Ended(code, stdout.read_text(), stderr.read_text())

    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin
