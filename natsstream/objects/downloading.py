"""An object into a file: whole or not at all, and a download that broke goes on.

Law: the target is replaced in one step by a file whose size and digest are the object's; until then
it stays what it was. A part file belongs to one version of the object: its name has the nuid. What
is in it is not trusted, its digest is taken again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from natsstream.errors import ChunksDamagedError, IntegrityError, ObjectExpiredError
from natsstream.objects.links import ResolvedObject
from natsstream.objects.part_file import PartFile
from natsstream.objects.reader import ObjectReader, chunked
from natsstream.streams.chunks.value import Progress

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
_WRITE_BYTES = 1 << 20


class Download:
    """One object on its way into a file.

    Args:
        found: The object.
        open_at: Returns a reader of that version from an offset on.
        path: The target.
        progress: Gets the bytes that are in the part file.
    """

    def __init__(
        self,
        found: ResolvedObject,
        open_at: Callable[[int], ObjectReader],
        path: Path,
        progress: Progress | None,
    ) -> None:
        self._info = found.info
        self._value = chunked(found)
        self._open_at = open_at
        self._part = PartFile(path, found.info.nuid)
        self._progress = progress

    async def run(self, *, resume: bool) -> None:
        """Write the file; see `ObjectStore.get_file`."""
        part = self._part
        try:
            await _in_thread(part.open)
            if resume:
                while await _in_thread(part.take_over, self._info.size):
                    pass
            else:
                await _in_thread(part.restart)
            try:
                await self._write_rest()
            except ChunksDamagedError:
                if part.digest() is None:
                    raise
                # What was there was another's, or damaged on the disk: from the beginning.
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
        async with self._open_at(self._part.done) as reader:
            waiting: list[bytes] = []
            size = 0
            async for piece in reader:
                waiting.append(piece)
                size += len(piece)
                if size >= _WRITE_BYTES:
                    await self._append(waiting)
                    waiting, size = [], 0
            await self._append(waiting)
        self._check()
        await _in_thread(self._part.finish)

    async def _append(self, pieces: list[bytes]) -> None:
        if not pieces:
            return
        await _in_thread(self._part.append, pieces)
        if self._progress is not None:
            self._progress(self._part.done, self._info.size)

    def _check(self) -> None:
        """Check what an earlier download has begun; what was read from the start is verified."""
        value, done, digest = self._value, self._part.done, self._part.digest()
        kind = "missing" if done < value.size else "surplus"
        if done == value.size:
            if digest is None or not value.digest or digest == value.digest:
                return
            kind = "digest"
        raise ChunksDamagedError(
            f"object {self._info.name!r} of store {self._info.bucket}: the file has {done} bytes "
            f"with SHA-256 {digest.hex() if digest else 'not taken'}, which are not the object's",
            subject=value.subject,
            kind=kind,
            hint="the object has to be stored again",
        )


async def _in_thread(work: Callable[[*_Ts], _T], *arguments: *_Ts) -> _T:
    """Run what may block in a thread, to its end also when cancelled: the file is closed then."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    finally:
        if not running.done():
            await asyncio.wait([running])
            running.exception()  # The cancel is what is told.
