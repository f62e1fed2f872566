"""Waiting in tests: for a fact, with a deadline, never for an amount of time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

POLL_S = 0.01
# Only what never comes takes this long: a process may be without a CPU for seconds.
WITHIN_S = 30.0

T = TypeVar("T")


def eventually(condition: Callable[[], T], *, within_s: float = WITHIN_S) -> T:
    """Return the condition's first true value.

    Raises:
        AssertionError: No value was true within the deadline; the last one is shown.
    """
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(_complaint(value, within_s))
        time.sleep(POLL_S)
    return value


async def eventually_async(
    condition: Callable[[], Awaitable[T]], *, within_s: float = WITHIN_S
) -> T:
    """Return the first true value that the condition's awaitable gives.

    Raises:
        AssertionError: No value was true within the deadline; the last one is shown.
        TimeoutError: The awaitable itself did not end within the deadline.
    """
    deadline = time.monotonic() + within_s
    async with asyncio.timeout(within_s + 1):
        while not (value := await condition()):
            if time.monotonic() >= deadline:
                raise AssertionError(_complaint(value, within_s))
            await asyncio.sleep(POLL_S)
    return value


async def holds(condition: Callable[[], object], *, within_s: float = WITHIN_S) -> None:
    """Wait until a plain condition is true, while the event loop runs on.

    Raises:
        AssertionError: It was not true within the deadline.
    """

    async def ask() -> object:
        return condition()

    await eventually_async(ask, within_s=within_s)


def _complaint(value: object, within_s: float) -> str:
    return f"the condition is still {value!r} after {within_s} s"
