"""Event loops in tests: letting one go on until what is ready has happened."""

from __future__ import annotations

import asyncio

_TURNS = 100


async def turn() -> None:
    """Let everything that is ready run, and what that makes ready."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
