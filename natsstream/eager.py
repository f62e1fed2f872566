"""Coroutines that start at once, and become tasks at their first wait.

Until then nothing else runs: no socket is read while the messages of the last read are waiting.
Python has had this since 3.12, as `eager_start` of a task.
"""

from __future__ import annotations

import asyncio

# Public for makers of tasks: see "Extending" in Python's documentation of asyncio.
from asyncio import _enter_task, _leave_task  # pyright: ignore[reportPrivateUsage]
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any, Generic, TypeVar, final

T = TypeVar("T")

# The traceback of an error keeps the frames that it has passed, and a task keeps its error. So the
# frames here forget what they hold: else only the garbage collector would free the reader's.


@final
class Begun(Generic[T]):
    """A coroutine that has run up to its first wait, or to its end.

    Args:
        coroutine: One that nobody awaits.
        loop: The loop that runs here.

    Attributes:
        task: Its task from then on. After an end before, it ends by itself in the next turn.
        is_waiting: False if it has ended.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        rest, context = _Rest(coroutine), copy_context()
        self.task: asyncio.Task[T] = asyncio.Task(rest, loop=loop, context=context)
        self._value: Any = None
        self._error: BaseException | None = None
        # So that a timeout inside cancels this task, and not the one that starts it.
        starter = asyncio.current_task(loop)
        if starter is not None:
            _leave_task(loop, starter)
        _enter_task(loop, self.task)
        try:
            context.run(rest.begin)
        except StopIteration as end:
            self._value = end.value
        except BaseException as error:  # noqa: BLE001 - kept, as by a task.
            self._error = error
        finally:
            _leave_task(loop, self.task)
            if starter is not None:
                _enter_task(loop, starter)
        self.is_waiting: bool = rest.is_waiting
        if not self.is_waiting:
            # Nothing is lost where its loop ends first; asyncio's `gather` says so in this way too.
            self.task._log_destroy_pending = False  # pyright: ignore[reportAttributeAccessIssue]  # noqa: SLF001
        del self, starter, rest, coroutine, context

    def result(self) -> T:
        """Return what it has returned, or raise what it has raised; once, when it has ended."""
        error, self._error = self._error, None
        if error is None:
            return self._value
        try:
            raise error
        finally:
            del error, self


class _Rest(Coroutine[Any, Any, T]):
    """The rest of a coroutine, for its task."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self.is_waiting: bool = False
        self._coroutine = coroutine
        self._is_taken_up = False
        self._awaited: Any = None

    def begin(self) -> None:
        """Run up to the first wait."""
        self._awaited = self._coroutine.send(None)
        self._mark_awaited(is_taken=True)
        self.is_waiting = True

    def send(self, value: Any, /) -> Any:
        if self._is_taken_up:
            return self._coroutine.send(value)
        if not self.is_waiting:
            raise StopIteration
        return self._take_up()

    def throw(self, typ: Any, val: Any = None, _tb: Any = None, /) -> Any:
        error = typ if val is None else val
        try:
            if not self.is_waiting:
                raise error
            if not self._is_taken_up:
                # Its task was cancelled before its first turn; a task cancels what it waits for.
                awaited = self._take_up()
                if awaited is not None and awaited.cancel(*error.args):
                    return awaited
            return self._coroutine.throw(error)
        finally:
            del self, typ, val, error

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Any:
        raise NotImplementedError  # A task sends.

    def __getattr__(self, name: str) -> Any:
        # The name and the frame, by which asyncio shows a task.
        return getattr(self._coroutine, name)

    def _take_up(self) -> Any:
        self._is_taken_up = True
        self._mark_awaited(is_taken=False)
        awaited, self._awaited = self._awaited, None
        return awaited

    def _mark_awaited(self, *, is_taken: bool) -> None:
        """Mark a future as tasks do: its next waiter has it only when the one before took it."""
        if self._awaited is not None:
            self._awaited._asyncio_future_blocking = not is_taken  # noqa: SLF001
