"""The event loop of one connection.

Law: a call from another loop, another thread or no loop is refused before it sends anything.
"""

from __future__ import annotations

import asyncio

from natsstream.errors import EventLoopError

_HINT = (
    "open one connection on each event loop, or use natsstream.blocking, which works from every "
    "thread"
)


class OwnLoop:
    """The event loop that runs while this is made.

    Raises:
        EventLoopError: asyncio runs none here.
    """

    __slots__ = ("_loop",)

    def __init__(self) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise EventLoopError(
                "a connection needs a running event loop of asyncio",
                hint="open it under asyncio.run(); with trio or without async use "
                "natsstream.blocking in a thread",
            ) from None

    def check(self) -> asyncio.AbstractEventLoop:
        """Return the loop if it runs here.

        Raises:
            EventLoopError: Another one runs here, or none.

        Cost: one look at the running loop, once for a request or an open reader.
        """
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self._loop:
            which = (
                "an event loop that has ended" if self._loop.is_closed() else "another event loop"
            )
            raise EventLoopError(f"the connection belongs to {which}", hint=_HINT)
        return self._loop
