"""An event loop in a thread, with one connection on it.

Law: whoever waits here is woken, by a result or by an error, also when the connection is closed in
another thread; nothing waits in a process that was forked off, or on the loop's own thread.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import Any, NoReturn

from natsstream import connection
from natsstream.blocking.words import without_async
from natsstream.consume.work.handlers import NotBegunError
from natsstream.errors import ConnectionClosedError, NatsStreamError, UsageError
from natsstream.foreign_names import HERE

# Readers have this long to end. Then open producers store what they hold for 5 s at most, and
# closing the connection takes 2 s at most; the rest of the limit is for a busy machine.
_TASKS_TIMEOUT_S = 1.0
STOP_TIMEOUT_S = 10.0
# Threads are started as handlers need them; how many run at once is for whoever calls them.
_THREADS_MAX = 1_024
_START_POLL_S = 0.001
SIGNAL_LOOK_S = 0.5
"""How long a wait lasts at most until it looks for signals.

A signal ends a wait for a lock only while no handler restarts it. Importing polars is enough to
change that: it installs a handler of its own for SIGINT.
"""

_log = logging.getLogger("natsstream")


class Portal:
    """An open connection on an event loop in a thread of its own."""

    def __init__(self, opened: connection.Connection) -> None:
        self._connection = opened
        self._pid = os.getpid()
        # Reentrant: a collection of garbage may close an iterator in the middle of any line.
        self._lock = threading.RLock()
        self._is_stopped = False
        self._main: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads: ThreadPoolExecutor | None = None
        self._handling: set[Future[Any]] = set()
        self._opening: Future[Any] = Future()
        self._thread = threading.Thread(target=self._run, name="natsstream", daemon=True)
        self.root: object = None

    @property
    def is_stopped(self) -> bool:
        """True once `stop` was called."""
        return self._is_stopped

    @property
    def is_current_thread(self) -> bool:
        """True on the loop's own thread."""
        # Not its ident: systems give that of a thread that has ended to a new one.
        return threading.current_thread() is self._thread

    def open(self) -> Any:
        """Connect and return the async JetStream context."""
        # A daemon thread is frozen at the interpreter's exit; whoever waits for it then, hangs.
        atexit.register(self.stop)
        try:
            self._thread.start()
            self.root = _result_of(self._opening)
        except asyncio.CancelledError:  # Stopped in another thread.
            raise closed_error() from None
        except BaseException:
            self.stop()
            raise
        return self.root

    def stop(self) -> None:
        """Close the connection, end what still runs and the thread; stopping twice is fine."""
        atexit.unregister(self.stop)
        # In a fork there is no thread to end, and the socket and the selector are the parent's.
        if self._is_stopped or self._pid != os.getpid():
            return
        with self._lock:
            self._is_stopped = True
            if self._main is not None:
                with suppress(RuntimeError):  # The loop is closed when the opening failed.
                    self._main.get_loop().call_soon_threadsafe(self._main.cancel)
        if self.is_current_thread:
            return
        # A Ctrl-C may come in the middle of its start, when it cannot be joined yet.
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while not self._thread.is_alive() and self._thread in threading.enumerate():
            if time.monotonic() > deadline:
                break
            time.sleep(_START_POLL_S)
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)
        if self._thread.is_alive():
            _log.warning("the loop of %r did not end in %g s", self._connection, STOP_TIMEOUT_S)
        left = sum(not each.done() for each in tuple(self._handling))
        if left:  # The interpreter joins their threads before it ends.
            _log.warning(
                "%d %s in a thread: this process cannot end before",
                left,
                "handler still runs" if left == 1 else "handlers still run",
            )

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Run a function or coroutine function on the loop and return its result.

        An interrupt cancels it and waits for its end: a worker lets its handlers finish, a put
        removes what it has stored. Another interrupt ends the wait.

        Raises:
            ConnectionClosedError: The connection is closed, or was closed meanwhile.
            UsageError: This is a fork, or the loop's own thread.
        """
        self.check_process()
        if self.is_current_thread:
            raise UsageError(
                "a blocking call on the loop's own thread would wait for itself",
                hint="call it from another thread, or use the async classes of natsstream",
            )
        with self._lock:
            loop = self._open_loop(function)
            begun: list[asyncio.Task[Any]] = []
            future = asyncio.run_coroutine_threadsafe(_run(function, args, options, begun), loop)
        try:
            return _result_of(future)
        except (CancelledError, NotBegunError):
            raise closed_error(function) from None
        except BaseException as error:
            if future.cancel():
                self._wait_for_end(begun, loop)
            say_it_blocking(error)
            raise
        finally:
            del future  # It holds the error, whose traceback holds this frame.

    def _wait_for_end(
        self, begun: list[asyncio.Task[Any]], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Wait until what was cancelled has ended."""

        async def ended() -> None:
            # It is here by now, or it never begins: the cancellation came to the loop before this.
            if begun:
                await asyncio.wait(begun)

        with self._lock:
            if self._is_stopped:  # The end of the loop ends everything.
                return
            future = asyncio.run_coroutine_threadsafe(ended(), loop)
        with suppress(CancelledError):
            _result_of(future)

    def post(self, callback: Callable[[], object]) -> None:
        """Run a callback on the loop soon; raises as `call` does."""
        self.check_process()
        with self._lock:
            self._open_loop().call_soon_threadsafe(callback)

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine beside the calls; for the loop's own thread.

        It is cancelled before the connection closes, so that it can free what it has on the server.
        """
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def run_in_thread(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function in a thread and return its result; for the loop's own thread.

        A thread cannot be cancelled. Cancelled once, this waits for the function's end: an election
        must not hand over what the function still uses. Cancelled again, as by a worker after its
        `stop_timeout`, or when the connection closes, it leaves the thread alone.

        Raises:
            NotBegunError: The connection is closed, or Python ends; the function was not called.
        """
        if self._is_stopped:
            raise _not_begun()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(
                _THREADS_MAX, thread_name_prefix="natsstream handler"
            )
        # As asyncio.to_thread does: what it calls from there knows for whom it runs.
        try:
            handling = self._threads.submit(copy_context().run, function, *args)
        except RuntimeError as error:
            if "shutdown" not in str(error):  # As where the machine has no thread left.
                raise
            raise NotBegunError(
                "the interpreter ends, and begins no thread for a handler",
                hint="leave the blocks of workers before the main thread ends",
            ) from None
        self._handling.add(handling)
        handling.add_done_callback(self._handling.discard)
        future = asyncio.wrap_future(handling)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if handling.cancelled():  # It waited for a thread when the connection closed.
                raise _not_begun() from None
            future.add_done_callback(_look_at)
            if not self._is_stopped:
                await asyncio.wait([future])
            raise

    def check_process(self) -> None:
        """Raise UsageError in a process that was forked off after the connection was made."""
        if self._pid != os.getpid():
            raise UsageError(
                f"the connection belongs to process {self._pid}, and this is {os.getpid()}, a fork",
                hint="connect in the new process",
            )

    def _open_loop(self, call: object = None) -> asyncio.AbstractEventLoop:
        # Tasks put on the loop under the lock come before the end of `_live`, so `asyncio.run`
        # cancels them at the latest: no caller waits for ever.
        if self._is_stopped or self._main is None:
            raise closed_error(call)
        return self._main.get_loop()

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._live())

    async def _live(self) -> None:
        with self._lock:
            self._main = asyncio.current_task()
            is_stopped = self._is_stopped
        try:
            if is_stopped:
                raise closed_error()
            opened = await self._connection.open()
        except BaseException as error:  # noqa: BLE001 - `open` raises it in the caller's thread.
            self._opening.set_exception(error)
            return
        try:
            self._opening.set_result(opened)
            await asyncio.get_running_loop().create_future()
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=_TASKS_TIMEOUT_S)
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
            await self._connection.close()

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            "an open connection cannot be pickled or copied",
            hint="send the URL and the names instead, and connect where they arrive",
        )


async def _run(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    begun: list[asyncio.Task[Any]],
) -> object:
    if (task := asyncio.current_task()) is not None:
        begun.append(task)
    result = function(*args, **options)
    return await result if inspect.iscoroutine(result) else result


def _result_of(future: Future[Any]) -> Any:
    """Wait for a result, so that a signal ends the wait; see `SIGNAL_LOOK_S`."""
    while not future.done():
        with suppress(TimeoutError):
            return future.result(SIGNAL_LOOK_S)
    return future.result()


def _look_at(future: asyncio.Future[Any]) -> None:
    """Look at an error that nobody waits for: asyncio would complain."""
    if not future.cancelled():
        future.exception()


def _not_begun() -> NotBegunError:
    error = closed_error()
    return NotBegunError(error.message, hint=error.hint)


def closed_error(call: object = None) -> ConnectionClosedError:
    """Return what a call after `close` raises, with the name of a public method."""
    name = getattr(call, "__name__", "_")
    what = "" if name.startswith("_") else f"{name}(): "
    return ConnectionClosedError(
        f"{what}the connection is closed",
        hint="open a new one with natsstream.blocking.connect()",
    )


def say_it_blocking(error: BaseException | None) -> None:
    """Let an error's hint show calls as they are written without async."""
    if isinstance(error, NatsStreamError):
        error.hint = without_async(error.hint)
    elif isinstance(error, AttributeError | TypeError) and HERE in str(error):
        error.args = (without_async(str(error)),)
