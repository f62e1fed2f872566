"""The event loop of one connection, and of what is opened on it.

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

    Attributes:
        loop: The loop. Calls that are made for each message compare it, and then `check`.

    Raises:
        EventLoopError: asyncio runs none here.
    """

    __slots__ = ("loop",)

    def __init__(self) -> None:
        try:
            self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        except RuntimeError:
            raise EventLoopError(
                "a connection needs a running event loop of asyncio",
                hint="open it under asyncio.run(); with trio or without async use "
                "natsstream.blocking in a thread",
            ) from None

    @property
    def is_running_here(self) -> bool:
        """True if this code runs on the loop; False on another one, and in other threads."""
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def check(self) -> asyncio.AbstractEventLoop:
        """Return the loop if it runs here.

        Raises:
            EventLoopError: Another one runs here, or none.

        Cost: one look at the running loop, once for a request or an open reader.
        """
        if not self.is_running_here:
            which = (
                "an event loop that has ended" if self.loop.is_closed() else "another event loop"
            )
            raise EventLoopError(f"the connection belongs to {which}", hint=_HINT)
        return self.loop
