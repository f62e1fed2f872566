"""Values in chunks, in one stream: `stream.chunks`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta

from natsstream.api.names import check_filter, check_subject
from natsstream.api.requests import Api
from natsstream.arguments import check_bool, check_int, check_plain, check_seconds, described
from natsstream.errors import ConfigError
from natsstream.streams.chunks.getting import ChunkReader
from natsstream.streams.chunks.putting import ACK_TIMEOUT_S, ChunkPut, remove
from natsstream.streams.chunks.sources import Source, check_source
from natsstream.streams.chunks.sweeping import SILENCE_S, Sweep, SweepReport
from natsstream.streams.chunks.value import CHUNK_BYTES, ChunkedValue, Progress
from natsstream.streams.subject_counts import each_subject
from natsstream.units import duration_ns

_SIZE_MAX = 2**63 - 1


class Chunks:
    """Writes and reads values as chunks; made by `Stream.chunks`.

    Each value has a subject of its own, which is written once.
    """

    def __init__(
        self,
        api: Api,
        stream: str,
        *,
        message_bytes_max: int | None = None,
    ) -> None:
        self._api = api
        self._stream = stream
        self._message_bytes_max = message_bytes_max

    async def put(
        self,
        subject: str,
        source: Source,
        *,
        chunk_size: int | None = None,
        progress: Progress | None = None,
        ack_timeout: float = ACK_TIMEOUT_S,
    ) -> ChunkedValue:
        """Store a value and return its description, once all chunks are acknowledged.

        A put that fails or is cancelled removes its chunks.

        Args:
            subject: The subject of its chunks; one that was never used.
            source: Bytes, a path, an open binary file, an object with an async `read`, or an
                iterable of bytes, async or not. Blocking sources are read in a thread. An open file
                is read from its position and stays open.
            chunk_size: Bytes of a chunk; the last may have fewer. None is 131,072, or the server's
                `max_payload` or the stream's `max_msg_size` if that is smaller.
            progress: Called on the loop with the bytes stored and the bytes in all (None if not
                known); it must not block.
            ack_timeout: Seconds without any ack after which the put fails. Time in which only the
                source is awaited does not count.

        Raises:
            ConfigError: The source or the size is not legal; nothing was sent.
            SubjectError: The subject is not legal; nothing was sent.
            WrongStreamError: Another stream captures the subject.
            StreamFullError: The stream has no room for it.
            ChunksDamagedError: Another client wrote to the subject, or a sweep or a limit of the
                stream removed chunks.
            TransportError: The connection broke, or no ack came for `ack_timeout`.
            Exception: The error of the source itself.

        Cost: 8 MiB in flight, and as much in the socket's buffer; one round trip to count the
        chunks; a purge if it fails. One chunk waits until the next comes or the source ends.
        """
        check_subject(subject)
        check_source(source)
        size = self._chunk_size(chunk_size)
        if progress is not None:
            check_plain(progress, "progress", takes="bytes done and bytes in all", count=2)
        limit_s = check_seconds(ack_timeout, "ack_timeout")
        put = ChunkPut(self._api, self._stream, subject, limit_s)
        return await put.run(source, size, progress)

    def _chunk_size(self, given: int | None) -> int:
        largest = self._api.client.max_payload_bytes
        if given is None:
            limit = self._message_bytes_max or 0  # As in the server, -1 and 0 are no limit.
            return min(CHUNK_BYTES, largest, limit if limit > 0 else CHUNK_BYTES)
        size = check_int(given, "chunk_size", minimum=1)
        if size > largest:
            raise ConfigError(
                f"chunk_size is {size}, the server takes messages of {largest} bytes",
                hint="leave it out for one that fits, or raise max_payload on the server",
            )
        return size

    def open(
        self, value: ChunkedValue, *, offset: int = 0, length: int | None = None
    ) -> ChunkReader:
        """Return a reader of a value, or of a part of it; nothing is sent before it is entered.

        Each byte is proved to be at its offset before it is returned: by the number of chunks in
        the stream, and for a whole value also by the digest. If chunks of the value are missing, a
        read of any part raises ChunksDamagedError. Only the digest finds a foreign message in the
        place of a deleted chunk.

        Args:
            value: The result of `put`, or an equal description.
            offset: The first byte, from 0.
            length: Bytes at most; None is all that follow.

        Raises:
            ConfigError: A number is negative, or no number; or the value is no `ChunkedValue`.

        Cost: one ephemeral consumer and up to 16 MiB in flight. A whole value of more than 256 KiB
        costs one round trip more; a part six, for any size of value. If other messages stand
        between its chunks, the search for a part takes some more, and one for each 4 MiB read. If
        the sizes of chunks vary, or `chunk_size` is not known, a consumer reads the headers of all
        chunks up to the part's end instead.
        """
        if not isinstance(value, ChunkedValue):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types.
            raise ConfigError(
                f"value is {described(value)}",
                hint="give what chunks.put(subject, source) returned, or "
                "ChunkedValue(subject=..., size=..., chunks=...) with its numbers",
            )
        check_int(offset, "offset", minimum=0, maximum=_SIZE_MAX)
        if length is not None:
            check_int(length, "length", minimum=0, maximum=_SIZE_MAX)
        return ChunkReader(self._api, self._stream, value, offset=offset, length=length)

    async def remove(self, subject: str) -> int:
        """Remove a value's chunks and return how many there were.

        The purge is retried while the server is away: it can be repeated, because the subject is
        written once.

        Raises:
            SubjectError: The subject is not legal, or has wildcards; nothing was sent.
            NotPermittedError: The stream has `deny_purge`.
            StreamSealedError: The stream is sealed.
            TransportError: No answer within `request_timeout`.

        Cost: one round trip.
        """
        return await remove(self._api, self._stream, check_subject(subject))

    async def sweep(
        self,
        filter: str,  # noqa: A002 - The field's own word.
        used: Callable[[], Awaitable[Collection[str]]],
        *,
        older_than: float | timedelta = SILENCE_S,
        dry_run: bool = False,
    ) -> SweepReport:
        """Remove the chunks of unused values whose writers are dead.

        Args:
            filter: The subjects of all values, with wildcards.
            used: Returns the subjects of the values in use, as the stream's leader knows them. It
                is called after the stream's subjects were listed.
            older_than: Seconds without a new chunk, before `used` is called, after which a writer
                counts as dead. Our own put raises ChunksDamagedError then.
            dry_run: Only count.

        Raises:
            SubjectError: The filter is not legal; nothing was sent.
            NatsStreamError: The stream refused a request.

        Cost: one round trip for each 100,000 values; for each unused value a consumer that reads
        the headers of its chunks.
        """
        sweep = Sweep(
            self._api,
            self._stream,
            silence_ns=duration_ns(older_than),
            is_dry=check_bool(dry_run, "dry_run"),
        )
        counts = each_subject(self._api, self._stream, check_filter(filter))
        return await sweep.run((each.subject async for each in counts), used)
