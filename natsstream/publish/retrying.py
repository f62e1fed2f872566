"""Asking for what a message needs before it is sent, for as long as the message itself may take.

Law: what may go well later without a change is asked for again until the time is over; everything
else is raised at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from natsstream.errors import NatsStreamError

T = TypeVar("T")

_WAIT_S = 0.25


async def insist(ask: Callable[[], Awaitable[T]], for_s: float) -> T:
    """Return what is asked for.

    Args:
        ask: Asks once, within a deadline of its own.
        for_s: Seconds after which it is not asked again.

    Raises:
        NatsStreamError: The error of the last attempt.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + for_s
    while True:
        try:
            return await ask()
        except NatsStreamError as error:
            if not error.retryable or loop.time() + _WAIT_S >= deadline:
                raise
        await asyncio.sleep(_WAIT_S)
