"""A result to come, as it is without async: what stands for a future of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from natsstream.arguments import check_seconds
from natsstream.blocking.portal import Portal, say_it_blocking
from natsstream.errors import NatsStreamError, RequestTimeoutError
from natsstream.foreign_names import answers_names

T = TypeVar("T")


@answers_names("answer", calls=False)
class Answer(Generic[T]):
    """A result to come, such as the ack of `publisher.send`.

    Calling it, as `answer()`, is `answer.result()`.
    """

    __slots__ = ("_future", "_portal", "_to_caller")

    def __init__(
        self, future: asyncio.Future[T], portal: Portal, to_caller: Callable[[T, Portal], T]
    ) -> None:
        self._future = future
        self._portal = portal
        self._to_caller = to_caller

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result and return it, or raise its error; it may be called again.

        Args:
            timeout: Seconds to wait; None waits until it is there, for an ack at most the
                publisher's `ack_timeout` or `retry_for`.

        Raises:
            RequestTimeoutError: It did not come within `timeout`; it may still come.
            ConnectionClosedError: The connection was closed before it came.
        """
        seconds = None if timeout is None else check_seconds(timeout, "timeout", may_be_zero=True)
        if not self._future.done():
            self._portal.call(_wait, self._future, seconds)
        # One that is done changes no more, so any thread may look at it.
        try:
            return self._to_caller(self._future.result(), self._portal)
        except NatsStreamError as error:
            say_it_blocking(error)
            raise

    def done(self) -> bool:
        """Return True once `result` returns or raises without waiting."""
        return self._future.done()

    def __call__(self) -> T:
        return self.result()

    def __repr__(self) -> str:
        return f"<blocking answer, {'done' if self.done() else 'pending'}>"


async def _wait(future: asyncio.Future[T], seconds: float | None) -> None:
    # Unlike `await future`, an interrupt leaves the future as it is.
    await asyncio.wait([future], timeout=seconds)
    if not future.done():
        raise RequestTimeoutError(
            f"the result did not come within {seconds:g} s",
            hint="it may still come: call result() again",
            retryable=True,
        )
