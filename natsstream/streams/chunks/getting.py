"""Reads a value from its chunks: in order, across disconnects, and verified.

Law: each byte is proved to be at its offset before it is returned: by the number of its chunk
(`positions.py`, `locating.py`), or, in a small value, by the digest of the whole. The last bytes of
a whole value are returned only once its size, its number of chunks and its digest are verified. A
read ends with all bytes or with an error; it does not wait for a missing chunk. After an error, a
cancelled read or `close` every call raises, so only the end looks like the end.
"""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Self

from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.arguments import check_int
from natsstream.errors import ChunksDamagedError, NatsStreamError, SequenceRangeError, UsageError
from natsstream.read.reader import RangeReader, RangeSpec
from natsstream.streams.chunks.hashing import RunningHash
from natsstream.streams.chunks.locating import Locator
from natsstream.streams.chunks.positions import Positions
from natsstream.streams.chunks.value import ChunkedValue, DigestVerifier

# Chunks may be removed during the read, and the consumer does not report it: after two missed
# heartbeats the leader is asked.
_HEARTBEAT_S = 0.5
_HELD_BYTES_MAX = 256 << 10
"""A whole value of up to this size is returned once its digest is verified."""
# Between messages of other writers chunks are proved each time after so many bytes in memory.
_UNPROVED_BYTES_MAX = 4 << 20


class ChunkReader:
    """Reads one value, or a part of it; made by `Chunks.open`, used with `async with`.

    Iterate it for pieces as they are stored, or call `read` for a number of bytes. One task reads
    at a time. Leaving the block frees everything here and on the server.
    """

    def __init__(
        self, api: Api, stream: str, value: ChunkedValue, *, offset: int, length: int | None
    ) -> None:
        self._api = api
        self._stream = stream
        self._value = value
        self._locator = Locator(api, stream, value)
        self._start = min(offset, value.size)
        stop = value.size if length is None else min(offset + length, value.size)
        self._length = max(stop - self._start, 0)
        self._pieces: AsyncGenerator[bytes] | None = None
        self._rest: memoryview = memoryview(b"")
        self._is_open = False
        self._is_closed = False
        self._is_reading = False
        self._is_at_end = False
        self._failure: NatsStreamError | None = None

    @property
    def size(self) -> int:
        """Bytes in all: of the part, if a part is read."""
        return self._length

    async def __aenter__(self) -> Self:
        if self._is_open or self._is_closed:
            raise UsageError("a reader opens once", hint="open another one")
        self._is_open = True
        is_whole = self._length == self._value.size
        self._pieces = self._whole() if is_whole else self._part()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the read; closing twice is fine.

        Raises:
            UsageError: Another task reads: cancel it first.
        """
        if self._is_reading:
            raise _busy()
        self._is_closed = True
        self._rest = memoryview(b"")
        if self._pieces is not None:
            await self._pieces.aclose()

    def __aiter__(self) -> Self:
        """Iterate pieces: first the rest of what `read` began, then as they are stored."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece; no piece is empty.

        Raises:
            StopAsyncIteration: All bytes were read.
            ChunksDamagedError: Chunks are missing, there are too many, or the digest differs.
            UsageError: The reader is not open, another task reads, or a read was cancelled.
            NatsStreamError: As for `Stream.read`.
        """
        if self._rest:
            piece, self._rest = bytes(self._rest), memoryview(b"")
            return piece
        following = await self._next()
        if following is None:
            raise StopAsyncIteration
        return following

    async def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes; fewer, or none, at the end.

        Args:
            size: How many; -1 is all that are left, in memory.

        Raises:
            ConfigError: `size` is no whole number from -1 on.
            NatsStreamError: As for iterating.
        """
        check_int(size, "size", minimum=-1)
        self._check_open()
        # BytesIO grows and returns its bytes without a copy; a joined list would hold them twice.
        buffer = io.BytesIO()
        left = self._length if size < 0 else size
        while left > 0:
            if not self._rest:
                piece = await self._next()
                if piece is None:
                    break
                self._rest = memoryview(piece)
            part, self._rest = self._rest[:left], self._rest[left:]
            left -= buffer.write(part)
        if size < 0:
            # The end verifies the whole value, also an empty one.
            while (piece := await self._next()) is not None:
                buffer.write(piece)
        return buffer.getvalue()

    async def _next(self) -> bytes | None:
        """Return the next piece as it is stored; None at the end, and only there."""
        pieces = self._check_open()
        if self._failure is not None:
            raise self._failure.with_traceback(None)  # Else it would grow with each call.
        if self._is_at_end:
            return None
        self._is_reading = True
        try:
            piece = await anext(pieces, None)
        except NatsStreamError as error:
            self._failure = error
            raise
        except BaseException:
            self._failure = UsageError(
                "an earlier read was cancelled, and its bytes are lost",
                hint="open another reader with offset=",
            )
            raise
        finally:
            self._is_reading = False
        self._is_at_end = piece is None
        return piece

    def _check_open(self) -> AsyncGenerator[bytes]:
        if self._is_closed:
            raise UsageError("the reader is closed", hint="open another one")
        if self._pieces is None:
            raise UsageError("the reader is not open", hint="async with ... as reader")
        if self._is_reading:
            raise _busy()
        return self._pieces

    # The read itself.

    async def _whole(self) -> AsyncGenerator[bytes]:
        value = self._value
        verifier, digest = DigestVerifier(value), RunningHash()
        # A small value waits for its digest, which proves more than any count.
        is_small = value.size <= _HELD_BYTES_MAX
        held: list[bytes] = []
        if value.chunks or value.size:
            positions = None if is_small else Positions(value.chunks)
            async with aclosing(self._chunks(None, None, positions)) as chunks:
                async for message in chunks:
                    chunk = message.data
                    verifier.count(chunk)
                    await digest.add(chunk)
                    if is_small or verifier.has_all:
                        held.append(chunk)
                    elif chunk:
                        yield chunk
        verifier.end(digest.digest())
        for chunk in held:
            if chunk:
                yield chunk

    async def _part(self) -> AsyncGenerator[bytes]:
        left = self._length
        if not left:
            return
        found = await self._locator.find(self._start, self._start + left)
        positions = Positions(self._value.chunks, index=found.index, sequence=found.first_seq)
        index, skip = found.index, found.skip
        async with aclosing(self._chunks(found.first_seq, found.last_seq, positions)) as chunks:
            async for message in chunks:
                if found.is_even:
                    self._check_size(index, len(message.data))
                index += 1
                chunk = message.data[skip : skip + left]
                skip = 0
                left -= len(chunk)
                if chunk:
                    yield chunk
                if not left:
                    return
        raise self._missing(f"{left} bytes of the part are not there")

    def _check_size(self, index: int, size: int) -> None:
        value = self._value
        is_last = index == value.chunks - 1
        if size != (value.last_bytes if is_last else value.chunk_size):
            raise ChunksDamagedError(
                f"chunk {index} under {value.subject} has {size} bytes; its writer gave "
                f"{value.chunk_size} for each but the last",
                subject=value.subject,
                kind="digest",
                detail="it is not proved which bytes of the value it holds",
                hint="read the whole value, which is verified",
            )

    async def _chunks(
        self, first: int | None, last: int | None, positions: Positions | None
    ) -> AsyncGenerator[Message]:
        """Yield the chunks whose numbers are proved; all of them without positions."""
        waiting: list[Message] = []
        size, size_max = 0, 0  # The first proof is made at once.
        try:
            async with aclosing(self._range(first, last).runs()) as runs:
                async for run in runs:
                    if positions is None:
                        waiting = run
                    else:
                        waiting += run
                        size += sum([len(message.data) for message in run])
                        positions.take([message.sequence for message in run])
                        if not positions.is_proved:
                            if size < size_max:
                                continue
                            await self._locator.prove(*positions.question)
                            positions.prove()
                            size_max = _UNPROVED_BYTES_MAX
                        size = 0
                    for message in waiting:
                        yield message
                    waiting = []
        except SequenceRangeError as error:  # The chunks were removed a moment ago.
            raise self._missing(error.message) from error
        if waiting and positions is not None:
            await self._locator.prove(*positions.question)
            for message in waiting:
                yield message

    def _range(self, first: int | None, last: int | None) -> RangeReader[list[Message]]:
        spec = RangeSpec(
            stream=self._stream,
            first_seq=first,
            last_seq=last,
            filters=(self._value.subject,),
            heartbeat_s=_HEARTBEAT_S,
        )
        return RangeReader[list[Message]](self._api, spec, clip=_clip)

    def _missing(self, detail: str) -> ChunksDamagedError:
        value = self._value
        return ChunksDamagedError(
            f"bytes {self._start} to {self._start + self._length} under {value.subject} are not "
            "all there",
            subject=value.subject,
            kind="missing",
            detail=detail,
            hint="it was removed meanwhile, or must be stored again",
        )

    def __repr__(self) -> str:
        return f"<ChunkReader {self._value.subject} {self._length} bytes>"


def _busy() -> UsageError:
    return UsageError("another task reads", hint="one task reads; open a reader for each")


def _clip(messages: list[Message], count: int) -> list[Message]:
    return messages[:count]
