"""Reading a replicated stream with clients that ask whichever replica answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LIMIT_S = 20.0
PAUSE_S = 0.1


async def holds(check: Callable[[], Awaitable[None]], *, replicas: int) -> None:
    """Check once; on a cluster until it holds, since a replica may be a little behind its leader.

    Raises:
        AssertionError: What the check says, on a cluster after 20 s.
    """
    deadline = asyncio.get_running_loop().time() + LIMIT_S
    while replicas > 1 and asyncio.get_running_loop().time() < deadline:
        try:
            await check()
        except AssertionError:
            await asyncio.sleep(PAUSE_S)
        else:
            return
    await check()
