"""The bytes of one object as its reader sees them.

Law: what is read is one version of the object. When it is replaced or deleted meanwhile the read
ends with an error that says so; it never goes on with the bytes of another version.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from natsstream.errors import (
    ChunksDamagedError,
    NatsStreamError,
    ObjectChangedError,
    ObjectExpiredError,
    ObjectMetaError,
    ObjectNotFoundError,
    TransportError,
    UsageError,
)
from natsstream.objects.info import ObjectInfo, read_digest
from natsstream.objects.kind import STORE
from natsstream.objects.links import ResolvedObject
from natsstream.streams.chunks.getting import ChunkReader
from natsstream.streams.chunks.value import ChunkedValue
from natsstream.units import NS_PER_SECOND, duration_ns


class ObjectReader:
    """Reads an object, or a part of it; made by `ObjectStore.open`, used with `async with`.

    Iterate it for pieces of bytes as they are stored, or `read` as many as are wanted. One task
    reads at a time. Leaving the block frees everything here and on the server.
    """

    def __init__(
        self,
        find: Callable[[], Awaitable[ResolvedObject | None]],
        *,
        name: str,
        store: str,
        offset: int,
        length: int | None,
    ) -> None:
        self._find = find
        self._name = name
        self._store = store
        self._offset = offset
        self._length = length
        self._found: ResolvedObject | None = None
        self._chunks: ChunkReader | None = None

    @property
    def info(self) -> ObjectInfo:
        """What the store says of the object that is read; behind links, of what they lead to."""
        if self._found is None:
            raise _not_open()
        return self._found.info

    @property
    def size(self) -> int:
        """Bytes that it gives in all: of the part, where a part was asked for."""
        return self._opened().size

    async def __aenter__(self) -> Self:
        """Find the object.

        Raises:
            ObjectNotFoundError: There is no such object, or it is deleted.
            BucketNotFoundError: The store was deleted.
            ObjectLinkError: It is a link to a store, or links lead on and on.
            ObjectMetaError: What is stored of it can not be read.
            TransportError: The server did not answer in time.
        """
        if self._chunks is not None:
            raise UsageError("a reader opens once", hint="call box.open(name) again")
        found = await self._find()
        if found is None:
            raise ObjectNotFoundError(
                f"store {self._store} has no object {self._name!r}",
                hint="names() yields those that it has",
            )
        self._found = found
        chunks = found.metas.stream.chunks
        value = chunked(found)
        self._chunks = chunks.open(value, offset=self._offset, length=self._length)
        await self._chunks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the read; closing twice is fine."""
        if self._chunks is not None:
            await self._chunks.close()

    def __aiter__(self) -> Self:
        """Iterate pieces: of what `read` has left, then as they are stored."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece; no piece is empty.

        Raises:
            StopAsyncIteration: That was all of it; a whole object is verified then.
            ChunksDamagedError: Chunks are missing, there are too many, or the digest differs.
            ObjectChangedError: It was replaced or deleted meanwhile.
            ObjectExpiredError: The store has a `ttl`, and chunks are not there any more.
            BucketNotFoundError: The store was deleted meanwhile.
            UsageError: It is not open, another task reads, or an earlier read was cancelled.
            ConnectionLostError: The server did not come back within `reconnect_timeout`.
        """
        return await self._told(anext(self._opened()))

    async def read(self, size: int = -1) -> bytes:
        """Return the next bytes, as many as were asked for; fewer, or none, at the end.

        Args:
            size: How many; -1 is all that are left, in memory.

        Raises:
            ConfigError: `size` is no such number.
            NatsStreamError: As for iterating.
        """
        return await self._told(self._opened().read(size))

    def _opened(self) -> ChunkReader:
        if self._chunks is None:
            raise _not_open()
        return self._chunks

    async def _told(self, reading: Awaitable[bytes]) -> bytes:
        """Wait for bytes; tell of the object and its store where they do not come."""
        with STORE.translate_errors(
            self._store if self._found is None else self._found.info.bucket
        ):
            try:
                return await reading
            except ChunksDamagedError as error:
                raise await self._why(error) from error

    async def _why(self, error: ChunksDamagedError) -> NatsStreamError:
        """Return why chunks are not there: of another version, expired, or damaged."""
        if self._found is None:
            return error
        with suppress(TransportError):
            if await is_changed(self._found):
                return changed(self._found)
            return await expired(self._found, error) or error
        return error

    def __repr__(self) -> str:
        return f"<ObjectReader {self._store}/{self._name}>"


def chunked(found: ResolvedObject) -> ChunkedValue:
    """Return what a store says of an object's bytes.

    Raises:
        ObjectMetaError: Its digest is none that anybody could check.
    """
    info = found.info
    digest = read_digest(info.digest) if info.digest else b""
    if digest is None:
        raise ObjectMetaError(
            f"object {info.name!r} of store {info.bucket}: {info.digest[:40]!r} is no digest",
            name=info.name,
            revision=info.revision,
            hint="put the object again",
        )
    return ChunkedValue(
        subject=found.metas.place.chunk_subject(info.nuid),
        size=info.size,
        chunks=info.chunks,
        digest=digest,
        chunk_size=info.options.max_chunk_size or 0,
    )


def changed(found: ResolvedObject) -> ObjectChangedError:
    """Return the error of an object that is another one by now."""
    return ObjectChangedError(
        f"object {found.info.name!r} of store {found.info.bucket} was replaced or deleted while it "
        "was being read",
        hint="open it again and read from the beginning",
    )


async def expired(found: ResolvedObject, error: ChunksDamagedError) -> ObjectExpiredError | None:
    """Return the error of an object whose chunks the store keeps no longer; None if they may be.

    Chunks are older than what is said of an object, by the time that the put took, and by more
    where it was updated or renamed since.
    """
    if error.kind != "missing":
        return None
    kept = (await found.metas.stream.info()).config.max_age  # It may have been changed.
    if not kept:
        return None
    return ObjectExpiredError(
        f"object {found.info.name!r} of store {found.info.bucket} has expired: the store keeps "
        f"bytes for {duration_ns(kept) / NS_PER_SECOND:g} s",
        hint="put it again; update() and rename() do not make its bytes younger",
    )


async def is_changed(found: ResolvedObject) -> bool:
    """Tell whether a store has other bytes under an object's name by now, or none."""
    held = await found.metas.read(found.info.name)
    return held.live is None or held.live.nuid != found.info.nuid


def _not_open() -> UsageError:
    return UsageError("the reader is not open", hint="async with box.open(name) as reader")
