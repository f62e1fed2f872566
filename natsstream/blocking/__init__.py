"""The same nouns without async: one loop in a thread, and everything else borrowed from it.

`with natsstream.blocking.connect(url) as js:` gives the context of `natsstream.connect` with `for`
instead of `async for` and no `await`. There is no second set of classes: each object here stands
for one of the async ones and runs its methods on the loop. The types are in `__init__.pyi`, which
`scripts/generate_blocking_types` writes from the async signatures.

Objects may be used from several threads. After `close`, and in a process that was forked off,
their methods raise.

Law: leaving the context frees the loop and its thread, also after an error or Ctrl-C in the middle
of a read.
"""

from __future__ import annotations

import functools
import importlib
from types import TracebackType
from typing import Any

from natsstream import connection
from natsstream.blocking.portal import Portal
from natsstream.blocking.twins import cross, find_twin
from natsstream.errors import UsageError

# Where the classes live that `__init__.pyi` names beside Connection; each is found when asked for.
_HOMES = {
    "ConnectionEvents": "natsstream.streams.connection_events",
    "Core": "natsstream.streams.core.core",
    "CoreMessage": "natsstream.streams.core.message",
    "CoreSubscription": "natsstream.streams.core.subscription",
    "JetStream": "natsstream.streams.jetstream",
    "OrderedConsumer": "natsstream.streams.reading.ordered",
    "Publisher": "natsstream.streams.publishing.publisher",
    "Stream": "natsstream.streams.stream",
    "StreamManager": "natsstream.streams.manager",
    "StreamRange": "natsstream.streams.reading.ranges",
}


class Connection:
    """A connection that is not open yet: `with` opens it and gives its JetStream context."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._connection = connection.connect(*args, **options)
        self._portal: Portal | None = None

    def open(self) -> Any:
        """Connect and return the JetStream context; `close` ends it."""
        if self._portal is not None and not self._portal.is_stopped:
            raise UsageError("the connection is open", hint="connect() again for a second one")
        self._portal = Portal(self._connection)
        return cross(self._portal.open(), self._portal)

    def close(self) -> None:
        """Close the connection and end the loop's thread; closing twice is fine."""
        if self._portal is not None:
            self._portal.stop()

    def __enter__(self) -> Any:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self._portal is not None:
            self._portal.__reduce__()  # Only what was never open is a description and no more.
        return self.__dict__

    def __repr__(self) -> str:
        return f"<blocking {self._connection!r}>"


@functools.wraps(connection.connect, assigned=(), updated=())
def connect(*args: Any, **options: Any) -> Connection:
    """Describe a connection, with the arguments of `natsstream.connect`; `with` opens it."""
    return Connection(*args, **options)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return find_twin(getattr(importlib.import_module(home), name))
