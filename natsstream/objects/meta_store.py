"""Reads and writes the metas of a store: one message an object, replaced as a whole.

Law: a meta is replaced only by a writer that has seen it: every write names the revision that it
replaces, and a write on an older revision is refused and starts again. So no writer removes chunks
that a meta still points to, and no chunks are forgotten.

A rename writes three times, because a process may be killed between two writes, or others may
write: the old meta gets the new name in a header (`renamed_to`), the new meta gets the old name
(`renamed_from`), then the old meta is removed. A writer that finds a marked meta finishes the
rename first. If the new meta points to the same chunks, the old meta is removed. If not, the new
name gets another revision, so the server refuses the rename in progress. So two names never share
chunks for good. Until then other clients see both names, and read the same bytes under both.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeVar

from natsstream.api.message import Message
from natsstream.errors import (
    ConnectionClosedError,
    ConnectionLostError,
    ObjectMetaError,
    ObjectNotFoundError,
    RequestTimeoutError,
    TransportError,
    WrongLastSequenceError,
    WrongStreamError,
)
from natsstream.objects.info import ObjectInfo, new_nuid
from natsstream.objects.kind import STORE
from natsstream.objects.store_subjects import StoreSubjects, domain_of
from natsstream.publish.outgoing import Expect
from natsstream.streams.endings import Endings
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream

RENAMED_TO = "Natsstream-Renamed-To"
"""Header of a meta that is being renamed: the new name, in base64 for URLs."""
RENAMED_FROM = "Natsstream-Renamed-From"
"""Header of a meta that was renamed: the old name, in base64 for URLs."""

# Each attempt that fails means that another writer's has not.
_ATTEMPTS_MAX = 16
# A replicated stream refuses a write while another one to its subject is in flight.
_PAUSE_S = 0.02
# During a walk a renamed object may be missed under both names.
_WALKS_MAX = 3

R = TypeVar("R")


class StoredMeta(NamedTuple):
    """The meta that a store has under a name.

    Attributes:
        revision: The sequence of the message, which a write replaces; 0 if there is none.
        info: The object's info; None if there is none, or none that can be read.
        renamed_to: The new name of a rename in progress, or empty.
        renamed_from: The old name of a rename, or empty.
        error: Why the meta cannot be read; None if it can, or if there is none.
    """

    revision: int = 0
    info: ObjectInfo | None = None
    renamed_to: str = ""
    renamed_from: str = ""
    error: ObjectMetaError | None = None

    @property
    def live(self) -> ObjectInfo | None:
        """The info of an object that exists; None for a deleted one."""
        return None if self.info is None or self.info.deleted else self.info

    def readable(self) -> StoredMeta:
        """Return this meta, or raise the ObjectMetaError of one that cannot be read."""
        if self.error is not None:
            raise self.error
        return self


class MetaStore:
    """Reads and writes the metas of one store.

    Every call that asks the server raises `TransportError` when no answer comes in time.

    Attributes:
        stream: The store's stream.
        subjects: The store's subjects.
        endings: Carries out clean-up, also when its caller is cancelled meanwhile.
    """

    def __init__(
        self, js: JetStreamContext, stream: Stream, subjects: StoreSubjects, endings: Endings
    ) -> None:
        self._js = js
        self.stream: Stream = stream
        self.subjects: StoreSubjects = subjects
        self.endings: Endings = endings

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""
        return self._js.is_connected

    async def of_store(self, bucket: str) -> MetaStore:
        """Return the metas of a store, this one or another.

        Raises:
            StreamNotFoundError: The other store does not exist.

        Cost: one round trip for another store.
        """
        subjects = StoreSubjects(bucket)
        if subjects == self.subjects:
            return self
        stream = await self._js.streams.get(subjects.stream)
        return MetaStore(self._js, stream, subjects, self.endings)

    async def read(self, name: str, *, finish_rename: bool = False) -> StoredMeta:
        """Return the meta of an object from the stream's leader.

        The old meta of a killed rename reads as none.

        Args:
            name: A legal name.
            finish_rename: Also finish or refuse a rename in progress; writers must.

        Raises:
            NatsStreamError: A rename could not be finished; see `write`.

        Cost: one round trip; two to five more after an unfinished rename.
        """
        stored = await self._read_stored(name)
        if not stored.renamed_to or stored.live is None:
            return stored
        if finish_rename:
            return await self._finish_rename(name, stored)
        target = await self._read_stored(stored.renamed_to)
        return StoredMeta(revision=stored.revision) if _points_to(target, stored.live) else stored

    async def _read_stored(self, name: str) -> StoredMeta:
        """Return the meta as it is stored."""
        try:
            with STORE.translate_errors(self.subjects.bucket):
                message = await self.stream.get(last_by_subject=self.subjects.meta_subject(name))
        except (ConnectionLostError, ConnectionClosedError, RequestTimeoutError) as error:
            # The subject has the name in base64 only.
            error.name_call(f"object {name!r} of store {self.subjects.bucket}")
            raise
        return StoredMeta() if message is None else parse_meta(message, self.subjects, name)

    async def _finish_rename(self, name: str, stored: StoredMeta) -> StoredMeta:
        """Return the meta as it is stored once no rename of it can continue."""
        for attempt in range(_ATTEMPTS_MAX):
            if not stored.renamed_to or stored.live is None:
                return stored
            target = await self._read_stored(stored.renamed_to)
            if _points_to(target, stored.live):
                await self.remove(name, stored.revision)
                return StoredMeta()
            if target.error is not None or target.live is not None:
                break  # The rename expects another revision there, so it is refused.
            if attempt:  # At first it may be in progress, and done in a moment.
                marker = new_marker(stored.renamed_to, self.subjects)
                with suppress(WrongLastSequenceError):
                    await self.write(marker, revision=target.revision)
                    break
            await asyncio.sleep(_PAUSE_S)
            stored = await self._read_stored(name)
        return stored._replace(renamed_to="")

    async def remove(self, name: str, revision: int) -> int:
        """Remove a meta, unless there is a newer one; return how many were removed.

        Raises:
            TransportError: No answer.

        Cost: one round trip.
        """
        subject = self.subjects.meta_subject(name)
        return await self.stream.purge(subject=subject, last_seq=revision)

    async def write(
        self,
        info: ObjectInfo,
        *,
        revision: int | None,
        renamed_to: str = "",
        renamed_from: str = "",
    ) -> ObjectInfo:
        """Replace a meta.

        Args:
            info: The object's info; its time and revision are not stored.
            revision: The revision to replace, 0 for none; None replaces any.
            renamed_to: The new name of a rename.
            renamed_from: The old name of a rename.

        Returns:
            The info with its revision and without a time, because acks have none.

        Raises:
            WrongLastSequenceError: Another writer has written this meta.
            WrongStreamError: Another stream than this store's has stored it.
            TransportError: No ack, and it is not stored; it may still arrive.
            NatsStreamError: As for `JetStream.publish`.

        Cost: one round trip; one more after a lost ack.
        """
        names = {RENAMED_TO: renamed_to, RENAMED_FROM: renamed_from}
        headers = {key: _encoded(name) for key, name in names.items() if name}
        subject, data = self.subjects.meta_subject(info.name), info.to_json()
        try:
            ack = await self._js.publish(
                subject,
                data,
                headers=headers or None,
                rollup="subject",
                expect=None if revision is None else Expect(last_subject_seq=revision),
            )
        except TransportError:
            # The leader knows whether it was stored.
            sequence = await self._find_write(subject, data, revision)
            if not sequence:
                raise
            return _stored(info, sequence, renamed_from)
        home = self.stream.cached.domain or domain_of(self._js.api_prefix)
        if ack.stream != self.subjects.stream or (ack.domain and home and ack.domain != home):
            raise WrongStreamError(
                f"object {info.name!r} of store {self.subjects.bucket}: stored by stream "
                f"{ack.stream}{f' of domain {ack.domain}' if ack.domain else ''}",
                hint="stores of one name in two connected domains capture the same subjects",
            )
        return _stored(info, ack.sequence, renamed_from)

    async def _find_write(self, subject: str, data: bytes, revision: int | None) -> int:
        """Return the sequence of a meta whose ack was lost; 0 if it is not stored."""
        try:
            message = await self.stream.get(last_by_subject=subject)
        except TransportError:
            return 0
        if message is None or message.data != data or message.sequence <= (revision or 0):
            return 0
        return message.sequence

    async def change(
        self, name: str, decide: Callable[[StoredMeta], ObjectInfo]
    ) -> tuple[StoredMeta, ObjectInfo]:
        """Replace a meta by one computed from it, again if another writer was faster.

        Args:
            name: A legal name.
            decide: Returns the new info for the stored meta, or raises.

        Returns:
            The meta that was replaced, and the info that is stored now.

        Raises:
            WrongLastSequenceError: Other writers were faster each time.
            NatsStreamError: As for `decide` and `write`.

        Cost: two round trips, three after a rename; as many again for each faster writer.
        """

        async def attempt() -> tuple[StoredMeta, ObjectInfo]:
            stored = await self.read(name, finish_rename=True)
            info = decide(stored)
            if stored.renamed_from:  # Only this meta still names the other one.
                await self.read(stored.renamed_from, finish_rename=True)
            return stored, await self.write(info, revision=stored.revision)

        return await until_first(attempt)

    async def remove_chunks(self, replaced: StoredMeta) -> None:
        """Remove the chunks of a meta that was replaced.

        Args:
            replaced: The meta that `change`, or `read` with `finish_rename`, returned.

        Raises:
            TransportError: No answer; a sweep finds the chunks.

        Cost: one round trip.
        """
        info = replaced.info
        if info is not None and info.nuid:
            await self.stream.purge(subject=self.subjects.chunk_subject(info.nuid))

    async def used_chunks(self) -> set[str]:
        """Return the subjects of all chunks that a meta points to, for a sweep.

        Deleted objects and links point to none.

        Raises:
            ObjectMetaError: A meta cannot be read, so its chunks are not known.
            NatsStreamError: As for reading the stream.

        Cost: one read of all metas, up to three while others write; memory of one text for each
        object.
        """
        used: set[str] = set()
        revision = (await self.stream.info()).state.last_seq
        for _ in range(_WALKS_MAX):
            before = revision
            async with self.stream.latest(filters=(self.subjects.meta_filter,)) as metas:
                async for message in metas.initial():
                    name = self.subjects.name_of(message.subject) or message.subject
                    live = parse_meta(message, self.subjects, name).readable().live
                    if live is not None and live.nuid:
                        used.add(self.subjects.chunk_subject(live.nuid))
            revision = (await self.stream.info()).state.last_seq
            if revision == before:
                break
        return used


async def until_first(attempt: Callable[[], Awaitable[R]]) -> R:
    """Return the result of an attempt to write, again if another writer was faster.

    Args:
        attempt: Reads what is stored, and writes.

    Raises:
        WrongLastSequenceError: Other writers were faster each time.
    """
    for failures in range(_ATTEMPTS_MAX - 1):
        try:
            return await attempt()
        except WrongLastSequenceError:
            await asyncio.sleep(_PAUSE_S * failures)
    return await attempt()


def parse_meta(message: Message, subjects: StoreSubjects, name: str) -> StoredMeta:
    """Return the meta in a stored message.

    Args:
        message: A message under one of the store's meta subjects.
        subjects: The store's subjects.
        name: The object's name, from the message's subject.
    """
    keys = (RENAMED_TO, RENAMED_FROM)
    renamed_to, renamed_from = (_decoded(message.headers.get(key), subjects, name) for key in keys)
    try:
        info = ObjectInfo.from_json(
            message.data,
            bucket=subjects.bucket,
            name=name,
            revision=message.sequence,
            mtime_ns=message.time_ns,
            renamed_from=renamed_from,
        )
    except ObjectMetaError as error:
        return StoredMeta(message.sequence, None, renamed_to, renamed_from, error)
    return StoredMeta(message.sequence, info, renamed_to, renamed_from)


def new_marker(name: str, subjects: StoreSubjects) -> ObjectInfo:
    """Return the marker of a deleted object whose info is not known."""
    return ObjectInfo(name=name, bucket=subjects.bucket, nuid=new_nuid(), deleted=True)


def object_not_found(bucket: str, name: str) -> ObjectNotFoundError:
    """Return the error of an object that a store does not have."""
    return ObjectNotFoundError(
        f"store {bucket} has no object {name!r}", hint="names() yields the names of its objects"
    )


def _points_to(stored: StoredMeta, info: ObjectInfo) -> bool:
    """Return True if a meta points to the chunks of an info."""
    return stored.live is not None and stored.live.nuid == info.nuid


def _encoded(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _decoded(text: str | None, subjects: StoreSubjects, own: str) -> str:
    """Return the other name in a header; empty if we have not written it."""
    try:
        other = base64.b64decode(text or "", altchars=b"-_", validate=True).decode()
        return "" if other == own else subjects.check_object_name(other)
    except (binascii.Error, ValueError):
        return ""


def _stored(info: ObjectInfo, revision: int, renamed_from: str) -> ObjectInfo:
    """Return the info that was just stored; an ack has no time, so this client's clock gives it."""
    return replace(info, revision=revision, mtime_ns=time.time_ns(), renamed_from=renamed_from)
