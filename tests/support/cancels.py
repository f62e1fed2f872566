"""Cancelling in tests: once or several times, at moments that a seed draws."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from natsstream.errors import NatsStreamError

if TYPE_CHECKING:
    from random import Random

# What is cancelled here is through in a few milliseconds.
WITHIN_S = 0.003


async def cancel(task: asyncio.Future[Any], random: Random, *, within_s: float = WITHIN_S) -> None:
    """Cancel a task one to four times, within one turn of the loop or some, and await its end.

    Args:
        task: The task.
        random: Draws when, and how often.
        within_s: Seconds in which the first cancel comes.
    """
    await asyncio.sleep(random.choice((0, random.uniform(0, within_s))))
    for _ in range(random.randint(1, 4)):
        task.cancel()
        for _ in range(random.choice((0, 0, 1, 1, 2, 5))):
            await asyncio.sleep(0)
    with suppress(asyncio.CancelledError, NatsStreamError):
        await task


def cancel_others(*kept: asyncio.Task[Any]) -> set[asyncio.Task[Any]]:
    """Cancel all tasks but this one and those kept, as a program does at its end; return them."""
    others = {each for each in asyncio.all_tasks() if each is not asyncio.current_task()}
    others -= {*kept}
    for each in others:
        each.cancel()
    return others
