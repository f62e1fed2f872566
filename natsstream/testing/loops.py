"""One thread with an event loop of its own, for proxies that must not share the test's loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import selectors
import threading
from typing import TYPE_CHECKING, TypeVar

from natsstream.errors import NatsStreamError

if TYPE_CHECKING:
    from collections.abc import Callable

# Callbacks on the loop take microseconds; only a machine that stands still needs more than this.
CALL_WAIT_S = 30.0

T = TypeVar("T")


class LoopThread:
    """A daemon thread that runs an event loop between `start()` and `stop()`."""

    def __init__(self, name: str) -> None:
        """Describe a thread; nothing runs yet.

        Args:
            name: Name of the thread, as debuggers show it.
        """
        self._name = name
        self._loop: asyncio.SelectorEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._owner_pid = 0

    @property
    def is_running(self) -> bool:
        """Whether the thread lives; False in a forked child, which inherits no threads."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def loop(self) -> asyncio.SelectorEventLoop:
        """The loop, for code that runs on it.

        Raises:
            NatsStreamError: The thread does not run.
        """
        if self._loop is None:
            raise NatsStreamError(f"the thread {self._name} is not running")
        return self._loop

    def start(self) -> None:
        """Start the thread; one that runs stays as it is."""
        if self._loop is not None:
            return
        # Named here, since the process may have another default that has no add_reader().
        loop = asyncio.SelectorEventLoop(selectors.DefaultSelector())
        thread = threading.Thread(target=loop.run_forever, name=self._name, daemon=True)
        thread.start()
        self._loop, self._thread, self._owner_pid = loop, thread, os.getpid()

    def call(self, function: Callable[[], T]) -> T:
        """Run a function on the thread and return what it returns; it must not wait.

        May be called from async code: it takes microseconds.

        Raises:
            NatsStreamError: The thread does not run, or does not answer within 30 s.
        """
        loop = self.loop
        if not self.is_running:
            message = f"the thread {self._name} has ended"
            raise NatsStreamError(message, hint="a forked child inherits no threads")
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            try:
                answer.set_result(function())
            except BaseException as error:  # noqa: BLE001 - Raised again in the caller's thread.
                answer.set_exception(error)

        loop.call_soon_threadsafe(run)
        try:
            return answer.result(CALL_WAIT_S)
        except concurrent.futures.TimeoutError as error:
            message = f"the thread {self._name} does not answer within {CALL_WAIT_S} s"
            raise NatsStreamError(message) from error

    def stop(self) -> None:
        """End the thread and its loop; does nothing when it does not run.

        Raises:
            NatsStreamError: The thread does not end within 30 s.
        """
        loop, thread = self._loop, self._thread
        # A forked child has no thread to end, and its loop's descriptors are those of its parent.
        if loop is None or thread is None or os.getpid() != self._owner_pid:
            return
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        thread.join(CALL_WAIT_S)
        if thread.is_alive():
            raise NatsStreamError(f"the thread {self._name} does not end within {CALL_WAIT_S} s")
        self._loop = self._thread = None
        loop.close()
