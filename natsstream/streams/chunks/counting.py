"""Counts the chunks of a value in a stream: in all, and from a sequence on.

Law: a count is retried after a disconnect, for as long as a read may take to resume. Only the
stream's leader can report that chunks are gone; a consumer's count may come from a replica that
lags behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.api.stream_requests import stream_info
from natsstream.errors import ConnectionLostError, NatsStreamError, ServerError, TransportError
from natsstream.read.session import ReadSession, SessionBrokenError
from natsstream.read.start_position import ConsumerStart

_T = TypeVar("_T")
_RETRY_WAIT_S = 0.1
# A server places a consumer on any of a stream's servers by chance. With five, 32 tries miss one of
# them once in 1,200 times, and then there is another way.
_CONSUMERS_TRIED_MAX = 32


@dataclass(frozen=True, slots=True)
class Total:
    """The count of a stream's leader.

    Attributes:
        chunks: Messages of the subject.
        replicas: Replicas of the stream.
        leader: The leader's name; empty without a cluster.
        now_ns: The time on the server, Unix nanoseconds.
    """

    chunks: int
    replicas: int
    leader: str
    now_ns: int


class ChunkCounts:
    """Counts the messages of one subject.

    Args:
        api: The connection.
        stream: The stream's name.
        subject: The subject of a value's chunks.
    """

    def __init__(self, api: Api, stream: str, subject: str) -> None:
        self._api = api
        self._stream = stream
        self._subject = subject

    async def total(self) -> Total:
        """Return the leader's count; one round trip.

        Raises:
            NatsStreamError: The leader refused, or did not answer in time.
        """
        info = await stream_info(self._api, self._stream, subjects=self._subject)
        return Total(
            (info.state.subjects or {}).get(self._subject, 0),
            info.config.replicas or 1,
            info.cluster.leader if info.cluster is not None else "",
            info.time_ns,
        )

    async def since(self, sequence: int, *, node: str = "") -> int | None:
        """Return the number of messages from a sequence on: one consumer, which delivers none.

        Args:
            sequence: The first sequence that counts.
            node: The server that counts, one of the stream's; empty for any.

        Returns:
            The count; None if all consumers were placed on other servers.

        Raises:
            NatsStreamError: The server refused, or did not come back within `reconnect_timeout`.
        """

        async def count() -> tuple[int, str]:
            session = self._session(ConsumerStart(sequence=sequence), last=sequence - 1)
            try:
                return await session.open(), session.node
            finally:
                await session.close()

        for _ in range(_CONSUMERS_TRIED_MAX):
            messages, counted_by = await self._retry(count)
            if not node or counted_by == node:
                return messages
        return None

    async def newest(self) -> Message | None:
        """Return the headers of the last message; None if there is none.

        Raises:
            NatsStreamError: As for `since`.
        """

        async def read() -> Message | None:
            session = self._session(ConsumerStart(), last=None)
            try:
                if not await session.open():
                    return None
                run = await session.next_run()
                return run.items[-1] if run is not None else None
            finally:
                await session.close()

        return await self._retry(read)

    def _session(self, start: ConsumerStart, last: int | None) -> ReadSession[list[Message]]:
        return ReadSession(
            self._api,
            self._stream,
            start=start,
            last=last,
            filters=(self._subject,),
            message_bytes=1,
            headers_only=True,
        )

    async def _retry(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Run a request, again after a disconnect."""
        now, client = asyncio.get_running_loop().time, self._api.client
        limit_s = client.options.reconnect_timeout
        deadline = now() + limit_s
        while True:
            try:
                return await request()
            except (SessionBrokenError, TransportError, ServerError) as error:
                if isinstance(error, NatsStreamError) and not error.retryable:
                    raise
                if now() >= deadline:
                    raise ConnectionLostError(
                        f"chunks of {self._subject} could not be counted within {limit_s:g} s",
                        detail=str(error),
                        hint="read it again",
                        retryable=True,
                    ) from error
            await client.wait_connected(max(deadline - now(), _RETRY_WAIT_S))
            await asyncio.sleep(_RETRY_WAIT_S)
