"""The events of an object: listeners by the event's name."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from natsstream.arguments import counted
from natsstream.conat.changes import Changes
from natsstream.errors import NatsStreamError, UsageError

_log = logging.getLogger("natsstream.conat")

CORE_EVENTS = ("change", "closed")
"""The events of a core stream."""

LAYER_EVENTS = ("change", "reject", "stable", "closed")
"""The events of the layers above a core stream."""


class LayerEvents:
    """The listeners and readers of one object, for each of its events.

    Args:
        names: The names of the events.
    """

    def __init__(self, names: Sequence[str] = LAYER_EVENTS) -> None:
        self._changes: dict[str, Changes[Any]] = {name: Changes() for name in names}

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function with each event of a name; it must not wait.

        Raises:
            UsageError: The event does not exist.
        """
        self._of(event).on(listener)

    def off(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function no more."""
        self._of(event).off(listener)

    def emit(self, event: str, value: object) -> None:
        """Tell the listeners of an event."""
        self._changes[event].emit(value)

    def reject(self, name: str, rejected: Sequence[object], error: NatsStreamError) -> None:
        """Report writes that a stream has refused; they are logged if there is no listener.

        Args:
            name: The object's name, for the log.
            rejected: The events.
            error: The reason of the first one.
        """
        if not self._changes["reject"].is_heard:
            what = counted(len(rejected), "write")
            _log.warning(
                '%s: %s refused and gone here too, see on("reject"): %s', name, what, error
            )
        for each in rejected:
            self.emit("reject", each)

    def read(self, event: str) -> AsyncGenerator[Any]:
        """Yield the events of a name from this call on, until the object is closed."""
        return self._of(event).read()

    def close(self, error: NatsStreamError | None = None) -> None:
        """Emit "closed" with the error that ended the object, and end all iterations with it."""
        self.emit("closed", error)
        for each in self._changes.values():
            each.close(error)

    def _of(self, event: object) -> Changes[Any]:
        found = self._changes.get(event) if isinstance(event, str) else None
        if found is None:
            names = ", ".join(self._changes)
            raise UsageError(f"there is no event {event!r}", hint=f"the events are {names}")
        return found
