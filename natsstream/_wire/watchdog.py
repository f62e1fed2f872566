"""Whether the server is still there: pings it at each look, and gives up in time.

Law: a server from which nothing came for `missed_max` answers in a row is left, whatever bytes wait
for it: a frozen peer keeps its socket open, and the kernel would hold on to it for a quarter of an
hour.
"""

from __future__ import annotations

import array
import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress


class Watchdog:
    """Watches one connection; `heard` is called for whatever arrives.

    Args:
        interval_s: Seconds between two looks.
        missed_max: Looks in a row with nothing heard after which the server is given up.
        ping: Asks the server for a sign of life.
        give_up: Leaves the server; gets the seconds of silence, about.
        unsent: Returns the bytes that the server has not taken yet. While they become fewer it is
            alive: a large message on a slow line may take longer than all pings together.

    Cost: one timer for the connection, and one attribute for each received buffer.
    """

    def __init__(
        self,
        *,
        interval_s: float,
        missed_max: int,
        ping: Callable[[], None],
        give_up: Callable[[float], None],
        unsent: Callable[[], int],
    ) -> None:
        self._interval_s = interval_s
        self._missed_max = missed_max
        self._ping = ping
        self._give_up = give_up
        self._unsent = unsent
        self._last_unsent = 0
        self._has_heard = True
        self._missed = 0
        self._timer: asyncio.TimerHandle | None = None

    def heard(self) -> None:
        """Note that the server sent something."""
        self._has_heard = True

    def start(self) -> None:
        """Watch a new connection."""
        self.stop()
        self._has_heard = True
        self._missed = 0
        self._wait()

    def stop(self) -> None:
        """Watch nothing; stopping twice is fine."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._look)

    def _look(self) -> None:
        # Data that lies in the socket after this loop was busy is handled before its timers are, so
        # a late look finds what has come meanwhile.
        unsent, before = self._unsent(), self._last_unsent
        self._last_unsent = unsent
        self._missed = 0 if self._has_heard or unsent < before else self._missed + 1
        if self._missed >= self._missed_max:
            self._timer = None
            self._give_up(self._missed * self._interval_s)
            return
        self._has_heard = False
        self._wait()
        self._ping()


def unsent_bytes(transport: asyncio.Transport | None) -> int:
    """Return the bytes in asyncio's buffer and, on Linux, those that the peer's kernel lacks."""
    if transport is None or transport.is_closing():
        return 0
    size = transport.get_write_buffer_size()
    sock = transport.get_extra_info("socket")
    if sys.platform == "linux" and sock is not None:
        import fcntl  # noqa: PLC0415 - not on every system.
        import termios  # noqa: PLC0415

        queued = array.array("i", [0])
        with suppress(OSError, ValueError):  # It was closed meanwhile.
            fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, queued)
        size += queued[0]
    return size
