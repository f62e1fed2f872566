"""The big values of a core stream: chunks in a stream of their own, named by a small message.

Law: chunks are stored before the message that names them, and removed after it is gone. Chunks
whose message may be stored are never removed: an ack that was lost leaves them to a sweep.
Source: core-stream.md section 5.8.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from natsstream.api.stream_config import StreamConfig
from natsstream.conat.configuration import PATH, SERVICE
from natsstream.conat.headers import Blob, RecordHeaders, is_big
from natsstream.conat.names import StreamNames
from natsstream.conat.reconcile import Edit
from natsstream.conat.record import Record
from natsstream.errors import (
    ChunksDamagedError,
    CodecError,
    NatsStreamError,
    NoRespondersError,
    StreamExistsError,
    StreamNotFoundError,
    TransportError,
)
from natsstream.streams.chunks.sweeping import SILENCE_S
from natsstream.streams.endings import Endings
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream

GRACE_S = SILENCE_S
"""Seconds after its last chunk in which a value may get its message."""

SWEEP_EVERY_S = 3_600.0
"""Seconds between two sweeps: messages that the server evicts or expires leave their chunks."""

# Our headers have their room in the same message.
_HEADER_SLACK_BYTES = 65_536
_IN_FLIGHT = 8
_REPLACED_KEPT = 4_096
_END_WAIT_S = 5.0
# A purge of a subject with a wildcard would take the values of others.
_ID = re.compile(r"[0-9a-zA-Z]+")


class Blobs:
    """The big values of one core stream.

    Args:
        js: The JetStream context.
        names: The core stream's names.
        core: Returns the stream of the messages.

    Attributes:
        has_put: True if this client has stored a big value.
    """

    def __init__(
        self, js: JetStreamContext, names: StreamNames, core: Callable[[], Stream]
    ) -> None:
        self._js = js
        self._names = names
        self._core = core
        self._held: Stream | None = None
        self._has_looked = False
        self.has_put: bool = False
        self._endings = Endings()
        # Values of writes in progress, which the feed need not read again.
        self._own: dict[str, bytes] = {}
        # The big value that a message has replaced, by the message's sequence.
        self._replaced: dict[int, Blob] = {}

    def is_big(self, data: bytes) -> bool:
        """Return True if a value does not fit into a message."""
        largest: int = self._js.raw.max_payload
        return len(data) > max(largest - _HEADER_SLACK_BYTES, largest // 2)

    async def close(self) -> None:
        """Wait a moment for writes and removals in flight."""
        await self._endings.finish(_END_WAIT_S)

    # Writing.

    async def put(self, data: bytes) -> Blob:
        """Store the chunks of a value; `forget` follows when its write has ended.

        A put that fails or is cancelled removes its chunks.
        """
        stream = await self._made()
        blob_id = secrets.token_hex(16)
        try:
            value = await stream.chunks.put(self._names.blob(blob_id), data)
        except (NoRespondersError, StreamNotFoundError):
            self._held = None  # The next put makes the stream again.
            raise
        self.has_put = True
        self._own[blob_id] = data
        return Blob(blob_id, value.chunks, value.size, value.digest)

    async def publish(self, blob: Blob, head: Awaitable[int], *, has_id: bool) -> int:
        """Publish the message that names a value, and return its sequence.

        Cancelling it does not cancel the publish: only its answer tells if the chunks are in use.

        Args:
            blob: The value.
            head: Publishes the message.
            has_id: True if the message has an id, so that an older one may be in its place.
        """
        seqs: list[int] = []

        async def run() -> None:
            seqs.append(await self.settle(blob, head, has_id=has_id))

        await self._endings.run(run())
        return seqs[0]

    async def settle(self, blob: Blob, head: Awaitable[int], *, has_id: bool) -> int:
        """Wait for a message to be stored; chunks that it does not use are removed.

        Arguments as for `publish`.
        """
        try:
            seq = await head
        except NatsStreamError as error:
            if not isinstance(error, TransportError) or isinstance(error, NoRespondersError):
                await self._remove(blob)
            raise
        with suppress(NatsStreamError):
            if has_id and not await self._is_used(blob, seq):
                await self._remove(blob)
        return seq

    def forget(self, blob: Blob | None) -> None:
        """Keep the bytes of a written value no longer; None is a small one."""
        if blob is not None:
            self._own.pop(blob.id, None)

    def note(self, edit: Edit) -> None:
        """Take note of the big value that a message replaces, for the message's writer."""
        if edit.previous is not None and not edit.is_removal:
            for blob in self.of([edit.previous]):
                self._replaced[edit.record.seq] = blob
            if len(self._replaced) > _REPLACED_KEPT:
                del self._replaced[next(iter(self._replaced))]

    async def remove_replaced(self, seq: int) -> None:
        """Remove the value that an own message has replaced."""
        blob = self._replaced.pop(seq, None)
        if blob is not None:
            await self.remove([blob])

    # Removing.

    def of(self, records: Iterable[Record]) -> list[Blob]:
        """Return the big values of records."""
        blocks = (each.headers for each in records)
        return [blob for each in blocks if is_big(each) and (blob := _parsed(each)) is not None]

    async def remove(self, blobs: Sequence[Blob]) -> None:
        """Remove values that no message names; cancelling it does not stop it.

        Chunks that cannot be removed are left to a sweep.
        """
        if blobs:
            await self._endings.run(self._remove(*blobs))

    async def sweep(self, used: Callable[[], Awaitable[Collection[Blob]]]) -> None:
        """Remove the chunks of dead writers, and of messages that the server has removed.

        Args:
            used: Returns the values of all messages, as the stream's leader knows them.
        """

        async def subjects() -> Collection[str]:
            return {self._names.blob(each.id) for each in await used()}

        with suppress(NatsStreamError):  # The next sweep comes.
            stream = await self._found()
            if stream is not None:
                filter_ = self._names.blobs_filter
                await stream.chunks.sweep(filter_, subjects, older_than=GRACE_S)

    # Reading.

    async def may_exist(self) -> bool:
        """Return True if the stream had big values when it was first asked, or has had own ones."""
        if not self._has_looked:
            await self._found()
            self._has_looked = True
        return self._held is not None

    async def whole(self, records: Sequence[Record]) -> list[Record]:
        """Return records with the bytes of their big values.

        A record that has them stays as it is. One whose message is gone meanwhile is left out. One
        whose chunks alone are gone stays without them, and its value cannot be decoded.

        Raises:
            NatsStreamError: A read failed.
        """
        big = [each for each in records if is_big(each.headers) and not each.data]
        if not big:
            return list(records)
        room = asyncio.Semaphore(_IN_FLIGHT)

        async def fetch(record: Record) -> Record | None:
            async with room:
                return await self._whole(record)

        answers = await asyncio.gather(*map(fetch, big), return_exceptions=True)
        found: dict[int, Record | None] = {}
        for record, answer in zip(big, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            found[record.seq] = answer
        return [each for record in records if (each := found.get(record.seq, record)) is not None]

    # Internals.

    async def _whole(self, record: Record) -> Record | None:
        blob = _parsed(record.headers)
        if blob is None:
            return record
        data = self._own.get(blob.id)
        if data is None:
            try:
                data = await self._read(blob)
            except (ChunksDamagedError, StreamNotFoundError):
                return record if await self._is_used(blob, record.seq) else None
        return record._replace(data=data)

    async def _read(self, blob: Blob) -> bytes:
        stream = self._held or await self._js.streams.get(self._names.blob_stream)
        self._held = stream
        async with stream.chunks.open(blob.under(self._names.blob(blob.id))) as reader:
            return await reader.read()

    async def _is_used(self, blob: Blob, seq: int) -> bool:
        found = await self._core().get(seq)
        return found is not None and _parsed(found.headers.source) == blob

    async def _remove(self, *blobs: Blob) -> None:
        with suppress(NatsStreamError):
            stream = await self._found()
            if stream is not None:
                removals = (stream.chunks.remove(self._names.blob(each.id)) for each in blobs)
                await asyncio.gather(*removals, return_exceptions=True)

    async def _found(self) -> Stream | None:
        if self._held is None:
            with suppress(StreamNotFoundError):
                self._held = await self._js.streams.get(self._names.blob_stream)
        return self._held

    async def _made(self) -> Stream:
        stream = await self._found()
        while stream is None:
            with suppress(StreamExistsError):  # Another client was faster.
                await self._js.streams.create(self._config())
            stream = await self._found()
        return stream

    def _config(self) -> StreamConfig:
        core = self._core().cached.config
        metadata: Mapping[str, str] = {PATH: self._names.path, SERVICE: self._names.service}
        return StreamConfig(
            name=self._names.blob_stream,
            subjects=[self._names.blobs_filter],
            retention="limits",
            storage=core.storage,
            replicas=core.replicas,
            placement=core.placement,
            discard="new",
            allow_direct=True,
            metadata=metadata,
        )


def _parsed(block: bytes) -> Blob | None:
    """Return the big value that a header block names; None if it cannot be read."""
    with suppress(CodecError):
        blob = RecordHeaders.parse(block).blob
        if blob is not None and _ID.fullmatch(blob.id):
            return blob
    return None
