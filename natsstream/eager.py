"""Coroutines that start at once, and become tasks at their first wait.

Until then nothing else runs: no socket is read while the messages of the last read are waiting.
Python has had this since 3.12, as `eager_start` of a task.
"""

from __future__ import annotations

import asyncio

# Public for makers of tasks: see "Extending" in Python's documentation of asyncio.
from asyncio import _enter_task, _leave_task  # pyright: ignore[reportPrivateUsage]
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar, final

T = TypeVar("T")


@final
class Begun(Generic[T]):
    """A coroutine that has run up to its first wait, or to its end.

    Args:
        coroutine: One that nobody awaits.
        loop: The loop that runs here.

    Attributes:
        task: Its task from then on.
        is_waiting: False if it has ended.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        rest = _Rest(coroutine)
        self.task: asyncio.Task[T] = asyncio.Task(rest, loop=loop)
        self._value: Any = None
        self._error: BaseException | None = None
        # So that a timeout inside cancels this task, and not the one that starts it.
        starter = asyncio.current_task(loop)
        if starter is not None:
            _leave_task(loop, starter)
        _enter_task(loop, self.task)
        try:
            rest.begin()
        except StopIteration as end:
            self._value = end.value
        except BaseException as error:  # noqa: BLE001 - kept, as by a task.
            self._error = error
        finally:
            _leave_task(loop, self.task)
            if starter is not None:
                _enter_task(loop, starter)
        self.is_waiting: bool = rest.is_waiting

    def result(self) -> T:
        """Return what it has returned, or raise what it has raised; once, when it has ended."""
        error, self._error = self._error, None
        if error is None:
            return self._value
        try:
            raise error
        finally:
            del error, self  # The error's traceback keeps this frame.


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
        self.is_waiting = True

    def send(self, value: Any, /) -> Any:
        if self._is_taken_up:
            return self._coroutine.send(value)
        if not self.is_waiting:
            raise StopIteration
        return self._take_up()

    def throw(self, typ: Any, val: Any = None, _tb: Any = None, /) -> Any:
        if not self._is_taken_up and self.is_waiting:
            # Its task was cancelled before its first turn; a task cancels what it waits for.
            awaited = self._take_up()
            if awaited is not None and awaited.cancel():
                return awaited
        return self._coroutine.throw(typ if val is None else val)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Any:
        raise NotImplementedError  # A task sends.

    def _take_up(self) -> Any:
        self._is_taken_up = True
        awaited, self._awaited = self._awaited, None
        return awaited
