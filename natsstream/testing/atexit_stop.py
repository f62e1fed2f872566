"""The normal end of Python: what was started and not stopped is stopped then."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable


class AtExit:
    """Stops one thing at the normal end of the process that has started it."""

    def __init__(self, stop: Callable[[], object]) -> None:
        """Describe it; nothing is registered yet.

        Args:
            stop: Called at the end of Python while the handler is armed.
        """
        self._stop = stop
        self._pid = 0

    def arm(self) -> None:
        """Stop the thing when Python ends, before everything that was armed earlier."""
        self._pid = os.getpid()
        atexit.unregister(self._run)
        atexit.register(self._run)

    def disarm(self) -> None:
        """Leave the thing alone: it is stopped already."""
        atexit.unregister(self._run)

    def _run(self) -> None:
        if os.getpid() == self._pid:
            self._stop()
