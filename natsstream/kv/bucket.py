"""One bucket's records by key, with values as bytes: what `KeyValue`, mirrors and locks stand on.

Law: a refused write has changed nothing, and its error has the revision that is there. A write
whose ack was lost may be stored or not, and is not sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Literal

from natsstream.api.message import Message
from natsstream.api.names import covers, drop_covered
from natsstream.api.stream_config import StreamConfig
from natsstream.arguments import check_bool, check_int
from natsstream.errors import (
    CodecError,
    ConfigError,
    ConnectionClosedError,
    ConnectionLostError,
    NoRespondersError,
    RequestTimeoutError,
    WrongRevisionError,
)
from natsstream.iteration import Flattened
from natsstream.kv.bucket_subjects import BucketSubjects
from natsstream.kv.codecs import T
from natsstream.kv.conventions import BUCKET
from natsstream.kv.entry import Entry, entry_of, operation_of
from natsstream.kv.formats import RAW, ValueFormat
from natsstream.kv.listing import KeysOnce
from natsstream.kv.status import BucketStatus
from natsstream.kv.storing import Record, key_exists, store
from natsstream.kv.ttl_check import TtlCheck
from natsstream.publish.schedule import Ttl
from natsstream.streams.endings import Endings
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream

_REVISION_MAX = 2**64 - 1
# `create` over a marker that changes while it looks: after 5 ms, 10 ms, ... 200 ms.
_FIRST_WAIT_S = 0.005
_WAIT_MAX_S = 0.2
_CREATE_S = 5.0


class Bucket:
    """The records of a bucket.

    Attributes:
        name: The bucket's name.
        stream: The stream that holds it.
        subjects: The subjects of its keys, and its codecs.
        endings: Carries out clean-up, also when its caller is cancelled meanwhile.
        ttls: Refuses ttls that the bucket would not keep.
    """

    def __init__(
        self,
        js: JetStreamContext,
        stream: Stream,
        subjects: BucketSubjects,
        endings: Endings,
        ttls: TtlCheck,
    ) -> None:
        self.name: str = subjects.bucket
        self.stream: Stream = stream
        self.subjects: BucketSubjects = subjects
        self.endings: Endings = endings
        self.ttls: TtlCheck = ttls
        self._js = js

    @property
    def config(self) -> StreamConfig:
        """The stream's configuration, as far as this connection knows it."""
        return self.stream.cached.config

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""
        return self._js.is_connected

    def with_subjects(self, subjects: BucketSubjects) -> Bucket:
        """Return the same bucket with other codecs."""
        return Bucket(self._js, self.stream, subjects, self.endings, self.ttls)

    async def status(self) -> BucketStatus:
        """Return what the bucket holds now, and its configuration."""
        with BUCKET.translate_errors(self.name):
            return BucketStatus.from_stream(await self.stream.info())

    # Reads.

    async def get(
        self, key: str, *, revision: int | None = None, consistent: bool = False
    ) -> Entry[bytes] | None:
        """Return the entry of a key; None if it has no value."""
        subject = self.subjects.read_subject(key)
        if revision is not None:
            check_int(revision, "revision", minimum=1, maximum=_REVISION_MAX)
        if check_bool(consistent, "consistent") and self.config.mirror is not None:
            raise ConfigError(
                f"bucket {self.name} is a mirror: its leader may lag behind its origin",
                hint="read the origin: js.kv.get(...) of its name, where it lives",
            )
        try:
            found = await self._stored(subject, revision, consistent=consistent)
        except (ConnectionLostError, ConnectionClosedError, RequestTimeoutError) as error:
            error.name_call(f"key {key!r} of bucket {self.name}")
            raise
        if found is None:
            return None
        entry = entry_of(self.subjects, found, RAW)
        return None if entry.is_deleted else entry

    async def _stored(
        self, subject: str, revision: int | None = None, *, consistent: bool
    ) -> Message | None:
        """Return the last message of a key, or the one at a revision; None if there is none.

        Decisions rest on the leader: another replica may lag behind. Where a replica does not have
        a revision, the leader is asked.
        """
        last = subject if revision is None else None
        if not consistent and self.config.allow_direct:
            # The stream may have no direct reads any more, or be away: its leader knows.
            with suppress(NoRespondersError, ConfigError):
                found = await self.stream.direct.get(revision, last_by_subject=last)
                if found is not None or revision is None:
                    return _of(found, subject)
        with BUCKET.translate_errors(self.name):
            return _of(await self.stream.get(revision, last_by_subject=last), subject)

    # Writes.

    async def put(self, key: str, value: bytes, *, ttl: Ttl | None = None) -> int:
        """Store a value and return its revision."""
        await self.ttls.check(ttl, is_over_a_value=True)
        return await self._store(key, value, ttl=ttl)

    async def update(
        self,
        key: str,
        value: bytes,
        *,
        revision: int,
        ttl: Ttl | None = None,
        is_lock: bool = False,
    ) -> int:
        """Store a value if the key's newest revision is the expected one.

        A lock looks at its bucket itself, and has no time to do so at each renewal.
        """
        check_int(revision, "revision", minimum=0, maximum=_REVISION_MAX)
        if not is_lock:
            await self.ttls.check(ttl, is_over_a_value=True)
        return await self._store(key, value, revision=revision, ttl=ttl)

    async def create(
        self, key: str, value: bytes, *, ttl: Ttl | None = None, is_lock: bool = False
    ) -> int:
        """Store a value if the key has none; for a lock as `update`."""
        if not is_lock:
            await self.ttls.check(ttl, is_over_a_value=False)
        try:
            return await self._store(key, value, revision=0, ttl=ttl)
        except WrongRevisionError as error:
            return await self._create_over(key, value, ttl, error)

    async def _create_over(
        self, key: str, value: bytes, ttl: Ttl | None, refusal: WrongRevisionError
    ) -> int:
        """Create a key that had a record, which others may change meanwhile."""
        loop = asyncio.get_running_loop()
        deadline, wait_s = loop.time() + _CREATE_S, _FIRST_WAIT_S
        subject = self.subjects.read_subject(key)
        while True:
            found = await self._stored(subject, consistent=True)
            revision = 0 if found is None else found.sequence
            is_value = found is not None and operation_of(found) == "PUT"
            # A mirror, or a newly elected replica, may not have what refused the write.
            is_current = refusal.revision is None or revision >= refusal.revision
            if (is_value and is_current) or loop.time() > deadline:
                raise key_exists(self.name, key, revision if is_value else None, refusal)
            if not is_value:
                try:
                    return await self._store(key, value, revision=revision, ttl=ttl)
                except WrongRevisionError as error:
                    refusal = error
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, _WAIT_MAX_S)

    async def put_guarded(self, key: str, value: bytes, *, guard: str, revision: int) -> int:
        """Store a value if another key is at the expected revision."""
        check_int(revision, "revision", minimum=0, maximum=_REVISION_MAX)
        if self.config.mirror is not None:
            raise ConfigError(
                f"bucket {self.name} is a mirror: the guard is in the origin",
                hint="call put_guarded of its origin",
            )
        return await self._store(key, value, revision=revision, guard=guard)

    async def delete(self, key: str, *, revision: int | None = None) -> int:
        """Write a delete marker and return its revision."""
        return await self._mark(key, "DEL", revision)

    async def purge(
        self,
        key: str,
        *,
        revision: int | None = None,
        ttl: Ttl | None = None,
        is_lock: bool = False,
    ) -> int:
        """Write a purge marker, remove the key's history, and return the marker's revision.

        For a lock as `update`.
        """
        if not is_lock:
            await self.ttls.check(ttl, is_over_a_value=False)
        return await self._mark(key, "PURGE", revision, ttl)

    async def purge_message(self, message: Message, ttl: Ttl | None) -> bool:
        """Write a purge marker over a message; False if it is not its key's newest any more."""
        # The key as it is stored: another codec may have written it.
        key = message.subject[len(self.subjects.read_prefix) :]
        record = Record(
            key,
            self.subjects.write_prefix + key,
            revision=message.sequence,
            marker="PURGE",
            ttl=ttl,
        )
        try:
            await store(self._js, self.stream, record)
        except WrongRevisionError:
            return False
        return True

    async def revert(self, key: str, revision: int) -> int:
        """Store an older value of a key as its newest one, and return the new revision."""
        check_int(revision, "revision", minimum=1, maximum=_REVISION_MAX)
        subject = self.subjects.read_subject(key)
        last = await self._stored(subject, consistent=True)
        old = await self._stored(subject, revision, consistent=True)
        if last is None or old is None:
            raise ConfigError(
                f"key {key!r} of bucket {self.name} has no revision {revision}",
                hint="kv.history(key) yields those that the bucket still has",
            )
        if operation_of(old) != "PUT":
            raise ConfigError(
                f"revision {revision} of key {key!r} is a deletion", hint="kv.delete(key)"
            )
        subject = self.subjects.write_subject(key)
        record = Record(key, subject, old.data, revision=last.sequence)
        return await store(self._js, self.stream, record)

    async def _store(
        self,
        key: str,
        value: bytes,
        *,
        revision: int | None = None,
        ttl: Ttl | None = None,
        guard: str | None = None,
    ) -> int:
        record = Record(
            key,
            self.subjects.write_subject(key),
            self.subjects.stored_value(value),
            revision=revision,
            ttl=ttl,
            guard=guard,
            guard_subject=None if guard is None else self.subjects.read_subject(guard),
        )
        return await store(self._js, self.stream, record)

    async def _mark(
        self,
        key: str,
        marker: Literal["DEL", "PURGE"],
        revision: int | None,
        ttl: Ttl | None = None,
    ) -> int:
        if revision is not None:
            check_int(revision, "revision", minimum=1, maximum=_REVISION_MAX)
        subject = self.subjects.write_subject(key)
        record = Record(key, subject, revision=revision, marker=marker, ttl=ttl)
        return await store(self._js, self.stream, record)

    # Listings.

    def entries(
        self, filters: Sequence[str], form: ValueFormat[T], *, raises: bool
    ) -> AsyncGenerator[Entry[T]]:
        """Yield the newest entry of each key that has a value; see `KeyValue.entries`."""

        def entry(message: Message) -> Entry[T]:
            return entry_of(self.subjects, message, form, delta=message.pending, raises=raises)

        return Flattened(self._newest(filters), partial(map, entry))

    def revisions(
        self,
        filters: Sequence[str],
        form: ValueFormat[T],
        *,
        first: int | None,
        last: int | None,
        created_ns: int | None,
        raises: bool,
    ) -> AsyncGenerator[Entry[T]]:
        """Yield the revisions of a range, oldest first; see `KeyValue.revisions`."""
        reading = self.stream.read(
            first_seq=first,
            last_seq=last,
            # With a filter nobody asks why sequences are missing: here most of them were replaced.
            filters=drop_covered(self.read_filters(filters)),
            created_ns=created_ns,
            control=True,
        )

        def entry(message: Message) -> Entry[T]:
            return entry_of(self.subjects, message, form, raises=raises)

        async def runs() -> AsyncGenerator[list[Message]]:
            with BUCKET.translate_errors(self.name):
                async with aclosing(reading.runs()) as runs:
                    async for run in runs:
                        yield run

        return Flattened(runs(), partial(map, entry))

    def keys(self, filters: Sequence[str], *, raises: bool) -> AsyncGenerator[str]:
        """Yield the keys that have a value; see `KeyValue.keys`."""
        batches = self._newest(filters, headers_only=True)
        keys_of = partial(self._keys_of, raises=raises)
        return Flattened(batches, lambda batch: (key for key, _ in keys_of(batch)))

    async def newest_revisions(self, filters: Sequence[str]) -> dict[str, int]:
        """Return the newest revision of each key that has a value and can be decoded."""
        found: dict[str, int] = {}
        async with aclosing(self._newest(filters, headers_only=True)) as batches:
            async for batch in batches:
                found.update(self._keys_of(batch, raises=False))
        return found

    def _keys_of(self, messages: Sequence[Message], *, raises: bool) -> Iterator[tuple[str, int]]:
        for message in messages:
            try:
                key = self.subjects.key_of(message.subject)
            except CodecError:
                if raises:
                    raise
            else:
                yield key, message.sequence

    def is_among(self, key: str, filters: Sequence[str]) -> bool:
        """Return True if one of the filters matches a key; no filters match all keys."""
        subject = self.subjects.read_subject(key)
        return any(covers(each, subject) for each in self.read_filters(filters))

    def read_filters(self, filters: Sequence[str]) -> list[str]:
        """Return the subjects of filters; those of all keys for none."""
        if not filters:
            # Not through the codec, which may take no wildcards.
            return [f"{self.subjects.read_prefix}>"]
        return [self.subjects.read_filter(each) for each in filters]

    async def _newest(
        self, filters: Sequence[str], *, headers_only: bool = False
    ) -> AsyncGenerator[list[Message]]:
        """Yield the newest values of keys in batches as they arrive, each key once.

        The newest value is that of the beginning, or one written meanwhile.
        """
        latest = self.stream.latest(
            filters=self.read_filters(filters), headers_only=headers_only, consistent=True
        )
        with BUCKET.translate_errors(self.name):
            async with latest, aclosing(latest.batches(until_caught_up=True)) as batches:
                once = KeysOnce(latest.horizon)
                async for batch in batches:
                    values = [each for each in batch if operation_of(each) == "PUT"]
                    if values:
                        names = [each.subject for each in values]
                        chosen = once.choose(names, first=values[0].sequence)
                        yield [values[index] for index in chosen]


def _of(found: Message | None, subject: str) -> Message | None:
    return None if found is None or found.subject != subject else found
