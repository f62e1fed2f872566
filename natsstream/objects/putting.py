"""Stores one object: its chunks, then what the store says of it, then the old chunks are removed.

Law: the old object stays readable until the new one is whole. Chunks are removed only when it is
certain that no meta points to them: where the fate of a meta is not known they stay, for the sweep.
Each put has a nuid of its own, also the second attempt of one put, so what comes late of a first
attempt can not spoil the second.
Source: ADR-20; nats.go jetstream/object.go Put.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from natsstream.errors import (
    ChunksDamagedError,
    NatsStreamError,
    NoRespondersError,
    ServerError,
    TransportError,
    WrongLastSequenceError,
)
from natsstream.objects.info import ObjectInfo, ObjectOptions, write_digest
from natsstream.objects.meta_store import MetaStore, StoredMeta
from natsstream.objects.names import new_nuid
from natsstream.streams.chunks.putting import ACK_TIMEOUT_S
from natsstream.streams.chunks.sources import Source, is_repeatable
from natsstream.streams.chunks.value import Progress
from natsstream.streams.endings import endings_of

RETRY_FOR_S = 30.0
"""How long a put of what can be read again is tried again, by default."""
_WAIT_S = 0.25
# A leader that goes takes acks with it: who can begin again need not wait for them for long.
_ACK_TIMEOUT_S = 4.0
_CLEAN_UP_S = 5.0
# A meta that was sent is stored by then, or was lost.
_LOOKS_MAX = 4


class ObjectPut:
    """One object on its way into a store.

    Args:
        metas: The store.
        info: What is to be said of it; its bytes are not known yet.
        chunk_size: Bytes of a chunk; None is what the server takes.
        retry_for: Seconds in which what fails for the moment is tried again.
        progress: Gets the bytes that are stored.
    """

    def __init__(
        self,
        metas: MetaStore,
        info: ObjectInfo,
        *,
        chunk_size: int | None,
        retry_for: float,
        progress: Progress | None,
    ) -> None:
        self._metas = metas
        self._endings = endings_of(metas.stream)
        self._chunk_size = chunk_size
        self._info = info
        self._retry_for = retry_for
        self._progress = progress
        self._deadline = 0.0
        # What the meta stood on that was, perhaps, stored.
        self._replaced = StoredMeta()
        # Whether a meta is on its way of which nobody knows whether it arrives.
        self._may_come = False

    async def run(self, source: Source) -> ObjectInfo:
        """Store the object; see `ObjectStore.put`."""
        info = await self._put_chunks(source)
        try:
            stored = await self._point_to(info)
        except BaseException:
            await self._endings.run(_in_time(self._give_up(info)))
            raise
        try:
            await self._release()
        except BaseException:  # Cancelled: the old chunks go all the same.
            await self._endings.run(_in_time(self._release()))
            raise
        return stored

    async def _put_chunks(self, source: Source) -> ObjectInfo:
        retry_for = self._retry_for if is_repeatable(source) else 0.0
        while True:
            nuid = new_nuid()
            subject = self._metas.place.chunk_subject(nuid)
            try:
                value = await self._metas.stream.chunks.put(
                    subject,
                    source,
                    chunk_size=self._chunk_size,
                    progress=self._progress,
                    ack_timeout=_ACK_TIMEOUT_S if retry_for else ACK_TIMEOUT_S,
                )
            except (TransportError, ServerError) as error:
                await self._wait(error, retry_for)
                continue
            return replace(
                self._info,
                nuid=nuid,
                size=value.size,
                chunks=value.chunks,
                digest=write_digest(value.digest),
                options=ObjectOptions(max_chunk_size=value.chunk_size),
            )

    async def _point_to(self, info: ObjectInfo) -> ObjectInfo:
        """Store the meta, which may be asked for again: it stands on what it replaces."""

        is_sent = False

        def decide(held: StoredMeta) -> ObjectInfo:
            nonlocal is_sent
            if held.live is not None and held.live.nuid == info.nuid:
                raise _StoredError(held.live)  # An attempt whose ack was lost.
            self._replaced = held
            is_sent = True
            return info

        self._deadline = 0.0
        while True:
            try:
                if self._deadline:  # It has waited for a server: a sweep may have been faster.
                    await self._check_chunks(info)
                return (await self._metas.change(info.name, decide))[1]
            except _StoredError as found:
                return found.info
            except (NoRespondersError, ServerError) as error:
                await self._wait(error, self._retry_for)
            except TransportError as error:
                self._may_come = True
                await self._wait(error, self._retry_for)
            except asyncio.CancelledError:
                self._may_come = self._may_come or is_sent
                raise

    async def _check_chunks(self, info: ObjectInfo) -> None:
        """Check that nothing points to chunks that have gone."""
        subject = self._metas.place.chunk_subject(info.nuid)
        counts = [each async for each in self._metas.stream.subject_counts(subject)]
        held = sum([each.messages for each in counts])
        if held < info.chunks:
            raise ChunksDamagedError(
                f"object {info.name!r} of store {info.bucket}: its chunks were removed before the "
                "store could point to them",
                subject=subject,
                kind="missing",
                detail=f"{info.chunks} were stored, {held} are there",
                hint="a sweep or the store's ttl was faster than the put; put it again",
            )

    async def _wait(self, error: NatsStreamError, retry_for: float) -> None:
        """Wait a moment before another attempt, or raise when there is to be none."""
        now = asyncio.get_running_loop().time()
        self._deadline = self._deadline or now + retry_for
        # Somebody who is faster each time ends some time.
        is_passing = error.retryable or isinstance(error, WrongLastSequenceError)
        if not is_passing or now + _WAIT_S >= self._deadline:
            raise error
        await asyncio.sleep(_WAIT_S)
        # It waits for a server, for as long as a request may take.
        with suppress(TransportError):
            await self._metas.stream.info()

    async def _give_up(self, info: ObjectInfo) -> None:
        """Clean up after a meta that failed; nothing is removed that may be pointed to."""
        held = await self._metas.read(info.name)
        for _ in range(_LOOKS_MAX if self._may_come else 0):
            if held.revision != self._replaced.revision:
                break
            await asyncio.sleep(_WAIT_S)
            held = await self._metas.read(info.name)
        if held.live is not None and held.live.nuid == info.nuid:
            await self._metas.release(self._replaced)
        elif not self._may_come or held.revision != self._replaced.revision:
            # What it stands on is not there any more, so it would be refused.
            subject = self._metas.place.chunk_subject(info.nuid)
            await self._metas.stream.chunks.remove(subject)

    async def _release(self) -> None:
        """Remove the old object's chunks; what can not be removed now is for the sweep."""
        with suppress(TransportError, ServerError):
            await self._metas.release(self._replaced)


async def _in_time(clean_up: Coroutine[Any, Any, None]) -> None:
    """Clean up; what can not be removed now is for the sweep."""
    with suppress(NatsStreamError, TimeoutError):
        async with asyncio.timeout(_CLEAN_UP_S):
            await clean_up


class _StoredError(Exception):
    """The meta is stored already."""

    def __init__(self, info: ObjectInfo) -> None:
        super().__init__(info.name)
        self.info = info
