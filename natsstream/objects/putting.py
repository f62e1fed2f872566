"""Puts one object: stores its chunks, then its meta, then removes the old chunks.

Law: the old object stays readable until the new one is complete. Chunks are removed only when it is
certain that no meta points to them: if the fate of a meta is not known they stay, for a sweep. Each
put, and each retry, has a nuid of its own, so late messages of a failed attempt cannot damage the
next one.
Source: ADR-20; nats.go jetstream/object.go Put.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from natsstream.arguments import check_seconds
from natsstream.errors import (
    ChunksDamagedError,
    ConnectionLostError,
    NatsStreamError,
    NoRespondersError,
    ServerError,
    StreamFullError,
    TransportError,
    WrongLastSequenceError,
)
from natsstream.objects.info import ObjectInfo, ObjectOptions, new_nuid, write_digest
from natsstream.objects.kind import STORE
from natsstream.objects.meta_store import MetaStore, StoredMeta
from natsstream.streams.chunks.putting import ACK_TIMEOUT_S
from natsstream.streams.chunks.sources import Source, is_repeatable
from natsstream.streams.chunks.value import Progress

_log = logging.getLogger("natsstream.objects")

RETRY_FOR_S = 30.0
"""Seconds in which a put is retried by default, if its source can be read again."""
_WAIT_S = 0.25
# A leader that stops takes acks with it; a put that can be retried need not wait long for them.
_ACK_TIMEOUT_S = 4.0
_CLEAN_UP_S = 5.0
# A meta that was sent is stored by then, or was lost.
_READS_MAX = 4


class ObjectPut:
    """The put of one object, for `ObjectStore.put`.

    Args:
        meta_store: The metas of the store.
        info: The object's info, without the fields of its chunks.
        chunk_size: Bytes of a chunk; None is the default.
        retry_for: Seconds in which retryable errors are retried.
        progress: Called with the bytes stored and the bytes in all.
    """

    def __init__(
        self,
        meta_store: MetaStore,
        info: ObjectInfo,
        *,
        chunk_size: int | None,
        retry_for: float,
        progress: Progress | None,
    ) -> None:
        self._meta_store = meta_store
        self._endings = meta_store.endings
        self._chunk_size = chunk_size
        self._info = info
        self._retry_for = check_seconds(retry_for, "retry_for", may_be_zero=True)
        self._progress = progress
        self._deadline = 0.0
        # The meta that the new one replaces.
        self._replaced = StoredMeta()
        # True if a meta was sent that may still arrive.
        self._may_arrive = False

    async def run(self, source: Source) -> ObjectInfo:
        """Store the chunks and the meta, then remove the old chunks; see `ObjectStore.put`."""
        bucket = self._info.bucket
        with STORE.translate_errors(bucket):
            try:
                return await self._run(source)
            except StreamFullError as error:
                error.name_call(f"object {self._info.name!r} of store {bucket}")
                error.hint = (
                    f"js.objects.update({bucket!r}, max_bytes=...), or delete objects: what is "
                    "stored under this name has not changed"
                )
                raise

    async def _run(self, source: Source) -> ObjectInfo:
        info = await self._put_chunks(source)
        try:
            stored = await self._put_meta(info)
        except BaseException:
            await self._endings.run(_limited(self._clean_up(info)))
            raise
        try:
            await self._remove_old_chunks()
        except BaseException:  # Cancelled: the old chunks are removed all the same.
            await self._endings.run(_limited(self._remove_old_chunks()))
            raise
        return stored

    async def _put_chunks(self, source: Source) -> ObjectInfo:
        retry_for = self._retry_for if is_repeatable(source) else 0.0
        while True:
            await self._wait_for_server(retry_for)
            nuid = new_nuid()
            subject = self._meta_store.subjects.chunk_subject(nuid)
            try:
                value = await self._meta_store.stream.chunks.put(
                    subject,
                    source,
                    chunk_size=self._chunk_size,
                    progress=self._progress,
                    ack_timeout=_ACK_TIMEOUT_S if retry_for else ACK_TIMEOUT_S,
                )
            except (TransportError, ServerError) as error:
                what = f"object {self._info.name!r} of store {self._info.bucket}"
                said = error.message
                if isinstance(error, TransportError):  # The chunks' subject has a nuid only.
                    error.name_call(what)
                await self._wait(error, retry_for)
                _log.warning("put of %s begins again: %s", what, said)
                continue
            return replace(
                self._info,
                nuid=nuid,
                size=value.size,
                chunks=value.chunks,
                digest=write_digest(value.digest),
                options=ObjectOptions(max_chunk_size=value.chunk_size),
            )

    async def _put_meta(self, info: ObjectInfo) -> ObjectInfo:
        """Store the meta; it names the revision that it replaces, so it can be repeated."""
        is_sent = False

        def decide(stored: StoredMeta) -> ObjectInfo:
            nonlocal is_sent
            if stored.live is not None and stored.live.nuid == info.nuid:
                raise _StoredError(stored.live)  # An attempt whose ack was lost.
            self._replaced = stored
            is_sent = True
            return info

        self._deadline = 0.0
        while True:
            try:
                if self._deadline:  # It has waited: a sweep may have removed the chunks.
                    await self._check_chunks(info)
                return (await self._meta_store.change(info.name, decide))[1]
            except _StoredError as error:
                return error.info
            except (NoRespondersError, ServerError) as error:
                await self._wait(error, self._retry_for)
            except TransportError as error:
                self._may_arrive = True
                await self._wait(error, self._retry_for)
            except asyncio.CancelledError:
                self._may_arrive = self._may_arrive or is_sent
                raise

    async def _check_chunks(self, info: ObjectInfo) -> None:
        """Check that the chunks still exist, before a meta points to them."""
        subject = self._meta_store.subjects.chunk_subject(info.nuid)
        counts = [each async for each in self._meta_store.stream.subject_counts(subject)]
        count = sum([each.messages for each in counts])
        if count < info.chunks:
            raise ChunksDamagedError(
                f"object {info.name!r} of store {info.bucket}: its chunks were removed before its "
                "meta was stored",
                subject=subject,
                kind="missing",
                detail=f"{info.chunks} were stored, {count} are left",
                hint="a sweep or the store's ttl was faster than the put; put it again",
            )

    async def _wait_for_server(self, retry_for: float) -> None:
        """Wait for a connection: without one no byte of the source is read.

        Raises:
            ConnectionLostError: There was none within `retry_for` and one `request_timeout`.
        """
        now = asyncio.get_running_loop().time
        began = now()
        while not self._meta_store.is_connected:
            self._deadline = self._deadline or began + retry_for
            try:
                await self._meta_store.stream.info()
            except ConnectionLostError as error:
                if now() < self._deadline:
                    continue
                raise ConnectionLostError(
                    f"object {self._info.name!r} of store {self._info.bucket}: no reconnect within "
                    f"{now() - began:.3g} s; nothing is stored",
                    detail=error.detail,
                    hint="check the servers, or raise retry_for or request_timeout",
                    retryable=True,
                ) from error

    async def _wait(self, error: NatsStreamError, retry_for: float) -> None:
        """Wait a moment before a retry, or raise if there is none."""
        now = asyncio.get_running_loop().time()
        self._deadline = self._deadline or now + retry_for
        # Writers that are faster each time stop some time.
        is_retryable = error.retryable or isinstance(error, WrongLastSequenceError)
        if not is_retryable or now + _WAIT_S >= self._deadline:
            raise error
        await asyncio.sleep(_WAIT_S)
        # This waits for a server, for as long as a request may take.
        with suppress(TransportError):
            await self._meta_store.stream.info()

    async def _clean_up(self, info: ObjectInfo) -> None:
        """Remove the chunks that no meta points to, after a meta failed."""
        stored = await self._meta_store.read(info.name)
        for _ in range(_READS_MAX if self._may_arrive else 0):
            if stored.revision != self._replaced.revision:
                break
            await asyncio.sleep(_WAIT_S)
            stored = await self._meta_store.read(info.name)
        if stored.live is not None and stored.live.nuid == info.nuid:
            await self._meta_store.remove_chunks(self._replaced)
        elif not self._may_arrive or stored.revision != self._replaced.revision:
            # The revision that it replaces is gone, so the server would refuse the meta.
            subject = self._meta_store.subjects.chunk_subject(info.nuid)
            await self._meta_store.stream.chunks.remove(subject)

    async def _remove_old_chunks(self) -> None:
        """Remove the old object's chunks; a sweep finds those that cannot be removed now."""
        with suppress(TransportError, ServerError):
            await self._meta_store.remove_chunks(self._replaced)


async def _limited(clean_up: Coroutine[Any, Any, None]) -> None:
    """Clean up for a limited time; a sweep finds what is left."""
    with suppress(NatsStreamError, TimeoutError):
        async with asyncio.timeout(_CLEAN_UP_S):
            await clean_up


class _StoredError(Exception):
    """The meta is stored already."""

    def __init__(self, info: ObjectInfo) -> None:
        super().__init__(info.name)
        self.info = info
