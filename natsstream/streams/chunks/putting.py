"""Stores a value as chunks: pipelined and hashed, with a check of every ack.

Law: a subject of chunks is written once, by one writer, in order. A put returns once the leader has
counted all chunks after the last ack; or it raises and has removed its chunks. Chunks that it
cannot remove, because the server is away, are left for a sweep. No chunk is sent twice: a second
copy could be stored behind the first one and damage the value. The last chunk is sent when the
source ends, so a value is young to every sweep when it comes into use.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack, aclosing, suppress
from typing import cast

from natsstream.api.message_query import SEQUENCE_MAX
from natsstream.api.requests import Api
from natsstream.api.stream_requests import purge
from natsstream.errors import (
    ChunksDamagedError,
    NatsStreamError,
    RequestTimeoutError,
    ServerError,
    TransportError,
    WrongStreamError,
)
from natsstream.publish.ack_window import AckFuture
from natsstream.publish.pub_ack import PubAck
from natsstream.publish.publisher import Publisher
from natsstream.publish.publisher_options import PublisherOptions
from natsstream.streams.chunks.counting import ChunkCounts
from natsstream.streams.chunks.hashing import RunningHash
from natsstream.streams.chunks.sources import Source, chunks_of, known_size
from natsstream.streams.chunks.value import ChunkedValue, Progress

# 8 MiB in flight hide a round trip of 10 ms at 800 MiB/s; the socket's buffer may hold as much.
WINDOW_BYTES = 8 << 20
ACK_TIMEOUT_S = 10.0
"""Seconds without any ack: slow links still deliver one in that time."""
_PUBLISH_TIMEOUT_S = 600.0
# Bytes between two turns of the loop's other tasks.
_TURN_BYTES = 1 << 20
_DISCARD_S = 5.0
_RETRY_WAIT_S = 0.25
# A new leader may not have applied all committed messages yet.
_COUNT_WAITS_S = (0.1, 0.4, 1.0)


class ChunkPut:
    """The put of one value.

    Args:
        api: The connection.
        stream: The stream's name.
        subject: The subject of its chunks.
        ack_timeout: Seconds without any ack after which it fails.
    """

    def __init__(self, api: Api, stream: str, subject: str, ack_timeout: float) -> None:
        self._api = api
        self._stream = stream
        self._subject = subject
        self._ack_timeout = ack_timeout
        self._hash = RunningHash()
        self._flying: deque[tuple[AckFuture, int]] = deque()
        self._unanswered = 0
        self._sent = 0
        self._chunks = 0
        self._done = 0
        self._last_seq = 0
        self._tell: Callable[[], object] = lambda: None
        self._scope = asyncio.timeout(None)

    async def run(self, source: Source, chunk_size: int, progress: Progress | None) -> ChunkedValue:
        """Store all chunks of a source; see `Chunks.put`."""
        if progress is not None:
            total = known_size(source)
            self._tell = lambda: progress(self._done, total)
        options = PublisherOptions(
            max_pending_bytes=max(WINDOW_BYTES, 2 * chunk_size),
            ack_timeout=_PUBLISH_TIMEOUT_S,  # The scope is faster.
            stream=self._stream,
        )
        stack = AsyncExitStack()
        try:
            publisher = await stack.enter_async_context(Publisher(self._api, options, logs=False))
            await self._send_all(publisher, source, chunk_size)
            await stack.aclose()
            if self._chunks:
                await self._count()
            else:
                self._tell()  # A bar ends with an empty value as well.
        except BaseException as error:
            await self._api.client.endings.run(self._take_back(stack, error))
            raise
        return ChunkedValue(
            subject=self._subject,
            size=self._sent,
            chunks=self._chunks,
            digest=self._hash.digest(),
            chunk_size=chunk_size,
        )

    async def _send_all(self, publisher: Publisher, source: Source, chunk_size: int) -> None:
        try:
            async with self._scope:
                turn = 0
                last: bytes | None = None
                async with aclosing(chunks_of(source, chunk_size)) as chunks:
                    async for chunk in chunks:
                        if last is not None:
                            await self._send(publisher, last)
                        last = chunk
                        turn += len(chunk)
                        if turn >= _TURN_BYTES:
                            turn = 0
                            await asyncio.sleep(0)
                if last is not None:
                    await self._send(publisher, last)
                while self._flying:
                    await asyncio.wait([self._flying[0][0]])
                    self._take_acks()
        except TimeoutError as error:
            if not self._scope.expired():
                raise
            raise RequestTimeoutError(
                f"chunks of {self._subject}: no ack for {self._ack_timeout:g} s",
                detail=self._api.client.loss,
                hint="does the stream have a leader? put it again",
                retryable=True,
            ) from error

    async def _send(self, publisher: Publisher, chunk: bytes) -> None:
        await self._hash.add(chunk)
        # Counted before it is sent: a chunk that may be stored must be removed.
        self._chunks += 1
        self._sent += len(chunk)
        future = cast("AckFuture", await publisher.send(self._subject, chunk))
        self._unanswered += 1
        if self._unanswered == 1:
            self._expect_ack()
        future.add_done_callback(self._on_ack)
        self._flying.append((future, len(chunk)))
        self._take_acks()

    def _on_ack(self, _: asyncio.Future[PubAck]) -> None:
        self._unanswered -= 1
        self._expect_ack()

    def _expect_ack(self) -> None:
        """Restart the ack timeout if chunks are in flight."""
        # Without any in flight the source takes its time, and it may.
        now = asyncio.get_running_loop().time()
        due = now + self._ack_timeout if self._unanswered else None
        with suppress(RuntimeError):  # The scope is over.
            self._scope.reschedule(due)

    def _take_acks(self) -> None:
        """Check the acks that have come, in order."""
        flying, before = self._flying, self._done
        while flying and flying[0][0].done():
            future, size = flying[0]
            ack = future.result()
            flying.popleft()
            if ack.stream != self._stream:
                raise WrongStreamError(
                    f"chunks of {self._subject} went to stream {ack.stream}, not {self._stream}",
                    hint="the subjects of both streams overlap; these chunks are unused",
                )
            if ack.sequence <= self._last_seq:
                raise _spoiled(self._subject, f"sequence {ack.sequence} after {self._last_seq}")
            self._last_seq = ack.sequence
            self._done += size
        if self._done > before:
            self._tell()

    async def _count(self) -> None:
        """Check that the subject has our chunks and no others."""
        counts = ChunkCounts(self._api, self._stream, self._subject)
        total = await counts.total()
        for wait_s in _COUNT_WAITS_S:
            if total.chunks >= self._chunks or total.replicas == 1:
                break
            await asyncio.sleep(wait_s)
            total = await counts.total()
        if total.chunks != self._chunks:
            detail = f"{self._chunks} were stored, {total.chunks} are there"
            kind = "missing" if total.chunks < self._chunks else "surplus"
            raise _spoiled(self._subject, detail, kind)

    async def _take_back(self, publishing: AsyncExitStack, error: BaseException) -> None:
        """Remove the chunks; a purge must not overtake chunks in flight."""
        if not isinstance(error, RequestTimeoutError):
            # Chunks without an ack for so long get none in a moment.
            await self._settle()
        await publishing.__aexit__(type(error), error, error.__traceback__)
        if self._chunks:
            await self._discard()

    async def _settle(self) -> None:
        """Wait for the acks of chunks in flight, for a limited time."""
        pending = [future for future, _ in self._flying if not future.done()]
        if pending and self._api.client.is_connected:
            await asyncio.wait(pending, timeout=_DISCARD_S)

    async def _discard(self) -> None:
        with suppress(NatsStreamError, TimeoutError):
            async with asyncio.timeout(_DISCARD_S):
                await remove(self._api, self._stream, self._subject)


async def remove(api: Api, stream: str, subject: str, *, last_seq: int = SEQUENCE_MAX) -> int:
    """Remove all messages of a subject of chunks; retried while the server is away.

    It can be repeated at any time, because such a subject is written once.

    Args:
        api: The connection.
        stream: The stream's name.
        subject: The subject.
        last_seq: Only messages up to this sequence, inclusive.

    Raises:
        NatsStreamError: The server refused it, or did not answer in time.
    """
    now = asyncio.get_running_loop().time
    deadline = now() + api.client.options.request_timeout
    while True:
        left = max(deadline - now(), 0.001)
        try:
            await api.client.wait_connected(left)
            return await purge(
                api,
                stream,
                subject=subject,
                last_seq=last_seq,
                timeout=max(left / 2, _RETRY_WAIT_S),
            )
        except (TransportError, ServerError) as error:
            if not error.retryable or now() + _RETRY_WAIT_S >= deadline:
                raise
            await asyncio.sleep(_RETRY_WAIT_S)


def _spoiled(subject: str, detail: str, kind: str = "surplus") -> ChunksDamagedError:
    return ChunksDamagedError(
        f"the stored chunks of {subject} are not what was sent",
        subject=subject,
        kind=kind,
        detail=detail,
        hint="another client wrote there, or a sweep or a limit of the stream removed some; "
        "put it again",
    )
