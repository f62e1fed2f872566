"""Counts a stream's messages from a sequence on, with consumers that deliver none.

Law: a count is retried after a disconnect, for as long as a read may take to resume. It may come
from a replica that lags behind, so a read or the leader has the last word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.errors import (
    ConnectionLostError,
    NatsStreamError,
    ServerError,
    TransportError,
)
from natsstream.read.session import ReadSession, SessionBrokenError
from natsstream.read.start_position import ConsumerStart

T = TypeVar("T")
_RETRY_WAIT_S = 0.1


class Count(NamedTuple):
    """Messages from a sequence on, and the server that counted them.

    Attributes:
        messages: Their number.
        node: The server's name; empty for a single server.
    """

    messages: int
    node: str


class MatchCounts:
    """Counts the messages of a stream that match filters.

    Args:
        api: The connection.
        stream: The stream's name.
        filters: Subject filters; empty for all.
        what: Name of the messages, for errors.
    """

    def __init__(self, api: Api, stream: str, filters: Sequence[str], *, what: str) -> None:
        self._api = api
        self._stream = stream
        self._filters = filters
        self._what = what

    async def count_from(self, sequence: int) -> Count:
        """Return the number of messages from a sequence to the stream's end, as of now.

        Raises:
            NatsStreamError: The server refused, or did not come back within `reconnect_timeout`.

        Cost: one consumer, created and deleted: one round trip.
        """

        async def count() -> Count:
            session = self.session(ConsumerStart(sequence=sequence), last=sequence - 1)
            try:
                return Count(await session.open(), session.node)
            finally:
                await session.close()

        return await self.retry(count)

    def session(self, start: ConsumerStart, last: int | None) -> ReadSession[list[Message]]:
        """Return a consumer of the headers, not open yet."""
        return ReadSession(
            self._api,
            self._stream,
            start=start,
            last=last,
            filters=self._filters,
            message_bytes=1,
            headers_only=True,
        )

    async def retry(self, request: Callable[[], Awaitable[T]]) -> T:
        """Run a request, again after a disconnect."""
        now, client = asyncio.get_running_loop().time, self._api.client
        limit_s = client.options.bounded_reconnect_s
        deadline = now() + limit_s
        while True:
            try:
                return await request()
            except (SessionBrokenError, TransportError, ServerError) as error:
                if isinstance(error, NatsStreamError) and not error.retryable:
                    raise
                if now() >= deadline:
                    raise ConnectionLostError(
                        f"{self._what} could not be counted within {limit_s:g} s",
                        detail=str(error),
                        hint="read it again",
                        retryable=True,
                    ) from error
            await client.wait_connected(max(deadline - now(), _RETRY_WAIT_S))
            await asyncio.sleep(_RETRY_WAIT_S)
