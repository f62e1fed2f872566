"""Finds the chunks that hold a part of a value, and proves which ones they are.

Chunks of one size are found by arithmetic, once it is proved that all others are full: no chunk
exceeds the writer's size, the number of chunks is the least that can hold the value, and the last
one has the rest. Between messages of other writers the sequence is searched by counting. Chunks of
other sizes are found by their headers, from the first one on.

Law: a position is proved, which needs all chunks in the stream, or ChunksDamagedError is raised. A
replica behind or ahead of the leader cannot break the proof: a replica's count is used only if it
cannot be too high; all other counts come from the leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.errors import ChunksDamagedError
from natsstream.read.leader_reads import LeaderReads
from natsstream.read.missing import MissingSequences
from natsstream.read.ordered import OrderedConsumer
from natsstream.read.start_position import OrderedSpec
from natsstream.streams.chunks.counting import ChunkCounts
from natsstream.streams.chunks.positions import SequenceSearch
from natsstream.streams.chunks.value import ChunkedValue

_T = TypeVar("_T")
# A replica may lag behind the leader, and one that was just elected behind itself.
_WAITS_S = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
# If even the leader misses chunks, so many waits are enough.
_MISSING_WAITS_MAX = 3
# Sequences have 64 bits: the steps back double, and then every second guess halves what is left.
_GUESSES_MAX = 3 * 64


@dataclass(frozen=True, slots=True)
class ChunkPosition:
    """The chunks that hold a part.

    Attributes:
        index: The number of the first of them, from 0.
        first_seq: A sequence at or before it, behind the chunk before.
        last_seq: A sequence at or behind the last of them.
        skip: Bytes of the first one that come before the part.
        is_even: True if all chunks but the last are known to have the value's `chunk_size`.
    """

    index: int
    first_seq: int
    last_seq: int
    skip: int
    is_even: bool


class Locator:
    """Finds and proves the positions of one value's chunks.

    Args:
        api: The connection.
        stream: The stream's name.
        value: The value.
    """

    def __init__(self, api: Api, stream: str, value: ChunkedValue) -> None:
        self._api = api
        self._stream = stream
        self._value = value
        self._counts = ChunkCounts(api, stream, value.subject)
        filters = (value.subject,)
        self._leader = LeaderReads(
            api, stream, filters, missing=MissingSequences(), created_ns=None
        )

    async def prove(self, sequence: int, count: int) -> None:
        """Check that the stream holds `count` of the value's chunks from a sequence on.

        Raises:
            ChunksDamagedError: There are more or fewer.

        Cost: one round trip.
        """
        if sequence < 1:
            raise self._damaged(0)

        async def check() -> None:
            chunks = await self._counts.since(sequence)
            if chunks != count:
                raise self._damaged((chunks or 0) - count)

        await self._retry(check)

    async def find(self, start: int, stop: int) -> ChunkPosition:
        """Return the chunks that hold the bytes from start to stop (not included).

        Raises:
            ChunksDamagedError: Chunks are missing, or there are too many.

        Cost: six round trips for any size of value, if all chunks but the last have one size and no
        other messages stand between them; else some more for each end of the part, by the logarithm
        of the messages between. With other sizes a round trip, and a consumer that reads the
        headers of all chunks up to the part's end.
        """
        return await self._retry(lambda: self._find(start, stop))

    async def _find(self, start: int, stop: int) -> ChunkPosition:
        if self._value.last_bytes is not None:
            newest = await self._newest()
            if newest.stored_bytes == self._value.last_bytes:
                position = await self._by_arithmetic(start, stop, newest.sequence)
                if position is not None:
                    return position
        return await self._by_headers(start, stop)

    async def _newest(self) -> Message:
        """Return the headers of the leader's last chunk."""
        newest = await self._counts.newest()
        if newest is None:
            raise self._damaged(-self._value.chunks)
        if await self._leader.next_held(newest.sequence + 1) is not None:
            raise self._damaged(-1)  # It came from a replica that lags behind.
        return newest

    async def _by_arithmetic(self, start: int, stop: int, newest_seq: int) -> ChunkPosition | None:
        value = self._value
        index, last = start // value.chunk_size, (stop - 1) // value.chunk_size
        wanted, skip = value.chunks - index, start - index * value.chunk_size
        # There cannot be more, so a replica can only count too few.
        row_seq = newest_seq - wanted + 1
        is_row = row_seq >= 1 and await self._counts.since(row_seq) == wanted
        # The newest chunk has the last number only if none is gone: checked afterwards.
        leader = await self._check_total()
        if is_row:
            return ChunkPosition(index, row_seq, row_seq + last - index, skip, is_even=True)
        first_seq = await self._search(wanted, newest_seq, leader)
        after_seq: int | None = newest_seq + 1
        if last + 1 < value.chunks:
            after_seq = await self._search(value.chunks - last - 1, newest_seq, leader)
        if await self._check_total() != leader or first_seq is None or after_seq is None:
            return None
        return ChunkPosition(index, first_seq, after_seq - 1, skip, is_even=True)

    async def _search(self, wanted: int, newest_seq: int, leader: str) -> int | None:
        """Return a sequence with `wanted` chunks from it on; None if it cannot be found."""
        search = SequenceSearch(wanted, newest_seq)
        for _ in range(_GUESSES_MAX):
            count = await self._counts.since(search.guess, node=leader)
            if count == wanted:
                return search.guess
            if count is None:
                return None
            if not search.learn(count):
                break
        raise self._damaged(-1)

    async def _by_headers(self, start: int, stop: int) -> ChunkPosition:
        """Add up the sizes of all chunks up to the part's end."""
        value = self._value
        spec = OrderedSpec(stream=self._stream, filters=(value.subject,), headers_only=True)
        begin: tuple[int, int, int] | None = None
        passed = count = 0
        async with OrderedConsumer(self._api, spec) as heads:
            async for message in heads.initial():
                before, passed = passed, passed + message.stored_bytes
                if begin is None and passed > start:
                    begin = count, message.sequence, start - before
                count += 1
                if begin is not None and passed >= stop:
                    index, first_seq, skip = begin
                    await self.prove(message.sequence + 1, value.chunks - count)
                    return ChunkPosition(index, first_seq, message.sequence, skip, is_even=False)
        raise self._damaged(count - value.chunks or -1)

    async def _check_total(self) -> str:
        """Check that the leader holds all chunks and no others; return its name."""
        total = await self._counts.total()
        if total.chunks != self._value.chunks:
            raise self._damaged(total.chunks - self._value.chunks)
        return total.leader

    async def _retry(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Run a request, again if a lagging replica may have answered it."""
        for turn, wait_s in enumerate(_WAITS_S):
            try:
                return await request()
            except ChunksDamagedError:
                total = await self._counts.total()
                is_missing = total.chunks != self._value.chunks
                if total.replicas == 1 or (is_missing and turn >= _MISSING_WAITS_MAX):
                    raise
                await asyncio.sleep(wait_s)
        return await request()

    def _damaged(self, surplus: int) -> ChunksDamagedError:
        value = self._value
        which = "there are others too" if surplus > 0 else "some of them are missing"
        return ChunksDamagedError(
            f"the {value.chunks} chunks under {value.subject} are not complete: {which}",
            subject=value.subject,
            kind="surplus" if surplus > 0 else "missing",
            detail="it is not proved which bytes each chunk holds",
            hint="the value was removed meanwhile, or must be stored again",
        )
