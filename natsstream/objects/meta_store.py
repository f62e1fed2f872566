"""Reads and writes what a store says of its objects: one message an object, replaced as a whole.

Law: a meta is replaced only by someone who has seen it: every write says which revision it stands
on, and one that stands on an older one is refused and begins again. So nobody removes chunks that
a meta still points to, and none are forgotten.

A rename is two writes, and a process may be killed between them, or others may write. So it writes
three times: the old meta says in a header what it will be called (`renamed_to`), the new meta says
what it was called (`renamed_from`), then the old one is removed. Whoever is about to write the old
one in between settles that first: where the new meta holds the same chunks the old one is removed;
where it does not, the new name gets another revision, so that a rename under way is refused. So two
names never share chunks for good. Other clients see both names until then, and read the same bytes
under both.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from natsstream.api.message import Message
from natsstream.errors import (
    ObjectMetaError,
    TransportError,
    WrongLastSequenceError,
    WrongStreamError,
)
from natsstream.objects.info import ObjectInfo
from natsstream.objects.kind import STORE
from natsstream.objects.names import check_object_name, new_nuid
from natsstream.objects.store_subjects import StoreSubjects, domain_of
from natsstream.publish.outgoing import Expect
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream

RENAMED_TO = "Natsstream-Renamed-To"
"""Header of a meta that is being renamed: the name that it gets, in base64 for URLs."""
RENAMED_FROM = "Natsstream-Renamed-From"
"""Header of a meta that was renamed: the name that it had, in base64 for URLs."""

# Each attempt that fails means that another writer's has not.
_ATTEMPTS_MAX = 16
# On replicas a write is refused while another one to its subject is under way.
_PAUSE_S = 0.02


class StoredMeta(NamedTuple):
    """What a store has under a name.

    Attributes:
        revision: The sequence of the message; 0 where there is none. What a write stands on.
        info: What it says; None where there is none, or none that can be read.
        renamed_to: The name that it is to get; empty for none.
        renamed_from: The name that it had; empty for none.
        error: Why it can not be read; None where it can, or where there is none.
    """

    revision: int = 0
    info: ObjectInfo | None = None
    renamed_to: str = ""
    renamed_from: str = ""
    error: ObjectMetaError | None = None

    @property
    def live(self) -> ObjectInfo | None:
        """What it says of an object that is there; None for a deleted one."""
        return None if self.info is None or self.info.deleted else self.info


class MetaStore:
    """What one store says of its objects.

    Attributes:
        place: The store's subjects.
        stream: The stream that holds it.
    """

    def __init__(self, js: JetStreamContext, stream: Stream, place: StoreSubjects) -> None:
        self._js = js
        self.stream: Stream = stream
        self.place: StoreSubjects = place

    async def read(self, name: str, *, settle: bool = False) -> StoredMeta:
        """Return what the store has under a name, as the stream's leader knows it.

        An old meta that a killed rename has left reads as none.

        Args:
            name: A legal name.
            settle: Also finish such a rename, or see to it that it can not go on; for whoever is
                about to write.

        Raises:
            TransportError: The server did not answer in time.
            NatsStreamError: What `write` raises, where there is something to settle.

        Cost: one round trip; two to five more where a rename was not finished.
        """
        held = await self._look(name)
        if not held.renamed_to or held.live is None:
            return held
        if not settle:
            target = await self._look(held.renamed_to)
            return StoredMeta(revision=held.revision) if _holds(target, held.live) else held
        return await self._settled(name, held)

    async def _look(self, name: str) -> StoredMeta:
        """Return what is stored under a name."""
        with STORE.translate_errors(self.place.bucket):
            message = await self.stream.get(last_by_subject=self.place.meta_subject(name))
        return StoredMeta() if message is None else held_in(message, self.place, name)

    async def _settled(self, name: str, held: StoredMeta) -> StoredMeta:
        """Return what is stored under a name when no rename of it can go on any more."""
        for attempt in range(_ATTEMPTS_MAX):
            if not held.renamed_to or held.live is None:
                return held
            target = await self._look(held.renamed_to)
            if _holds(target, held.live):
                await self.remove(name, held.revision)
                return StoredMeta()
            if target.error is not None or target.live is not None:
                break  # Not what a rename under way has seen there, so it is refused.
            if attempt:  # Else it may be under way, and done in a moment.
                marker = new_marker(held.renamed_to, self.place)
                with suppress(WrongLastSequenceError):
                    await self.write(marker, revision=target.revision)
                    break
            await asyncio.sleep(_PAUSE_S)
            held = await self._look(name)
        return held._replace(renamed_to="")

    async def remove(self, name: str, revision: int) -> int:
        """Remove a meta, unless there is a newer one; returns how many were removed.

        Raises:
            TransportError: No answer.

        Cost: one round trip.
        """
        subject = self.place.meta_subject(name)
        return await self.stream.purge(subject=subject, before=revision + 1)

    async def write(
        self,
        info: ObjectInfo,
        *,
        revision: int | None,
        renamed_to: str = "",
        renamed_from: str = "",
    ) -> ObjectInfo:
        """Store a meta in the place of the one that it stands on.

        Args:
            info: What to store; its time and revision are not.
            revision: The revision that it stands on, 0 for none; None replaces whatever is there.
            renamed_to: The name that it is to get.
            renamed_from: The name that it had.

        Returns:
            The same with its revision; when it was stored is not known without asking.

        Raises:
            WrongLastSequenceError: Somebody else has written this meta.
            WrongStreamError: Another stream than this store's has taken it.
            TransportError: No ack, and it is not there; it may still come.
            NatsStreamError: What `JetStream.publish` raises.

        Cost: one round trip; one more where the ack was lost.
        """
        names = {RENAMED_TO: renamed_to, RENAMED_FROM: renamed_from}
        headers = {key: _encoded(name) for key, name in names.items() if name}
        subject, data = self.place.meta_subject(info.name), info.to_json()
        try:
            ack = await self._js.publish(
                subject,
                data,
                headers=headers or None,
                rollup="subject",
                expect=None if revision is None else Expect(last_subject_seq=revision),
            )
        except TransportError:
            # Stored or not: the leader knows.
            stored = await self._found(subject, data, revision)
            if not stored:
                raise
            return replace(info, revision=stored, mtime_ns=0, renamed_from=renamed_from)
        home = self.stream.cached.domain or domain_of(self._js.api_prefix)
        if ack.stream != self.place.stream or (ack.domain and home and ack.domain != home):
            raise WrongStreamError(
                f"object {info.name!r} of store {self.place.bucket}: stored by stream {ack.stream}"
                f"{f' of domain {ack.domain}' if ack.domain else ''}",
                hint="stores of one name in two connected domains capture the same subjects",
            )
        return replace(info, revision=ack.sequence, mtime_ns=0, renamed_from=renamed_from)

    async def _found(self, subject: str, data: bytes, revision: int | None) -> int:
        """Return the sequence at which a meta without an ack was stored; 0 where it is not."""
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
        """Replace a meta by what is decided from it, again where another writer was faster.

        Args:
            name: A legal name.
            decide: Returns what to store instead of what is there, or raises.

        Returns:
            What was there, and what is there now.

        Raises:
            WrongLastSequenceError: Others were faster each time.
            NatsStreamError: What `decide` and `write` raise.

        Cost: two round trips, three after a rename; the same again for each other writer that was
        faster.
        """
        for attempt in range(_ATTEMPTS_MAX):
            held = await self.read(name, settle=True)
            info = decide(held)
            if held.renamed_from:  # While this meta still tells that the other one is left over.
                await self.read(held.renamed_from, settle=True)
            try:
                return held, await self.write(info, revision=held.revision)
            except WrongLastSequenceError:
                if attempt == _ATTEMPTS_MAX - 1:
                    raise
                await asyncio.sleep(_PAUSE_S * attempt)
        raise AssertionError("unreachable")

    async def release(self, held: StoredMeta) -> None:
        """Remove the chunks of a meta that was replaced.

        Args:
            held: What was there before, as `read` with `settle` or `change` has returned it.

        Raises:
            TransportError: No answer; the sweep finds what is left.

        Cost: one round trip.
        """
        info = held.info
        if info is None or not info.nuid:
            return
        await self.stream.purge(subject=self.place.chunk_subject(info.nuid))


def held_in(message: Message, place: StoreSubjects, name: str) -> StoredMeta:
    """Return what a stored message says of an object.

    Args:
        message: A message under one of the store's meta subjects.
        place: The store.
        name: The object's name, as the subject has it.
    """
    headers = message.headers
    keys = (RENAMED_TO, RENAMED_FROM)
    renamed_to, renamed_from = (_decoded(headers.get(key), place, name) for key in keys)
    sequence = message.sequence
    try:
        info = ObjectInfo.from_json(
            message.data,
            bucket=place.bucket,
            name=name,
            revision=sequence,
            mtime_ns=message.time_ns,
            renamed_from=renamed_from,
        )
    except ObjectMetaError as error:
        return StoredMeta(sequence, None, renamed_to, renamed_from, error)
    return StoredMeta(sequence, info, renamed_to, renamed_from)


def new_marker(name: str, place: StoreSubjects) -> ObjectInfo:
    """Return the marker of a deleted object of which nothing is known."""
    return ObjectInfo(name=name, bucket=place.bucket, nuid=new_nuid(), deleted=True)


def _holds(held: StoredMeta, info: ObjectInfo) -> bool:
    """Tell whether a meta points to the same chunks."""
    return held.live is not None and held.live.nuid == info.nuid


def _encoded(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _decoded(text: str | None, place: StoreSubjects, own: str) -> str:
    """Return the other name in a header; empty where it is none that we have written."""
    try:
        other = base64.b64decode(text or "", altchars=b"-_", validate=True).decode()
        return "" if other == own else check_object_name(other, place)
    except (binascii.Error, ValueError):
        return ""
