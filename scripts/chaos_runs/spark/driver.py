"""The driver of a run: one program after the other, each from the checkpoints of the one before.

Law: every process of a program that was started has ended with it. A program that ends by itself is
a finding.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from scripts.chaos_runs.ledger import Findings
from scripts.chaos_runs.spark.cluster import JAVA_OPTIONS

# It works off what came while servers and drivers were away.
_END_S = 300.0
_LINES = 40


class Driver:
    """Runs programs.

    Args:
        folder: For tables, checkpoints and logs.
        findings: Where an end that nobody wanted is written down.

    Attributes:
        starts: Programs that were started.
    """

    def __init__(self, folder: Path, findings: Findings) -> None:
        self._folder = folder
        self._log = folder / "driver.log"
        self._findings = findings
        self._process: Process | None = None
        self.starts: int = 0

    async def start(self, master: str, urls: Sequence[str]) -> None:
        """Start a program, with its JVM and its Python processes in a session of its own.

        Args:
            master: Spark's master.
            urls: The servers.
        """
        self.starts += 1
        arguments = (master, ",".join(urls), str(self._folder))
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "scripts.chaos_runs.spark.program", *arguments),
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                env=os.environ | {"SPARK_SUBMIT_OPTS": JAVA_OPTIONS},
                start_new_session=True,
            )

    def check(self) -> None:
        """Write down if the program has ended by itself."""
        if self._process is not None and self._process.returncode is not None:
            self._tell(f"it has ended by itself with {self._process.returncode}")

    async def kill(self) -> None:
        """End it as a crash of its machine does."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.communicate()
            self._process = None

    async def finish(self) -> None:
        """Let it read and copy all that is there, and end."""
        if self._process is None:
            return
        try:
            async with asyncio.timeout(_END_S):
                # Empty input: without any, asyncio leaves the pipe open.
                output, _ = await self._process.communicate(b"")
        except TimeoutError:
            self._tell(f"it does not end within {_END_S:g} s")
            return
        if output != b"end\n":
            self._tell(f"it has ended by {output!r}")

    def _tell(self, text: str) -> None:
        lines = self._log.read_text(errors="replace").splitlines()[-_LINES:]
        self._findings.add("driver", "\n".join([text, *lines]))
