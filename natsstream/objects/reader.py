"""Reads the bytes of an object.

Law: a read returns the bytes of one version. It raises ObjectChangedError when the object is
replaced or deleted during the read, and never continues with another version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self, TypeVar

from natsstream.arguments import check_int
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
from natsstream.objects.links import ResolvedObject, find_object
from natsstream.objects.meta_store import MetaStore, object_not_found
from natsstream.streams.chunks.getting import ChunkReader
from natsstream.streams.chunks.value import ChunkedValue
from natsstream.units import NS_PER_SECOND, duration_ns

READS_MAX = 5
"""A writer that replaces an object this often during reads does nothing else."""

# A leader that hears again of the others knows within a heartbeat of a second that it is none.
_STALE_WAITS_S = (0.2, 0.8, 2.0)

R = TypeVar("R")


class ObjectReader:
    """Reads an object, or a part of it; made by `ObjectStore.open`, used with `async with`.

    Iterate it for pieces of bytes as they are stored, or call `read` for a number of bytes. One
    task reads at a time. Leaving the block frees everything here and on the server.
    """

    def __init__(
        self,
        meta_store: MetaStore,
        name: str,
        *,
        offset: int = 0,
        length: int | None = None,
        resolved: ResolvedObject | None = None,
    ) -> None:
        check_int(offset, "offset", minimum=0)
        if length is not None:
            check_int(length, "length", minimum=0)
        self._meta_store = meta_store
        self._name = name
        self._offset = offset
        self._length = length
        self._resolved = resolved  # Given, it is read also where there is another one by now.
        self._chunks: ChunkReader | None = None

    @property
    def info(self) -> ObjectInfo:
        """The info of the object; for a link, its target's."""
        if self._chunks is None or self._resolved is None:
            raise _not_open()
        return self._resolved.info

    @property
    def size(self) -> int:
        """Bytes in all: of the part, if a part is read."""
        return self._opened().size

    async def __aenter__(self) -> Self:
        """Find the object.

        Raises:
            ObjectNotFoundError: The object does not exist, or is deleted.
            BucketNotFoundError: The store was deleted.
            ObjectLinkError: The object links to a store, or there are too many links.
            ObjectMetaError: The object's meta cannot be read.
            TransportError: The server did not answer in time.
        """
        if self._chunks is not None:
            raise UsageError("a reader opens once", hint="call box.open(name) again")
        resolved = self._resolved or await find_object(self._meta_store, self._name)
        if resolved is None:
            raise object_not_found(self._meta_store.subjects.bucket, self._name)
        self._resolved = resolved
        self._chunks = resolved.meta_store.stream.chunks.open(
            chunked_value(resolved), offset=self._offset, length=self._length
        )
        await self._chunks.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the read; closing twice is fine."""
        if self._chunks is not None:
            await self._chunks.close()

    def __aiter__(self) -> Self:
        """Iterate pieces: first the rest of what `read` began, then as they are stored."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece; no piece is empty.

        Raises:
            StopAsyncIteration: All bytes were read; those of a whole object are verified.
            ChunksDamagedError: Chunks are missing, there are too many, or the digest differs.
            ObjectChangedError: The object was replaced or deleted during the read.
            ObjectExpiredError: The store has a `ttl`, and chunks have expired.
            BucketNotFoundError: The store was deleted during the read.
            UsageError: The reader is not open, another task reads, or a read was cancelled.
            ConnectionLostError: The connection did not come back within `reconnect_timeout`.
        """
        return await self._explained(anext(self._opened()))

    async def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes; fewer, or none, at the end.

        Args:
            size: How many; -1 is all that are left, in memory.

        Raises:
            ConfigError: `size` is no whole number from -1 on.
            NatsStreamError: As for iterating.
        """
        return await self._explained(self._opened().read(size))

    def _opened(self) -> ChunkReader:
        if self._chunks is None:
            raise _not_open()
        return self._chunks

    async def _explained(self, reading: Awaitable[bytes]) -> bytes:
        """Wait for bytes; raise errors of the object and its store instead of the stream's."""
        with STORE.translate_errors(self.info.bucket):
            try:
                return await reading
            except ChunksDamagedError as error:
                why = await self._why(error)
                raise why from (None if why is error else error)

    async def _why(self, error: ChunksDamagedError) -> NatsStreamError:
        """Return why chunks are missing: of another version, expired, or damaged."""
        resolved = self._resolved
        if resolved is not None:
            with suppress(TransportError):
                if await _is_changed(resolved, is_missing=error.kind == "missing"):
                    return ObjectChangedError(
                        f"object {resolved.info.name!r} of store {resolved.info.bucket} was "
                        "replaced or deleted while it was being read",
                        hint="open it again and read from the beginning",
                    )
                if error.kind == "missing":
                    expired = await _expired(resolved)
                    if expired is not None:
                        return expired
            error.name_call(f"object {resolved.info.name!r} of store {resolved.info.bucket}")
        return error

    def __repr__(self) -> str:
        return f"<ObjectReader {self._meta_store.subjects.bucket}/{self._name}>"


async def read_object(meta_store: MetaStore, name: str) -> bytes | None:
    """Return all bytes of an object; see `ObjectStore.get`."""

    async def read() -> bytes:
        async with ObjectReader(meta_store, name) as reader:
            return await reader.read()

    try:
        return await until_unchanged(read)
    except ObjectNotFoundError:
        return None


async def until_unchanged(read: Callable[[], Awaitable[R]]) -> R:
    """Return the result of a read, again if the object was replaced during it.

    Raises:
        ObjectChangedError: The object was replaced each time.
    """
    for _ in range(READS_MAX - 1):
        with suppress(ObjectChangedError):
            return await read()
    return await read()


def chunked_value(resolved: ResolvedObject) -> ChunkedValue:
    """Return an object's bytes as a value in chunks.

    Raises:
        ObjectMetaError: Its digest cannot be checked.
    """
    info = resolved.info
    digest = read_digest(info.digest) if info.digest else b""
    if digest is None:
        raise ObjectMetaError(
            f"object {info.name!r} of store {info.bucket}: {info.digest[:40]!r} is no digest",
            name=info.name,
            revision=info.revision,
            hint="put the object again",
        )
    return ChunkedValue(
        subject=resolved.meta_store.subjects.chunk_subject(info.nuid),
        size=info.size,
        chunks=info.chunks,
        digest=digest,
        chunk_size=info.options.max_chunk_size or 0,
    )


async def _is_changed(resolved: ResolvedObject, *, is_missing: bool) -> bool:
    """Return True if the store has another version by now, or none.

    A server that was paused, or cut off, answers as the leader until it hears of the new one: it
    knows the meta whose chunks the others have removed. So a replicated store is asked again.
    """
    meta_store, info = resolved.meta_store, resolved.info
    for wait_s in (0.0, *_STALE_WAITS_S):
        await asyncio.sleep(wait_s)
        now = (await meta_store.read(info.name)).live
        if now is None or now.nuid != info.nuid:
            return True
        if not wait_s and not (is_missing and await _is_replicated(meta_store)):
            break
    return False


async def _is_replicated(meta_store: MetaStore) -> bool:
    return ((await meta_store.stream.info()).config.replicas or 1) > 1


async def _expired(resolved: ResolvedObject) -> ObjectExpiredError | None:
    """Return the error of an object whose chunks have expired; None if they cannot have.

    Chunks are older than the object's meta, which is stored after them and by updates and renames.
    """
    max_age = (await resolved.meta_store.stream.info()).config.max_age  # May have changed.
    if not max_age:
        return None
    return ObjectExpiredError(
        f"object {resolved.info.name!r} of store {resolved.info.bucket} has expired: the store "
        f"keeps bytes for {duration_ns(max_age) / NS_PER_SECOND:g} s",
        hint="put it again; update() and rename() do not extend the life of its bytes",
    )


def _not_open() -> UsageError:
    return UsageError("the reader is not open", hint="async with box.open(name) as reader")
