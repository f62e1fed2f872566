"""A program that drives a client in another language: a JSON command a line, an answer a line."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from tests.interop.clients.client import RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

# Only a hang may reach them: a machine that is busy with other tests stands still for seconds.
TIMEOUT_S = 30.0
END_TIMEOUT_S = 30.0

_STDERR_LINES = 40


class Program:
    """Its process; serves tests whose event loops differ, one after the other."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        """Describe it; nothing runs yet.

        Args:
            name: Of the client that it drives.
            command: The program and its arguments.
        """
        self._name = name
        self._command = command
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._is_over = False
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self._threads = [
            threading.Thread(target=self._read_answers, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        try:
            # The program ends with its stdin.
            self._process.stdin.close()
            self._process.wait(END_TIMEOUT_S)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            self._process.wait(END_TIMEOUT_S)
        for thread in self._threads:
            thread.join(END_TIMEOUT_S)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def call(self, verb: str, *, timeout_s: float = TIMEOUT_S, **arguments: object) -> Any:
        """Have one command done and return its result.

        Raises:
            RefusedError: The client raised an error; `err_code` is the server's, else 0.
            TimeoutError: No answer in time.
            RuntimeError: The process has ended.
        """
        number = next(self._ids)
        future: Future[Any] = Future()
        with self._lock:
            if self._is_over:
                raise self._ended()
            self._waiting[number] = future
        line = json.dumps({"id": number, "verb": verb, **arguments})
        assert self._process.stdin is not None
        try:
            try:
                self._process.stdin.write(f"{line}\n")
                self._process.stdin.flush()
            except BrokenPipeError as error:
                raise self._ended() from error
            async with asyncio.timeout(timeout_s):
                answer = await asyncio.wrap_future(future)
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if error := answer.get("error"):
            raise RefusedError(f"{verb}: {error['name']}: {error['message']}", error["err_code"])
        return answer["result"]

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            with self._lock:
                future = self._waiting.pop(answer["id"], None)
            # Whoever has waited too long is gone.
            if future is not None and future.set_running_or_notify_cancel():
                future.set_result(answer)
        with self._lock:
            self._is_over = True
            left = list(self._waiting.values())
        for future in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(self._ended())

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        self._stderr.extend(self._process.stderr)

    def _ended(self) -> RuntimeError:
        return RuntimeError(f"the process of {self._name} has ended:\n{''.join(self._stderr)}")
