"""Finds values that nobody points to, and removes those whose writers have gone.

Law: a value that is pointed to keeps its chunks. A writer is taken for gone when the stream had
stored no chunk of it for the time of silence, by the server's own clock, before it was asked what
is pointed to, and it has not grown since. Our writers store the last chunk when their source has
ended, and count all of them before they point to them (`putting.py`). So one that was silent for
longer loses its chunks and says so, or ends in time and keeps them.

What remains: the server removes without a condition. A writer that was silent for long, and stores
its last chunk, counts and is pointed to, all between a sweep's last count and its removal (one
round trip), loses its chunks; so does one that points to them later than the time of silence after
its last chunk.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass

from natsstream.api.names import is_literal
from natsstream.api.requests import Api
from natsstream.read.ordered import OrderedConsumer
from natsstream.read.start_position import OrderedSpec
from natsstream.streams.chunks.counting import ChunkCounts, Total
from natsstream.streams.chunks.putting import remove

SILENCE_S = 3600.0
"""The default time of silence: an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """What a sweep has found.

    Attributes:
        values: Values that nobody points to and whose writers have gone.
        chunks: Their chunks.
        size: Bytes of these.
        young: Values that nobody points to, and that are too young to tell: puts on their way,
            perhaps.
        is_dry: True when nothing was removed.
    """

    values: int = 0
    chunks: int = 0
    size: int = 0
    young: int = 0
    is_dry: bool = False


@dataclass(slots=True)
class _Found:
    """What stands under one subject."""

    chunks: int = 0
    size: int = 0
    newest_ns: int = 0
    newest_seq: int = 0


class Sweep:
    """One sweep over the subjects of a stream.

    Args:
        api: The connection.
        stream: The stream's name.
        silence_ns: How long a writer must have been silent.
        is_dry: Removes nothing.
    """

    def __init__(self, api: Api, stream: str, *, silence_ns: int, is_dry: bool) -> None:
        self._api = api
        self._stream = stream
        self._silence_ns = silence_ns
        self._is_dry = is_dry
        self._values = self._chunks = self._size = self._young = 0

    async def run(
        self,
        held: AsyncIterator[str],
        pointed: Callable[[], Awaitable[Collection[str]]],
    ) -> SweepReport:
        """Look at all subjects of chunks; see `Chunks.sweep`."""
        candidates = [subject async for subject in held if is_literal(subject)]
        if candidates:
            asked_ns = (await self._total(candidates[0])).now_ns
            # Asked afterwards: a put that ended meanwhile is pointed to by now.
            for subject in set(candidates).difference(await pointed()):
                await self._look(subject, asked_ns)
        return SweepReport(
            values=self._values,
            chunks=self._chunks,
            size=self._size,
            young=self._young,
            is_dry=self._is_dry,
        )

    async def _look(self, subject: str, asked_ns: int) -> None:
        found = await self._scan(subject)
        count = (await self._total(subject)).chunks
        if not count:
            return  # Removed meanwhile, by its writer or another sweep.
        if count != found.chunks or asked_ns - found.newest_ns < self._silence_ns:
            self._young += 1
            return
        if not self._is_dry:
            # What comes to stand there meanwhile stays, and is seen by the next sweep.
            await remove(self._api, self._stream, subject, before=found.newest_seq + 1)
        self._values += 1
        self._chunks += found.chunks
        self._size += found.size

    async def _scan(self, subject: str) -> _Found:
        spec = OrderedSpec(stream=self._stream, filters=(subject,), headers_only=True)
        found = _Found()
        async with OrderedConsumer(self._api, spec) as heads:
            async for message in heads.initial():
                found.chunks += 1
                found.size += message.stored_bytes
                found.newest_ns = max(found.newest_ns, message.time_ns)
                found.newest_seq = message.sequence
        return found

    async def _total(self, subject: str) -> Total:
        return await ChunkCounts(self._api, self._stream, subject).total()
