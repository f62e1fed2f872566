"""Tests whose outcome hangs on a lease of the server, on machines that stand still now and then.

Where neither this process nor the server stood still, the first outcome counts. Where one did, a
failure proves nothing: what was to be told in time could not be. It is tried again with a longer
lease, and the longest one counts whatever happens.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from natsstream.errors import NatsStreamError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream

LEASES_S = (0.5, 2.0, 8.0)
_SHARE = 4
_LOOK_EVERY_S = 0.02
_ANSWER_WITHIN_S = 30.0


async def prove(js: JetStream, attempt: Callable[[float], Awaitable[None]]) -> None:
    """Run an attempt with a lease in seconds; one that a standstill has spoilt is made anew.

    A standstill is one of more than a quarter of the lease, here or of the server.
    """
    for lease_s in LEASES_S:
        watch = _Watch(js)
        watching = asyncio.create_task(watch.run())
        try:
            await attempt(lease_s)
        except (AssertionError, NatsStreamError):
            await watch.look()
            if lease_s == LEASES_S[-1] or watch.longest_s <= lease_s / _SHARE:
                raise
        else:
            return
        finally:
            watching.cancel()
            await asyncio.wait({watching})


class _Watch:
    """The longest time without a round trip to the server."""

    def __init__(self, js: JetStream) -> None:
        self.longest_s = 0.0
        self._js = js
        self._last = time.monotonic()

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def look(self) -> None:
        with suppress(NatsStreamError):
            await self._js.core.rtt(timeout=_ANSWER_WITHIN_S)
        now = time.monotonic()
        self.longest_s = max(self.longest_s, now - self._last)
        self._last = now
