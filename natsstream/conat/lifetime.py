"""The life of a stream in memory: it is gone once the last client has left.

Law: a stream is deleted only if no client answers, and only the one that was looked at. Servers
know at once if nobody listens. A client that comes between the last question and the deletion is
told, and makes the stream again.
"""

from __future__ import annotations

from contextlib import suppress

from natsstream.conat.configuration import check_stream
from natsstream.conat.feed import Announcement
from natsstream.conat.names import StreamNames
from natsstream.errors import NoRespondersError, RequestTimeoutError, StreamNotFoundError
from natsstream.streams.jetstream import JetStreamContext

# A client that listens and is too busy to answer is there, too.
_PING_WAIT_S = 1.0


class Lifetime:
    """Deletes the stream of one core stream if it is in memory and abandoned.

    Args:
        js: The JetStream context.
        names: The core stream's names.
    """

    def __init__(self, js: JetStreamContext, names: StreamNames) -> None:
        self._js = js
        self._names = names

    async def end_abandoned(self, created_ns: int | None = None) -> None:
        """Delete the stream if no client listens; this one must not.

        Args:
            created_ns: The stream's identity; None is any.

        Raises:
            StreamExistsError: The stream belongs to something else.
            NatsStreamError: The server refused an answer, or gave none.

        Cost: one round trip for a stream that is missing or not in memory, else up to six.
        """
        first = await self._created_ns()
        if first is None or (created_ns is not None and created_ns != first):
            return
        if await self._is_attended() or await self._created_ns() != first:
            return
        if await self._is_attended():
            return
        for stream in (self._names.stream, self._names.blob_stream):
            with suppress(StreamNotFoundError):
                await self._js.streams.delete(stream)
        note = Announcement(is_config_changed=True)
        await self._js.core.publish(self._names.control, note.to_json())

    async def _created_ns(self) -> int | None:
        """Return the identity of the stream; None if it is missing, or not in memory."""
        try:
            stream = await self._js.streams.get(self._names.stream)
        except StreamNotFoundError:
            return None
        check_stream(self._names, stream.cached.config)
        return stream.cached.created_ns if stream.cached.config.storage == "memory" else None

    async def _is_attended(self) -> bool:
        """Return True if a client listens to announcements."""
        ping = Announcement().to_json()
        try:
            await self._js.core.request(self._names.control, ping, timeout=_PING_WAIT_S)
        except NoRespondersError:
            return False
        except RequestTimeoutError:
            return True
        return True
