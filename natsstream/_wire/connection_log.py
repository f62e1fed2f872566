"""Logs the events of one connection under `natsstream.connection`.

Law: one line for each change of its state, none for each attempt; no line shows a credential.
"""

from __future__ import annotations

import logging

from natsstream._wire.permission_violations import permission_rule
from natsstream.events import Closed, Connected, ConnectionEvent, Disconnected, PermissionDenied

_log = logging.getLogger("natsstream.connection")

# A program may try many subjects that it is not allowed; each is told once.
_DENIALS_KEPT_MAX = 100


class ConnectionLog:
    """A listener of one connection."""

    def __init__(self) -> None:
        self._lost: ConnectionEvent | None = None
        self._was_connected = False
        self._denied: set[tuple[str, str]] = set()

    def __call__(self, event: ConnectionEvent) -> None:
        """Log an event."""
        text, level = event.describe(), event.LOG_LEVEL
        if isinstance(event, PermissionDenied):
            key = (event.operation, permission_rule(event.subject))
            if key in self._denied or len(self._denied) >= _DENIALS_KEPT_MAX:
                return
            self._denied.add(key)
        elif isinstance(event, Closed) and event.reason:
            level = logging.ERROR
        elif isinstance(event, Disconnected):
            self._lost = event
        elif isinstance(event, Connected) and self._lost is not None:
            text += f", after {(event.time - self._lost.time).total_seconds():.1f} s"
            self._lost = None
        if isinstance(event, Connected):
            self._was_connected = True
        elif isinstance(event, Closed) and not self._was_connected:
            return  # `connect` raises what there is to tell.
        _log.log(level, "%s", text)
