"""How a job ends at SIGTERM or SIGINT: it unwinds, and stops Spark.

Law: after the signal every error is the interruption's, and nothing more is logged.
"""

from __future__ import annotations

import logging
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

from pyspark import SparkContext

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from pyspark.sql import SparkSession

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# `timeout` signals its child twice: once by itself, and once with the group.
_SAME_S = 1.0
_SILENCE_S_MAX = 2.0
_POLL_S = 0.1
# A task that is in the middle of a request to NATS ends within seconds.
_STOP_S_MAX = 15.0


class Interruption:
    """Raises KeyboardInterrupt at SIGTERM and SIGINT, from entry to exit; for the main thread."""

    def __init__(self) -> None:
        self._time_s: float | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._before = {each: signal.signal(each, self._note) for each in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    @property
    def is_set(self) -> bool:
        """True after the signal."""
        return self._time_s is not None

    def start_spark(self, start: Callable[[], SparkSession]) -> SparkSession:
        """Return the session that a function starts, in a thread: in this one it takes SIGINT."""
        has_ended = Event()

        def started() -> SparkSession:
            try:
                return start()
            finally:
                has_ended.set()

        with ThreadPoolExecutor(max_workers=1) as starter:
            try:
                return starter.submit(started).result()
            except KeyboardInterrupt:
                _end_start(has_ended)
                raise

    def stop_spark(self) -> None:
        """Stop the tasks of Spark, as far as its JVM still answers."""
        _ask_spark(lambda context: context.stop(), _STOP_S_MAX)

    def _note(self, _: int, __: FrameType | None) -> None:
        now_s = time.monotonic()
        if self._time_s is not None and now_s - self._time_s < _SAME_S:
            return
        self._time_s = now_s
        # py4j logs each call that ends early, and Spark each task; Python warns of a coroutine that
        # no loop has taken yet.
        logging.disable()
        warnings.simplefilter("ignore")
        _ask_spark(_silence, _SILENCE_S_MAX)
        raise KeyboardInterrupt


def _end_start(has_ended: Event) -> None:
    """Kill the JVM that starts: it has done nothing yet, and would print where it was."""
    private: Any = SparkContext
    while private._gateway is None and not has_ended.wait(_POLL_S):  # noqa: SLF001
        pass
    # There is no process where spark-submit has started the JVM.
    java = getattr(private._gateway, "proc", None)  # noqa: SLF001
    if java is not None:
        java.kill()


def _silence(context: Any) -> None:
    context.setLogLevel("OFF")
    # Threads that end by an error print it, whatever the level.
    java = context._jvm.java  # noqa: SLF001
    nothing = java.io.OutputStream.nullOutputStream()
    java.lang.System.setErr(java.io.PrintStream(nothing))


def _ask_spark(question: Callable[[Any], object], wait_s: float) -> None:
    """Ask a running Spark for something, and wait for it a limited time."""
    private: Any = SparkContext
    context = private._active_spark_context  # noqa: SLF001 - There is no public way without starting one.
    if context is None:
        return

    def ask() -> None:
        with suppress(Exception):  # Its JVM may have got the signal too.
            question(context)

    # The connection of this thread may wait for an answer; another thread has its own.
    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(wait_s)
