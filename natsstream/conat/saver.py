"""Saves local writes: one attempt at a time, and again until nothing is unsaved.

Law: a write that was made before `save` was called has been tried when it returns. An error that
no retry mends ends the attempts, and `save` raises it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress

from natsstream.conat.codes import conat_code
from natsstream.errors import (
    ConnectionClosedError,
    NatsStreamError,
    TransportError,
    UnsavedChangesError,
)
from natsstream.own_loop import OwnLoop

RETRY_FIRST_S, RETRY_FACTOR, RETRY_MAX_S = 0.15, 1.3, 10.0
"""Seconds before the second attempt, the factor for each further one, and the most."""
CLOSE_SAVE_S = 10.0
"""Seconds that closing waits for unsaved writes."""

_log = logging.getLogger("natsstream.conat")


class Saver:
    """The attempts to save one object's local writes.

    Args:
        name: The object's name, for the log.
        attempt: Tries to save all that is unsaved; True if none of it has to be tried again.
        has_unsaved: True if something is unsaved.
        lost: Returns the error for what is unsaved at the end.
        is_automatic: True saves after each write, and repeats attempts.
    """

    def __init__(
        self,
        name: str,
        attempt: Callable[[], Awaitable[bool]],
        has_unsaved: Callable[[], bool],
        lost: Callable[[], UnsavedChangesError],
        *,
        is_automatic: bool,
    ) -> None:
        self._name = name
        self._attempt = attempt
        self._has_unsaved = has_unsaved
        self._lost = lost
        self._is_automatic = is_automatic
        self._is_closed = False
        self._is_ended = False
        self._failure: NatsStreamError | None = None
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._own_loop = OwnLoop()

    def check_loop(self) -> None:
        """Refuse a write on another event loop, or from another thread: it would not be saved.

        Raises:
            EventLoopError: The connection belongs to another event loop.
        """
        self._own_loop.check()

    def wrote(self) -> None:
        """Save in the background, if that is automatic."""
        if self._is_automatic and not self._is_closed:
            self._run()

    def hurry(self) -> None:
        """End the pause before the next attempt: what it waited for has come."""
        self._hurry.set()

    async def save(self) -> None:
        """Save all writes; returns when nothing is unsaved, or after one attempt.

        Raises:
            NatsStreamError: No retry mends it, such as missing permission (403).
        """
        self.check_loop()
        if self._is_running:
            await self._join()
        if self._has_unsaved() and not self._is_ended:
            await self._join()

    async def close(self) -> None:
        """Save what autosave has not saved yet, at most 10 s long, and end.

        Raises:
            UnsavedChangesError: Something is still unsaved.
        """
        self._is_closed = True
        try:
            if self._is_automatic and self._has_unsaved():
                with suppress(TimeoutError, NatsStreamError):
                    async with asyncio.timeout(CLOSE_SAVE_S):
                        await self.save()
            self._end()
            if self._is_running and self._task is not None:
                await asyncio.wait([self._task])
        except asyncio.CancelledError:
            # The changes are lost now, and a second close would raise nothing.
            self._end()
            self._tell_lost()
            raise
        error = self._tell_lost()
        if error is not None:
            raise error

    def _end(self) -> None:
        self._is_ended = True
        if self._task is not None:
            self._task.cancel()

    def _tell_lost(self) -> UnsavedChangesError | None:
        """Log what is lost, and return the error of it; None if nothing is."""
        if not (self._is_automatic and self._has_unsaved()):
            return None
        error = self._lost()
        error.detail = "" if self._failure is None else self._failure.message
        _log.error("%s", error)
        return error

    @property
    def _is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def _join(self) -> None:
        # The attempts go on if the caller stops waiting; closing ends them quietly.
        task = self._run()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()

    def _run(self) -> asyncio.Task[None]:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._attempts())
            self._task.add_done_callback(self._on_end)
        return self._task

    async def _attempts(self) -> None:
        pause_s = RETRY_FIRST_S
        while self._has_unsaved():
            self._hurry.clear()
            try:
                is_done = await self._attempt()
            except NatsStreamError as error:
                self._failure = error
                if not _may_pass(error):
                    raise
                is_done = False
            if not self._is_automatic:
                return
            if not is_done:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._hurry.wait()
                pause_s = min(pause_s * RETRY_FACTOR, RETRY_MAX_S)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.warning("%s cannot save: %s", self._name, error)


@contextmanager
def quiet_after(kind: type[BaseException] | None) -> Generator[None]:
    """Close at the end of a block: the error of the block counts more than lost changes."""
    try:
        yield
    except UnsavedChangesError:  # The log has it.
        if kind is None:
            raise


def _may_pass(error: NatsStreamError) -> bool:
    """Return True if the same attempt may succeed later, without a change by the user."""
    is_temporary = error.retryable or isinstance(error, TransportError)
    is_final = isinstance(error, ConnectionClosedError) or conat_code(error) in (403, 429)
    return is_temporary and not is_final
