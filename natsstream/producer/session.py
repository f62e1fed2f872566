"""Carries out what the rules of a producer decide, one thing after another.

Law: one task reads and writes, so nothing overtakes anything. The rules are asked again after each
answer, and when a group is appended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from natsstream.errors import (
    AuthenticationError,
    BatchIncompleteError,
    ConnectionClosedError,
    NatsStreamError,
    ProducerFailedError,
    ProtocolError,
    ServerError,
    StreamClosedError,
    StreamNotFoundError,
    StreamSealedError,
    TooManyBatchesError,
    TransportError,
    WrongLastSequenceError,
)
from natsstream.own_loop import OwnLoop
from natsstream.producer.batches import Action, Batches, Ended, Found, Read, Stored, Write

# These leave open what is stored, or say that something else was stored first: reading tells.
_DOUBTS = (WrongLastSequenceError, BatchIncompleteError, TooManyBatchesError)
_ENDS = (ConnectionClosedError, AuthenticationError, ProtocolError)


class Writer(Protocol):
    """Reads and writes the stream for a producer."""

    async def read(self) -> Found:
        """Return the producer's state, as the leader has it."""
        ...

    async def write(self, write: Write) -> Stored:
        """Store a write; return where it stands."""
        ...

    async def close(self) -> None:
        """Free what it holds."""
        ...


class Session:
    """The task of one producer.

    Args:
        rules: The rules.
        writer: Reads and writes the stream.
        on_ended: Called with groups that have ended; must not raise.
        is_awaited: Returns True while a caller waits for groups, and not in `until`.
    """

    def __init__(
        self,
        rules: Batches,
        writer: Writer,
        on_ended: Callable[[Ended], None],
        is_awaited: Callable[[], bool],
    ) -> None:
        self._rules = rules
        self._writer = writer
        self._on_ended = on_ended
        self._is_awaited = is_awaited
        self._own_loop = OwnLoop()
        self._loop = self._own_loop.loop
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._is_closing = False
        self._task = self._begin()

    def now(self) -> float:
        """Return the loop's time."""
        return self._loop.time()

    def check_loop(self) -> None:
        """Refuse a call on another event loop, or from another thread.

        Raises:
            EventLoopError: The connection belongs to another event loop.
        """
        self._own_loop.check()

    def wake(self) -> None:
        """Ask the rules again: there is more to do."""
        self._wake.set()
        self._go_on()

    def _go_on(self) -> None:
        # Programs cancel all tasks but their own, and go on.
        if self._task.done() and not self._is_closing:
            self._task = self._begin()

    async def until(self, is_done: Callable[[], bool]) -> None:
        """Wait until something holds, which is looked at after each answer.

        Raises:
            EventLoopError: The connection belongs to another event loop.
            NatsStreamError: The producer has failed.
        """
        self.check_loop()
        self._wake.set()  # Not after each change: attempts that fail wait longer and longer.
        while not is_done():
            if self._rules.failure is not None:
                raise self._rules.failure.with_traceback(None)
            self._changed.clear()
            self._go_on()
            await self._changed.wait()

    async def close(self, error: NatsStreamError) -> None:
        """End the task; groups that are left end with the error."""
        self._is_closing = True
        if not self._task.done():
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if not self._rules.queue.is_empty:
            self._rules.fail(error)
        self._tell()
        await self._writer.close()

    def _begin(self) -> asyncio.Task[None]:
        task = self._loop.create_task(self._run())
        # A task that is cancelled before its first step runs no line of `_run`.
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, _: asyncio.Task[None]) -> None:
        self._tell()
        # Only for a caller: a task that begins while the loop shuts down is never awaited.
        if self._is_awaited():
            self.wake()

    async def _run(self) -> None:
        try:
            while True:
                action = self._rules.next(self.now())
                self._tell()  # Batches that an earlier instance has stored need no action.
                if action is None:
                    await self._wait()
                else:
                    await self._carry_out(action)
        except Exception as error:  # A fault of ours must not leave callers waiting.
            failure = ProducerFailedError(f"the producer has stopped: {error!r}")
            failure.__cause__ = error
            self._rules.fail(failure)
            raise

    async def _wait(self) -> None:
        wake_at = self._rules.wake_at
        with suppress(TimeoutError):
            async with asyncio.timeout_at(wake_at):
                await self._wake.wait()
        self._wake.clear()

    async def _carry_out(self, action: Action) -> None:
        rules = self._rules
        try:
            if isinstance(action, Read):
                rules.state_read(await self._writer.read(), self.now())
            else:
                rules.stored(action, await self._writer.write(action))
        except NatsStreamError as error:
            is_final = _is_final(error)
            failure = _failure(error, action, rules.stream) if is_final else error
            rules.refused(failure, self.now(), is_final=is_final)
        except asyncio.CancelledError:
            if not self._is_closing:  # It may be done all the same: the next task reads first.
                cancelled = TransportError("the request was cancelled")
                rules.refused(cancelled, self.now(), is_final=False)
            raise

    def _tell(self) -> None:
        for ended in self._rules.take_ended():
            self._on_ended(ended)
        self._changed.set()


def _is_final(error: NatsStreamError) -> bool:
    """Return True if no further attempt can succeed."""
    if isinstance(error, _DOUBTS):
        return False
    if isinstance(error, TransportError):
        return isinstance(error, _ENDS)
    return not error.retryable


def _failure(error: NatsStreamError, action: Action, stream: str) -> NatsStreamError:
    """Return the error that a caller is told for one that is final."""
    if isinstance(error, StreamSealedError):
        failure = StreamClosedError(
            f"stream {stream} is sealed", detail=error.message, hint="write to another stream"
        )
    elif isinstance(action, Read) or isinstance(error, StreamNotFoundError):
        return error
    elif isinstance(error, ServerError):
        seq = 0 if action.batch is None else action.batch.seq
        failure = ProducerFailedError(
            f"batch {seq} of the producer was refused: {error.message}",
            code=error.code,
            err_code=error.err_code,
            description=error.description,
            detail=error.detail,
            hint=error.hint or "mend the cause, then await producer.restart()",
        )
        failure.seq = seq
    else:
        return error
    failure.__cause__ = error
    return failure
