"""Many calls, a limited number of them at the same time.

Law: nothing outlives the call. After a failure no more calls begin, and it is raised when all that
are in flight have ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

IN_FLIGHT_MAX = 64

Item = TypeVar("Item")
Result = TypeVar("Result")


async def at_once(call: Callable[[Item], Awaitable[Result]], items: Sequence[Item]) -> list[Result]:
    """Call a function with each item, 64 at once, and return the results in their order."""
    results: list[Result] = []
    for start in range(0, len(items), IN_FLIGHT_MAX):
        calls = map(call, items[start : start + IN_FLIGHT_MAX])
        # No TaskGroup: after an error in one, Python 3.11 lets the caller's `asyncio.timeout` end
        # by a CancelledError that nobody has asked for.
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
            results.append(outcome)
    return results
