"""Writes an object into a file: complete or not at all, and resumes a download that broke.

Law: the target is replaced in one step, by a file that has the object's size and digest; until then
it is unchanged. A part file belongs to one version of the object: its name has the nuid. Its bytes
are not trusted: a resumed download hashes them again.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, TypeVarTuple, cast

from natsstream.arguments import check_bool, check_plain, described
from natsstream.errors import (
    ChunksDamagedError,
    ConfigError,
    IntegrityError,
    ObjectExpiredError,
)
from natsstream.objects.info import ObjectInfo
from natsstream.objects.links import ResolvedObject, find_object
from natsstream.objects.meta_store import MetaStore, object_not_found
from natsstream.objects.part_file import PartFile
from natsstream.objects.reader import ObjectReader, chunked_value, until_unchanged
from natsstream.streams.chunks.value import Progress

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
_WRITE_BYTES = 1 << 20

_log = logging.getLogger("natsstream.objects")


async def download_object(
    meta_store: MetaStore, name: str, path: object, *, resume: bool, progress: Progress | None
) -> ObjectInfo:
    """Write an object into a file; see `ObjectStore.get_file`."""
    target = check_path(path)
    check_bool(resume, "resume")
    if progress is not None:
        check_plain(progress, "progress", takes="bytes done and bytes in all", count=2)

    async def read() -> ObjectInfo:
        resolved = await find_object(meta_store, name)
        if resolved is None:
            error = object_not_found(meta_store.subjects.bucket, name)
            error.hint += "; the name comes first: box.get_file(name, path)"
            raise error
        await _Download(resolved, target, progress).run(resume=resume)
        return resolved.info

    return await until_unchanged(read)


def check_path(path: object) -> Path:
    """Return the path of a file.

    Raises:
        ConfigError: It is no path as text.
        IsADirectoryError: It can only be a folder, such as ".".
    """
    given = cast("str | os.PathLike[str]", path)
    shown: object = os.fspath(given) if isinstance(path, str | os.PathLike) else None
    if not isinstance(shown, str) or not shown or "\0" in shown:
        raise ConfigError(
            f"the path is {described(cast('object', path))}",
            hint="give a path as text or pathlib.Path",
        )
    target = Path(shown)
    if not target.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), shown)
    return target


class _Download:
    """A download of one object into a file.

    Args:
        resolved: The object.
        path: The file.
        progress: Called with the bytes in the part file and the bytes in all.
    """

    def __init__(self, resolved: ResolvedObject, path: Path, progress: Progress | None) -> None:
        self._resolved = resolved
        self._value = chunked_value(resolved)
        self._part = PartFile(path, resolved.info.nuid)
        self._progress = progress

    async def run(self, *, resume: bool) -> None:
        """Write the file."""
        part = self._part
        try:
            await _in_thread(part.open)
            if resume:
                while await _in_thread(part.take_over, self._resolved.info.size):
                    pass
            else:
                await _in_thread(part.restart)
            if part.done:
                _log.info(
                    "download of object %r of store %s resumes at byte %d of %d",
                    self._resolved.info.name,
                    self._resolved.info.bucket,
                    part.done,
                    self._resolved.info.size,
                )
            try:
                await self._write_rest()
            except ChunksDamagedError:
                if part.digest() is None:
                    raise
                # The part file was another program's, or damaged on the disk: start again.
                _log.warning("the part file of object %r is damaged", self._resolved.info.name)
                await _in_thread(part.restart)
                await self._write_rest()
        except BaseException as error:
            is_useless = isinstance(error, IntegrityError | ObjectExpiredError)
            if is_useless or not resume or not part.is_kept:
                part.discard()
            raise
        finally:
            part.close()

    async def _write_rest(self) -> None:
        resolved = self._resolved
        async with ObjectReader(
            resolved.meta_store, resolved.info.name, offset=self._part.done, resolved=resolved
        ) as reader:
            waiting: list[bytes] = []
            size = 0
            async for piece in reader:
                waiting.append(piece)
                size += len(piece)
                if size >= _WRITE_BYTES:
                    await self._append(waiting)
                    waiting, size = [], 0
            await self._append(waiting)
        if self._progress is not None and not self._part.done:
            self._progress(0, 0)  # A bar ends with an empty object as well.
        self._check()
        await _in_thread(self._part.finish)

    async def _append(self, pieces: list[bytes]) -> None:
        if not pieces:
            return
        await _in_thread(self._part.append, pieces)
        if self._progress is not None:
            self._progress(self._part.done, self._resolved.info.size)

    def _check(self) -> None:
        """Check a resumed download; the reader verifies one from the start."""
        info, value = self._resolved.info, self._value
        done, digest = self._part.done, self._part.digest()
        kind = "missing" if done < value.size else "surplus"
        if done == value.size:
            if digest is None or not value.digest or digest == value.digest:
                return
            kind = "digest"
        raise ChunksDamagedError(
            f"object {info.name!r} of store {info.bucket}: the file has {done} bytes "
            f"with SHA-256 {digest.hex() if digest else 'not taken'}, which are not the object's",
            subject=value.subject,
            kind=kind,
            hint="the object has to be stored again",
        )


async def _in_thread(work: Callable[[*_Ts], _T], *arguments: *_Ts) -> _T:
    """Run a blocking call in a thread, to its end even if cancelled: the file is closed then."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    finally:
        if not running.done():
            await asyncio.wait([running])
            running.exception()  # The cancel is raised instead.
