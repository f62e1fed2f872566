"""Asks how many chunks of a value a stream holds: in all, and from a sequence on.

Law: a question is asked again after a break, for as long as a read may take to go on. Only the
stream's leader says that chunks are gone; what a consumer counts may come from a replica that lags
behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from natsstream._wire import subjects
from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.api.stream_info import subject_counts
from natsstream.errors import (
    ConnectionLostError,
    NatsStreamError,
    ServerError,
    TransportError,
)
from natsstream.read.session import ReadSession, SessionBrokenError
from natsstream.read.start_position import ConsumerStart

_T = TypeVar("_T")
_RETRY_WAIT_S = 0.1
# A consumer comes to any of a stream's servers by chance; of five one is missed so often once in
# 1,200 times, and then there is another way.
_PLACES_TRIED_MAX = 32


@dataclass(frozen=True, slots=True)
class Total:
    """Answer of a stream's leader.

    Attributes:
        chunks: How many messages the subject has.
        replicas: Replicas of the stream.
        leader: The leader's name; empty where it is no cluster.
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
        """Return how many messages the stream's leader holds; one round trip.

        Raises:
            NatsStreamError: The leader refused, or did not answer in time.
        """
        what = f"stream {self._stream}"
        answer = await self._api.read(
            subjects.stream_info(self._stream), {"subjects_filter": self._subject}, what=what
        )
        return Total(
            subject_counts(answer).get(self._subject, 0),
            answer.part("config").integer("num_replicas", 1),
            answer.part("cluster", {}).text("leader", ""),
            answer.moment("ts"),
        )

    async def since(self, sequence: int, *, node: str = "") -> int | None:
        """Return how many messages stand from a sequence on: one consumer, which delivers none.

        Args:
            sequence: Where to begin.
            node: The server that counts, one of the stream's; empty for any.

        Returns:
            The count; None where the server places its consumers on other nodes.

        Raises:
            NatsStreamError: The server refused, or did not come back within `reconnect_timeout`.
        """

        async def count() -> tuple[int, str]:
            session = self._session(ConsumerStart(sequence=sequence), last=sequence - 1)
            try:
                return await session.open(), session.node
            finally:
                await session.close()

        for _ in range(_PLACES_TRIED_MAX):
            held, place = await self._insist(count)
            if not node or place == node:
                return held
        return None

    async def newest(self) -> Message | None:
        """Return the headers of the last message; None where there is none.

        Raises:
            NatsStreamError: As for `since`.
        """

        async def look() -> Message | None:
            session = self._session(ConsumerStart(), last=None)
            try:
                if not await session.open():
                    return None
                run = await session.next_run()
                return run.items[-1] if run is not None else None
            finally:
                await session.close()

        return await self._insist(look)

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

    async def _insist(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Ask, and again after a break."""
        now, client = asyncio.get_running_loop().time, self._api.client
        limit_s = client.options.reconnect_timeout
        deadline = now() + limit_s
        while True:
            try:
                return await ask()
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
