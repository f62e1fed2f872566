"""The end of a core stream: of one in memory once the last client has left, of others by a call.

Law: a stream in memory is deleted only if no client answers, and only the one that was looked at.
Servers know at once if nobody listens. A client that comes between the last question and the
deletion is told, and makes the stream again.
"""

from __future__ import annotations

from contextlib import suppress

from natsstream.conat.configuration import check_stream
from natsstream.conat.feed import Announcement
from natsstream.conat.names import StreamNames
from natsstream.errors import NoRespondersError, RequestTimeoutError, StreamNotFoundError
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream

# A client that listens and is too busy to answer is there, too.
_PING_WAIT_S = 1.0


class Lifetime:
    """Deletes the streams of one core stream.

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
        await self._delete()

    async def end(self) -> bool:
        """Delete the stream and its big values; False if there was no stream.

        Raises:
            StreamExistsError: The stream belongs to something else.
            NatsStreamError: The server refused it, or did not answer; the call may be repeated.

        Cost: three round trips.
        """
        is_there = await self._found() is not None
        await self._delete()
        return is_there

    async def _delete(self) -> None:
        for stream in (self._names.stream, self._names.blob_stream):
            with suppress(StreamNotFoundError):
                await self._js.streams.delete(stream)
        note = Announcement(is_config_changed=True)
        await self._js.core.publish(self._names.control, note.to_json())

    async def _created_ns(self) -> int | None:
        """Return the identity of the stream; None if it is missing, or not in memory."""
        stream = await self._found()
        if stream is None or stream.cached.config.storage != "memory":
            return None
        return stream.cached.created_ns

    async def _found(self) -> Stream | None:
        try:
            stream = await self._js.streams.get(self._names.stream)
        except StreamNotFoundError:
            return None
        check_stream(self._names, stream.cached.config)
        return stream

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
