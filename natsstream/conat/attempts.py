"""Requests of core streams that are repeated until the server answers, as Conat's are."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from natsstream.conat.codes import conat_code
from natsstream.errors import (
    ConnectionClosedError,
    NatsStreamError,
    StreamNotFoundError,
    StreamRecreatedError,
    TransportError,
)
from natsstream.read.recovery import Recovery

T = TypeVar("T")

# A stream that was deleted is created again by the next attempt.
_PASSING = (TransportError, StreamNotFoundError, StreamRecreatedError)


async def retried(attempt: Callable[[], Awaitable[T]], limit_s: float = math.inf) -> T:
    """Return the result of an attempt, repeated while its error may pass.

    Args:
        attempt: Makes one attempt.
        limit_s: Seconds after the first error until the last one is raised: `reconnect_timeout`.

    Raises:
        NatsStreamError: The time is over, or the error cannot pass: code 403, 429, a closed
            connection, or a wrong argument.
    """
    recovery = Recovery[str](limit_s)
    while True:
        try:
            return await attempt()
        except NatsStreamError as error:
            may_pass = error.retryable or isinstance(error, _PASSING)
            if not may_pass or isinstance(error, ConnectionClosedError):
                raise
            if conat_code(error) in (403, 429):
                raise
            wait_s = recovery.next_wait(asyncio.get_running_loop().time())
            if wait_s is None:
                if isinstance(error, TransportError):
                    # Its text tells how long the last attempt has waited.
                    error.hint = (
                        f"tried for {limit_s:g} s; check the servers, or raise reconnect_timeout"
                    )
                raise
            await asyncio.sleep(wait_s)
