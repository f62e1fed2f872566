"""Sweeps a stream: removes the chunks of unused values whose writers are dead.

Law: a used value keeps its chunks. A writer counts as dead if the stream stored no chunk of it for
`older_than`, by the server's clock, before the used values were read, and none since. Our writers
store the last chunk when their source ends, and count all chunks before the value is used
(`putting.py`). So a writer that was silent for longer loses its chunks and raises, or ends in time
and keeps them.

One gap is left, because a purge has no condition. A silent writer loses its chunks if it stores
its last chunk, counts all and uses the value between a sweep's last count and its purge, in one
round trip. So does a writer that uses the value later than `older_than` after its last chunk.
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
"""Seconds without a new chunk after which a writer counts as dead, by default: an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """The result of a sweep.

    Attributes:
        values: Unused values whose writers are dead.
        chunks: Their chunks.
        size: Bytes of these chunks.
        young: Unused values that are too young to remove, such as puts in progress.
        is_dry: True if nothing was removed.
    """

    values: int = 0
    chunks: int = 0
    size: int = 0
    young: int = 0
    is_dry: bool = False


@dataclass(slots=True)
class _Scan:
    """The chunks under one subject."""

    chunks: int = 0
    size: int = 0
    newest_ns: int = 0
    newest_seq: int = 0


class Sweep:
    """One sweep over the subjects of a stream.

    Args:
        api: The connection.
        stream: The stream's name.
        silence_ns: Time without a new chunk after which a writer counts as dead.
        is_dry: True to remove nothing.
    """

    def __init__(self, api: Api, stream: str, *, silence_ns: int, is_dry: bool) -> None:
        self._api = api
        self._stream = stream
        self._silence_ns = silence_ns
        self._is_dry = is_dry
        self._values = self._chunks = self._size = self._young = 0

    async def run(
        self,
        stored: AsyncIterator[str],
        used: Callable[[], Awaitable[Collection[str]]],
    ) -> SweepReport:
        """Sweep all subjects of chunks; see `Chunks.sweep`."""
        candidates = [subject async for subject in stored if is_literal(subject)]
        if candidates:
            asked_ns = (await self._total(candidates[0])).now_ns
            # Read afterwards: the value of a put that ended meanwhile is used by now.
            for subject in set(candidates).difference(await used()):
                await self._sweep(subject, asked_ns)
        return SweepReport(
            values=self._values,
            chunks=self._chunks,
            size=self._size,
            young=self._young,
            is_dry=self._is_dry,
        )

    async def _sweep(self, subject: str, asked_ns: int) -> None:
        scan = await self._scan(subject)
        count = (await self._total(subject)).chunks
        if not count:
            return  # Removed meanwhile, by its writer or another sweep.
        if count != scan.chunks or asked_ns - scan.newest_ns < self._silence_ns:
            self._young += 1
            return
        if not self._is_dry:
            # A chunk that is stored meanwhile stays for the next sweep.
            await remove(self._api, self._stream, subject, last_seq=scan.newest_seq)
        self._values += 1
        self._chunks += scan.chunks
        self._size += scan.size

    async def _scan(self, subject: str) -> _Scan:
        spec = OrderedSpec(stream=self._stream, filters=(subject,), headers_only=True)
        scan = _Scan()
        async with OrderedConsumer(self._api, spec) as heads:
            async for message in heads.initial():
                scan.chunks += 1
                scan.size += message.stored_bytes
                scan.newest_ns = max(scan.newest_ns, message.time_ns)
                scan.newest_seq = message.sequence
        return scan

    async def _total(self, subject: str) -> Total:
        return await ChunkCounts(self._api, self._stream, subject).total()
