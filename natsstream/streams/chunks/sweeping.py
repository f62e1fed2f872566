"""Finds values that nobody points to, and removes those whose writers have gone.

What lives here: the age of chunks, and their removal. What must not: who points to what; that is
told by the caller.

Law: **a value on its way is never touched.** Its writer is taken for gone when the stream has
stored no chunk of it for the time of silence, by the server's own clock, and it has not grown
between two looks. A writer that was silent for long counts its chunks before it points to them
(`putting.py`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import cast

from natsstream._wire import api as subjects
from natsstream.errors import ProtocolError
from natsstream.streams.api import Api
from natsstream.streams.chunks.putting import remove
from natsstream.streams.reading.ordered import OrderedConsumer
from natsstream.streams.reading.starts import OrderedSpec
from natsstream.units import parse_rfc3339

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
        candidates = [subject async for subject in held]
        # Asked afterwards: a put that ended meanwhile is pointed to by now.
        for subject in set(candidates).difference(await pointed()) if candidates else ():
            await self._look(subject)
        return SweepReport(
            values=self._values,
            chunks=self._chunks,
            size=self._size,
            young=self._young,
            is_dry=self._is_dry,
        )

    async def _look(self, subject: str) -> None:
        found = await self._scan(subject)
        count, now_ns = await self._count(subject)
        if not count:
            return  # Removed meanwhile, by its writer or another sweep.
        if count != found.chunks or now_ns - found.newest_ns < self._silence_ns:
            self._young += 1
            return
        if not self._is_dry:
            await remove(self._api, self._stream, subject)
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
        return found

    async def _count(self, subject: str) -> tuple[int, int]:
        """Return how many chunks stand there now, and what time it is on the server."""
        what = f"stream {self._stream}"
        answer = await self._api.read(
            subjects.stream_info(self._stream), {"subjects_filter": subject}, what=what
        )
        state = cast("dict[str, object]", answer.get("state") or {})
        counts = cast("dict[str, int]", state.get("subjects") or {})
        told = answer.get("ts")
        if not isinstance(told, str):
            raise ProtocolError(f"{what}: the answer does not tell the server's time")
        return counts.get(subject, 0), parse_rfc3339(told)
