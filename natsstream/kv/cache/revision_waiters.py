"""Waiting until a local mirror has come to a revision.

Law: whoever waits is woken when the mirror ends.
"""

from __future__ import annotations

import asyncio


class RevisionWaiters:
    """Those who wait for revisions."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], int] = {}

    async def wait(self, revision: int) -> None:
        """Return when the revision has come, or the mirror has ended."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[woken] = revision
        try:
            await woken
        finally:
            del self._waiting[woken]

    def reach(self, revision: int) -> None:
        """Wake those who wait for this revision or an older one."""
        for woken, wanted in self._waiting.items():
            if wanted <= revision and not woken.done():
                woken.set_result(None)

    def end(self) -> None:
        """Wake all."""
        for woken in self._waiting:
            if not woken.done():
                woken.set_result(None)
