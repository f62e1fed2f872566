"""Logs the verdicts that may not have reached the server: those of one outage in one line."""

from __future__ import annotations

import asyncio
import logging

from natsstream.errors import NatsStreamError

_log = logging.getLogger("natsstream.worker")

# All messages that a killed server has forgotten are found out within a second or two.
_GATHER_S = 2.0


class UnconfirmedVerdicts:
    """Gathers them for a moment.

    Args:
        what: The consumer, for the log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._sequences: list[int] = []
        self._first: NatsStreamError | None = None
        self._timer: asyncio.TimerHandle | None = None

    def add(self, sequence: int, error: NatsStreamError) -> None:
        """Note the verdict of a message; it is logged with those that come soon after it."""
        self._sequences.append(sequence)
        if self._first is None:
            self._first = error
            self._timer = asyncio.get_running_loop().call_later(_GATHER_S, self.log)

    def log(self) -> None:
        """Log what was noted since the last time."""
        if self._timer is not None:
            self._timer.cancel()
        sequences, first = self._sequences, self._first
        self._sequences, self._first, self._timer = [], None, None
        if len(sequences) == 1:
            named = f"message {sequences[0]} of {self._what}: "
            text = str(first)
            _log.warning("%s%s", "" if text.startswith(named) else named, text)
        elif sequences:
            _log.warning(
                "%s messages of %s, of %d to %d, may be redelivered; the first error: %s",
                f"{len(sequences):,}",
                self._what,
                min(sequences),
                max(sequences),
                first,
            )
