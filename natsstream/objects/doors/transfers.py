"""The bytes of objects: into the store, out of it, and what killed writers have left."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import cast

from natsstream.arguments import check_bool, check_callable, check_int, check_seconds, described
from natsstream.errors import ConfigError, ObjectChangedError, ObjectNotFoundError
from natsstream.objects.describing import (
    ObjectHeaders,
    check_description,
    check_headers,
    check_metadata,
)
from natsstream.objects.doors.part import Part
from natsstream.objects.downloading import Download
from natsstream.objects.info import ObjectInfo
from natsstream.objects.kind import STORE
from natsstream.objects.links import ResolvedObject, find_object
from natsstream.objects.orphans import pointed_subjects
from natsstream.objects.putting import RETRY_FOR_S, ObjectPut
from natsstream.objects.reader import ObjectReader
from natsstream.streams.chunks.sources import Source, check_source
from natsstream.streams.chunks.sweeping import SILENCE_S, SweepReport
from natsstream.streams.chunks.value import Progress

# Somebody who replaces an object this often while it is read does nothing else.
_READS_MAX = 5


class Transfers(Part):
    """Moves the bytes of objects."""

    async def put(
        self,
        name: str,
        source: Source,
        *,
        description: str = "",
        headers: ObjectHeaders | None = None,
        metadata: Mapping[str, str] | None = None,
        chunk_size: int | None = None,
        retry_for: float = RETRY_FOR_S,
        progress: Progress | None = None,
    ) -> ObjectInfo:
        """Store an object, in the place of the one of this name if there is one.

        The old one stays readable until the new one is whole. Of two puts at the same time the one
        that ends last wins. One that fails or is cancelled removes what it stored; what it can not
        remove, because the server is away, `sweep` finds.

        Args:
            name: The object's name.
            source: Bytes, a path, an open binary file, what has an async `read`, or an iterable of
                bytes, async or not. What may block is read in a thread. A file that is given open
                is read from where it stands, and stays open. Text is refused: encode it.
            description: Free text.
            headers: Values, or lists of values, by name.
            metadata: Texts by key.
            chunk_size: Bytes of a message, at most the server's `max_payload`. None is 131,072, or
                `max_payload` or the stream's `max_msg_size` where that is smaller.
            retry_for: Seconds in which a put is tried again after a break: bytes and paths from
                their beginning, everything else only what comes after the bytes. 0 never.
            progress: Called with the bytes that are stored and those there are in all (None where
                nobody knows), on the loop; it must not wait. A second attempt begins at 0.

        Returns:
            What the store says of it; only `info` tells when it was stored.

        Raises:
            ObjectNameError: It is no legal name; nothing was sent.
            ConfigError: An argument has no legal value; nothing was sent.
            StreamFullError: The store has no room; the old object is what it was.
            StreamSealedError: The store is sealed.
            ChunksDamagedError: Chunks were removed meanwhile, as by a sweep or the store's `ttl`;
                the old object is what it was.
            BucketNotFoundError: The store was deleted.
            TransportError: No answer in time; the old object is there, or the new one is.
            Exception: What the source raised itself, such as OSError.

        Cost: four round trips and the bytes; 8 MiB of them are in flight. The old object's and the
        new one's bytes are in the store together for a moment.
        Source: ADR-20; nats.go jetstream/object.go Put.
        """
        named = self._named(name)
        check_source(source)
        if progress is not None:
            check_callable(progress, "progress", takes="bytes done and bytes in all")
        info = ObjectInfo(
            name=named,
            bucket=self.name,
            nuid="",
            description=check_description(description),
            headers={} if headers is None else check_headers(headers),
            metadata={} if metadata is None else check_metadata(metadata),
        )
        put = ObjectPut(
            self._metas,
            info,
            chunk_size=(
                None if chunk_size is None else check_int(chunk_size, "chunk_size", minimum=1)
            ),
            retry_for=check_seconds(retry_for, "retry_for", may_be_zero=True),
            progress=progress,
        )
        with STORE.translate_errors(self.name):
            return await put.run(source)

    async def put_file(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        *,
        description: str = "",
        headers: ObjectHeaders | None = None,
        metadata: Mapping[str, str] | None = None,
        chunk_size: int | None = None,
        retry_for: float = RETRY_FOR_S,
        progress: Progress | None = None,
    ) -> ObjectInfo:
        """Store a file; see `put`.

        Args:
            path: The file.
            name: The object's name; None is the path as it was given, as the nats CLI has it.
            description: Free text.
            headers: Values, or lists of values, by name.
            metadata: Texts by key.
            chunk_size: Bytes of a message; see `put`.
            retry_for: Seconds in which it is tried again after a break.
            progress: Called with the bytes that are stored and those there are.

        Raises:
            OSError: The file can not be read.
            NatsStreamError: As for `put`.
        """
        file = _checked_path(path)
        return await self.put(
            os.fspath(path) if name is None else name,
            file,
            description=description,
            headers=headers,
            metadata=metadata,
            chunk_size=chunk_size,
            retry_for=retry_for,
            progress=progress,
        )

    def open(self, name: str, *, offset: int = 0, length: int | None = None) -> ObjectReader:
        """Return a reader of an object, or of a part of it: `async with box.open(name) as reader`.

        Links are followed. Each byte is proved to be at its offset before it is handed out, by the
        number of chunks that the store holds; the last bytes of a whole object only when its size
        and digest are right too. A part has no digest: a foreign message in the place of a deleted
        chunk is found by reading the whole. A read that begins behind the object's end gives
        nothing.

        Args:
            name: The object's name.
            offset: The first byte, from 0.
            length: How many bytes at most; None is all that follow.

        Raises:
            ObjectNameError: It is no legal name; nothing was sent.
            ConfigError: A number is negative, or no number.

        Cost: nothing is sent before it is entered; then a round trip for each link and the object.
        Up to 16 MiB are in flight. A part costs six round trips more, however large the object is,
        and some more where others wrote between its chunks. A part of an object of another client
        whose chunks vary in size costs the server a walk through the headers of all chunks up to
        its end.
        Source: ADR-20; nats.go jetstream/object.go Get.
        """
        named = self._named(name)
        check_int(offset, "offset", minimum=0)
        if length is not None:
            check_int(length, "length", minimum=0)

        async def find() -> ResolvedObject | None:
            return await self._find(named)

        return ObjectReader(find, name=named, store=self.name, offset=offset, length=length)

    async def get(self, name: str) -> bytes | None:
        """Return all bytes of an object, verified; None where there is none, or it is deleted.

        Links are followed. One that is replaced meanwhile is read again.

        Raises:
            ObjectNameError: It is no legal name; nothing was sent.
            ChunksDamagedError: What is stored is not what its writer stored.
            ObjectLinkError: It is a link to a store, or links lead on and on.
            ObjectMetaError: What is stored of it can not be read.
            ObjectChangedError: It was replaced again and again.
            BucketNotFoundError: The store was deleted.
            ConnectionLostError: The server did not come back within `reconnect_timeout`.

        Cost: the object in memory, and once more while it is put together; `open` reads larger
        ones.
        Source: ADR-20; nats.go jetstream/object.go GetBytes.
        """
        for attempt in range(_READS_MAX):
            try:
                async with self.open(name) as reader:
                    return await reader.read()
            except ObjectNotFoundError:
                return None
            except ObjectChangedError:
                if attempt == _READS_MAX - 1:
                    raise
        raise AssertionError("unreachable")

    async def get_file(
        self,
        name: str,
        path: str | os.PathLike[str],
        *,
        resume: bool = True,
        progress: Progress | None = None,
    ) -> ObjectInfo:
        """Write an object into a file, which is replaced in one step when all of it is verified.

        It is gathered in a file beside it that ends in `.part`. When the download breaks, by an
        error or a kill, that stays, and the same call goes on where it ended, as long as the
        object is the same.

        Args:
            name: The object's name.
            path: The file; what is there is replaced.
            resume: Go on with what an earlier download has left, and leave it for a later one.
            progress: Called with the bytes that are written and those there are, on the loop; it
                must not wait.

        Returns:
            What the store says of it; behind links, of what they lead to.

        Raises:
            ObjectNotFoundError: There is no such object; nothing was written.
            OSError: The file can not be written.
            NatsStreamError: As for `get`.

        Cost: memory as for `open`. What was there before is read and hashed again.
        """
        named, target = self._named(name), _checked_path(path)
        check_bool(resume, "resume")
        if progress is not None:
            check_callable(progress, "progress", takes="bytes done and bytes in all")
        for attempt in range(_READS_MAX):
            found = await self._find(named)
            if found is None:
                raise ObjectNotFoundError(
                    f"store {self.name} has no object {named!r}",
                    hint="names() yields those that it has",
                )
            download = Download(found, lambda at, of=found: _open_found(of, at), target, progress)
            try:
                await download.run(resume=resume)
            except ObjectChangedError:
                if attempt == _READS_MAX - 1:
                    raise
            else:
                return found.info
        raise AssertionError("unreachable")

    async def sweep(
        self, *, older_than: float | timedelta = SILENCE_S, dry_run: bool = False
    ) -> SweepReport:
        """Remove chunks that no object points to and whose writers have gone: killed puts, mostly.

        Works for what any client has left. A put in progress stores chunks, and is young by that.
        If its source is silent for longer than `older_than`, its chunks are removed: our own put
        then raises `ChunksDamagedError` and the old object stays, other clients store an object
        without its bytes. Our put stores its last chunk when its source ends, so an object whose
        put has returned keeps its chunks, with one exception: the put was silent for longer than
        `older_than` and ended, meta and all, in the round trip in which the sweep removed them.

        Args:
            older_than: Seconds for which a writer must have stored nothing, by the server's clock.
            dry_run: Only count.

        Raises:
            ConfigError: `older_than` is no duration; nothing was sent.
            ObjectMetaError: A stored description can not be read, so nobody knows what it points
                to; nothing was removed.
            StreamSealedError: The store is sealed.
            TransportError: The server did not answer in time; sweep again.

        Cost: a walk through what the store says of all objects; for each orphan one through the
        headers of its chunks.
        """

        async def pointed() -> set[str]:
            return await pointed_subjects(self._metas)

        with STORE.translate_errors(self.name):
            return await self._stream.chunks.sweep(
                self._place.chunk_filter, pointed, older_than=older_than, dry_run=dry_run
            )

    async def _find(self, name: str) -> ResolvedObject | None:
        with STORE.translate_errors(self.name):
            return await find_object(self._js, self._metas, name)


def _open_found(found: ResolvedObject, offset: int) -> ObjectReader:
    """Return a reader of one version of an object, also when there is another one by now."""

    async def find() -> ResolvedObject:
        return found

    info = found.info
    return ObjectReader(find, name=info.name, store=info.bucket, offset=offset, length=None)


def _checked_path(path: object) -> Path:
    given = cast("str | os.PathLike[str]", path)
    shown: object = os.fspath(given) if isinstance(path, str | os.PathLike) else None
    if not isinstance(shown, str) or not shown or "\0" in shown:
        raise ConfigError(
            f"the path is {described(cast('object', path))}",
            hint="give a path as text or pathlib.Path",
        )
    return Path(shown)
