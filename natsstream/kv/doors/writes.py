"""Writing one key of a bucket.

Law: a write that is refused has changed nothing, and says which revision stands there. A write
whose ack was lost is said to be unknown: nobody sends it again by himself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from natsstream.arguments import check_bytes, check_int
from natsstream.errors import ConfigError, WrongRevisionError
from natsstream.kv.doors.part import Part
from natsstream.kv.entry import operation_of
from natsstream.kv.lifetimes import check_ttl
from natsstream.kv.lookup import at_revision, newest
from natsstream.kv.storing import DELETE_HEADERS, PURGE_HEADERS, Record, key_exists, store
from natsstream.publish.outgoing import Payload, Rollup
from natsstream.publish.schedule import Ttl

_REVISION_MAX = 2**64 - 1
# `create` over a marker that changes while it looks: after 5 ms, 10 ms, ... 200 ms.
_FIRST_WAIT_S = 0.005
_WAIT_MAX_S = 0.2
_CREATE_S = 5.0


class Writes(Part):
    """Writes keys."""

    async def put(self, key: str, value: Payload, *, ttl: Ttl | None = None) -> int:
        """Store a value and return its revision.

        Args:
            key: The key; no wildcards.
            value: The bytes; empty ones are a value too.
            ttl: Whole seconds after which the key is gone; only where the bucket keeps no history,
                for an older value would come back to life.

        Raises:
            KeyNameError: It is no legal key; nothing was sent.
            ConfigError: The value is no bytes, or the ttl has no legal value, or the bucket keeps
                a history; nothing was sent.
            MessageRuleError: The bucket allows no ttl: it needs `limit_marker_ttl`.
            MessageTooLargeError: The value exceeds the bucket's `max_value_size`.
            StreamFullError: The bucket is at `max_bytes`, and nothing older makes room: a marker
                of a bucket with a history needs some too.
            BucketNotFoundError: The bucket was deleted.
            RequestTimeoutError: No ack in time; the value may be stored or not.
            ConnectionLostError: The connection broke; the value may be stored or not.

        Cost: one round trip, plus the stream's replication. Where nobody listens, as while a
        leader is elected, it is sent again after 250 ms, twice (ADR-22); then the stream is
        asked for, to tell a bucket that is gone from one that has no leader.
        Source: ADR-8; nats.go jetstream/kv.go Put.
        """
        self._check_ttl(ttl, is_over_a_value=True)
        return await self._store(key, self._encoded(value), ttl=ttl)

    async def create(self, key: str, value: Payload, *, ttl: Ttl | None = None) -> int:
        """Store a value where the key has none, and return its revision.

        It works at once after a delete, a purge or an expiry. Of several who create one key, one
        succeeds.

        Args:
            key: The key; no wildcards.
            value: The bytes.
            ttl: Whole seconds after which the key is gone, unless it is written again; the bucket
                needs `limit_marker_ttl`, and where it keeps a history, the ttl is not below that.

        Raises:
            KeyExistsError: The key has a value; `revision` says which. None where others have
                written and removed it again and again for 5 s; `retryable` is True then.
            NatsStreamError: What `put` raises.

        Cost: one round trip where the key was never written or its marker is gone; over a marker
        three, and more where others write the key meanwhile.
        Source: ADR-8, ADR-48; nats.go jetstream/kv.go Create.
        """
        payload = self._encoded(value)
        self._check_ttl(ttl)
        try:
            return await self._store(key, payload, revision=0, ttl=ttl)
        except WrongRevisionError as error:
            return await self._create_over(key, payload, ttl, error)

    async def _create_over(
        self, key: str, payload: bytes, ttl: Ttl | None, refusal: WrongRevisionError
    ) -> int:
        """Create a key that had a record; it may be a marker, and may change while we look."""
        loop = asyncio.get_running_loop()
        deadline, wait_s = loop.time() + _CREATE_S, _FIRST_WAIT_S
        subject = self._place.read_subject(key)
        while True:
            found = await newest(self._stream, self._place, subject, consistent=True)
            revision = 0 if found is None else found.sequence
            is_value = found is not None and operation_of(found) == "PUT"
            # A mirror, or a replica that was elected just now, may not have what refused us.
            is_current = refusal.revision is None or revision >= refusal.revision
            if (is_value and is_current) or loop.time() > deadline:
                raise key_exists(self.name, key, revision if is_value else None, refusal)
            if not is_value:
                try:
                    return await self._store(key, payload, revision=revision, ttl=ttl)
                except WrongRevisionError as error:
                    refusal = error
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, _WAIT_MAX_S)

    async def update(
        self, key: str, value: Payload, *, revision: int, ttl: Ttl | None = None
    ) -> int:
        """Store a value where the key's newest revision is the expected one; return the new one.

        Args:
            key: The key; no wildcards.
            value: The bytes.
            revision: The revision that must be the newest: that of a value or of a marker; 0 where
                the key must have no record at all, not even a marker.
            ttl: As in `put`.

        Raises:
            WrongRevisionError: Another revision is the newest; nothing was written. It is a
                `WrongLastSequenceError` (10071, and 10164 on replicated buckets).
            NatsStreamError: What `put` raises.

        Cost: one round trip, plus the stream's replication.
        Source: ADR-8; nats.go jetstream/kv.go Update.
        """
        check_int(revision, "revision", minimum=0, maximum=_REVISION_MAX)
        self._check_ttl(ttl, is_over_a_value=True)
        return await self._store(key, self._encoded(value), revision=revision, ttl=ttl)

    async def delete(self, key: str, *, revision: int | None = None) -> int:
        """Mark a key as deleted and return the marker's revision; its history stays.

        A key that has no value gets a marker too, as with every client.

        Args:
            key: The key; no wildcards.
            revision: The revision that must be the newest.

        Raises:
            WrongRevisionError: Another revision is the newest; nothing was written.
            NatsStreamError: What `put` raises.

        Cost: one round trip, plus the stream's replication.
        Source: ADR-8; nats.go jetstream/kv.go Delete.
        """
        return await self._mark(key, DELETE_HEADERS, revision)

    async def purge(self, key: str, *, revision: int | None = None, ttl: Ttl | None = None) -> int:
        """Mark a key as deleted, remove its history, and return the marker's revision.

        Args:
            key: The key; no wildcards: `purge_matching` takes a filter.
            revision: The revision that must be the newest.
            ttl: Whole seconds after which the marker is gone too; as for `create`.

        Raises:
            WrongRevisionError: Another revision is the newest; nothing was written or removed.
            NatsStreamError: What `put` raises.

        Cost: one round trip, plus the stream's replication.
        Source: ADR-8, ADR-48; nats.go jetstream/kv.go Purge.
        """
        return await self._mark(key, PURGE_HEADERS, revision, ttl=ttl, rollup="subject")

    async def revert(self, key: str, revision: int) -> int:
        """Store an older value of a key again, as its newest one, and return the new revision.

        Where somebody writes the key meanwhile nothing is overwritten.

        Args:
            key: The key; no wildcards. It may be deleted by now.
            revision: The revision whose value it gets.

        Raises:
            ConfigError: The key has no value at this revision.
            WrongRevisionError: Somebody wrote the key meanwhile; nothing was written.
            NatsStreamError: What `get` and `put` raise.

        Cost: three round trips.
        Source: nats CLI `nats kv revert`.
        """
        check_int(revision, "revision", minimum=1, maximum=_REVISION_MAX)
        subject = self._place.read_subject(key)
        last = await newest(self._stream, self._place, subject, consistent=True)
        old = await at_revision(self._stream, self._place, revision, consistent=True)
        if last is None or old is None or old.subject != subject:
            raise ConfigError(
                f"key {key!r} of bucket {self.name} has no revision {revision}",
                hint="kv.history(key) yields those that the bucket still has",
            )
        if operation_of(old) != "PUT":
            raise ConfigError(
                f"revision {revision} of key {key!r} is a deletion", hint="kv.delete(key)"
            )
        return await self._store(key, old.data, revision=last.sequence)

    async def _store(
        self, key: str, payload: bytes, *, revision: int | None = None, ttl: Ttl | None = None
    ) -> int:
        record = Record(
            key=key,
            subject=self._place.write_subject(key),
            payload=payload,
            revision=revision,
            ttl=ttl,
        )
        return await store(self._js, self._stream, self._place, record)

    async def _mark(
        self,
        key: str,
        headers: Mapping[str, str],
        revision: int | None,
        *,
        ttl: Ttl | None = None,
        rollup: Rollup | None = None,
    ) -> int:
        if revision is not None:
            check_int(revision, "revision", minimum=1, maximum=_REVISION_MAX)
        self._check_ttl(ttl)
        record = Record(
            key=key,
            subject=self._place.write_subject(key),
            headers=headers,
            revision=revision,
            ttl=ttl,
            rollup=rollup,
        )
        return await store(self._js, self._stream, self._place, record)

    def _encoded(self, value: Payload) -> bytes:
        return self._place.stored_value(check_bytes(value, "value"))

    def _check_ttl(self, ttl: Ttl | None, *, is_over_a_value: bool = False) -> None:
        config = self._stream.cached.config
        check_ttl(config, self.name, ttl, is_over_a_value=is_over_a_value)
