"""Counts the chunks of a value in a stream: in all, and from a sequence on.

Law: a count is retried after a disconnect, for as long as a read may take to resume. Only the
stream's leader can report that chunks are gone; a consumer's count may come from a replica that
lags behind.
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.api.stream_requests import stream_info
from natsstream.read.counts import MatchCounts
from natsstream.read.start_position import ConsumerStart

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
        self._matches = MatchCounts(api, stream, (subject,), what=f"chunks of {subject}")

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

        for _ in range(_CONSUMERS_TRIED_MAX):
            count = await self._matches.count_from(sequence)
            if not node or count.node == node:
                return count.messages
        return None

    async def newest(self) -> Message | None:
        """Return the headers of the last message; None if there is none.

        Raises:
            NatsStreamError: As for `since`.
        """

        async def read() -> Message | None:
            session = self._matches.session(ConsumerStart(), last=None)
            try:
                if not await session.open():
                    return None
                run = await session.next_run()
                return run.items[-1] if run is not None else None
            finally:
                await session.close()

        return await self._matches.retry(read)
