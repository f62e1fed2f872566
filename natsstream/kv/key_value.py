"""A key-value bucket: keys with values, and the revisions of each."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Generic, Literal

from natsstream.api.diff import ConfigChange
from natsstream.arguments import check_choice, check_seconds
from natsstream.errors import ConfigError
from natsstream.foreign_names import answers_names
from natsstream.iteration import Flattened
from natsstream.kv import removals
from natsstream.kv.bucket import Bucket
from natsstream.kv.cache.cached import CachedKeyValue
from natsstream.kv.cache.sync import CACHE_BYTES_MAX, CacheOptions
from natsstream.kv.codecs import (
    KeyCodec,
    T,
    ValueCodec,
    checked_key_codec,
    checked_value_codec,
)
from natsstream.kv.config import BucketConfig
from natsstream.kv.entry import Entry, decoded, readable
from natsstream.kv.formats import U, ValueFormat, make_format
from natsstream.kv.locks.elections import Election
from natsstream.kv.locks.leases import TTL_S, check_holder, make_terms
from natsstream.kv.locks.lock_key import LockKey
from natsstream.kv.locks.locks import Lock
from natsstream.kv.status import BucketStatus
from natsstream.kv.watch import Watch, check_on_unreadable
from natsstream.publish.schedule import Ttl
from natsstream.streams.stream import Stream

_HALF_AN_HOUR_S = 1_800.0
_LOCK_TIMEOUT_S = 30.0
_CACHE_TIMEOUT_S = 30.0


@answers_names("kv")
class KeyValue(Generic[T]):
    """A key-value bucket; `js.kv` returns it with values of bytes, `typed` with values of any type.

    `KeyValue` alone means `KeyValue[bytes]`. A key has letters, digits and `-`, `_`, `/`, `=`, in
    tokens between dots; `with_codec` allows others. A filter is a key with wildcards: `*` is one
    token, a final `>` the rest.

    Every method may raise these errors:

    - `KeyNameError`: a key or filter is not legal; nothing was sent.
    - `ConfigError`: an argument has no legal value; nothing was sent.
    - `BucketNotFoundError`: the bucket was deleted.
    - `TransportError`: no answer in time. A write may be stored or not.

    Attributes:
        name: The bucket's name.
    """

    def __init__(self, bucket: Bucket, form: ValueFormat[T]) -> None:
        self.name: str = bucket.name
        self._bucket = bucket
        self._form = form

    # The bucket as a whole.

    @property
    def config(self) -> BucketConfig:
        """The configuration when the bucket was opened; `status()` returns the present one."""
        return BucketConfig.from_stream(self._bucket.config)

    @property
    def change(self) -> ConfigChange:
        """The change that `create`, `update` or `ensure` has made: created, updated, or none."""
        return BucketConfig.renamed(self._bucket.stream.change)

    @property
    def stream(self) -> Stream:
        """The stream that holds the bucket, for backups, step-downs and reads of messages."""
        return self._bucket.stream

    async def status(self) -> BucketStatus:
        """Return what the bucket holds now, and its configuration.

        Cost: one round trip to the stream's leader.
        Source: ADR-8; nats.go jetstream/kv.go Status.
        """
        return await self._bucket.status()

    # Reads.

    async def get(
        self, key: str, *, revision: int | None = None, consistent: bool = False
    ) -> Entry[T] | None:
        """Return the entry of a key, or None if the key has no value.

        Args:
            key: The key; no wildcards.
            revision: An older revision of this key, as long as the bucket's history keeps it.
            consistent: Read from the stream's leader, which has every acknowledged write. Any other
                replica may lag behind.

        Returns:
            The entry. None if the key was never written, is deleted, purged or expired, or if the
            revision is gone, is a marker or belongs to another key.

        Raises:
            ConfigError: The bucket is a mirror and `consistent` is True: only its origin has every
                write.
            CodecError: The value cannot be decoded.

        Cost: one round trip; a second one if the first replica does not have the revision.
        Source: ADR-8, ADR-31; nats.go jetstream/kv.go Get and GetRevision.
        """
        entry = await self._bucket.get(key, revision=revision, consistent=consistent)
        return None if entry is None else readable(decoded(entry, self._form))

    def keys(
        self, *filters: str, on_unreadable: Literal["raise", "leave_out"] = "raise"
    ) -> AsyncGenerator[str]:
        """Yield the keys that have a value, each once, in the order of their newest revisions.

        A key that has a value during the whole loop is among them. A key that is written or deleted
        meanwhile may be. Deletions acknowledged before the loop count. Collect the keys with
        `[key async for key in kv.keys()]`.

        Args:
            filters: As for `watch`.
            on_unreadable: "raise", or "leave_out" a key that the bucket's codec cannot decode.

        Raises:
            CodecError: A key cannot be decoded, and `on_unreadable` is "raise".

        Cost: the headers of each key's newest entry, and no values. Memory: the 16 MiB of `watch`,
        and 8 bytes a key; 80 if others write meanwhile. One consumer, deleted when the loop ends or
        is left. On a replicated bucket a few before it, until one is on the leader.
        """
        check_choice(on_unreadable, "on_unreadable", ("raise", "leave_out"))
        return self._bucket.keys(filters, raises=on_unreadable == "raise")

    def entries(
        self, *filters: str, on_unreadable: Literal["raise", "hand_out"] = "raise"
    ) -> AsyncGenerator[Entry[T]]:
        """Yield the newest entry of each key that has a value, in the order of their revisions.

        Each key comes once, with its newest entry at the beginning of the loop or one that was
        written meanwhile.

        Args:
            filters: As for `watch`.
            on_unreadable: As for `watch`.

        Raises:
            CodecError: An entry cannot be decoded, and `on_unreadable` is "raise".

        Cost: as for `keys`, with the values.
        """
        raises = check_on_unreadable(on_unreadable) == "raise"
        return self._bucket.entries(filters, self._form, raises=raises)

    def history(
        self, *filters: str, on_unreadable: Literal["raise", "hand_out"] = "raise"
    ) -> AsyncGenerator[Entry[T]]:
        """Yield all revisions that the bucket keeps of some keys, oldest first, with markers.

        Args:
            filters: A key, or filters as for `watch`, such as `"a.*"`; none is every key. Revisions
                of several keys come in the order in which they were written.
            on_unreadable: As for `watch`.

        Raises:
            CodecError: An entry cannot be decoded, and `on_unreadable` is "raise".

        Cost: one consumer, deleted when the loop ends or is left; memory as for `watch`.
        """
        watch = self.watch(*filters, include_history=True, on_unreadable=on_unreadable)

        async def entries() -> AsyncGenerator[list[Entry[T]]]:
            async with watch:
                async for batch in watch.batches(until_caught_up=True):
                    yield batch

        return Flattened(entries(), iter)

    def revisions(
        self,
        *filters: str,
        first: int | None = None,
        last: int | None = None,
        created_ns: int | None = None,
        on_unreadable: Literal["raise", "hand_out"] = "raise",
    ) -> AsyncGenerator[Entry[T]]:
        """Yield the revisions in a range that the bucket still keeps, oldest first, with markers.

        Revisions that newer ones have replaced are left out. Use it to read what was written since
        an earlier read, or a large bucket in parts.

        Args:
            filters: As for `watch`.
            first: First revision of the range, inclusive; None is the oldest.
            last: Last revision, inclusive; None is the newest when the loop begins.
            created_ns: The bucket's identity, `created_ns` of an earlier watch: refuse another
                bucket of this name.
            on_unreadable: As for `watch`.

        Raises:
            SequenceRangeError: The bucket has not reached a revision of the range.
            StreamRecreatedError: The bucket was deleted and created again.
            CodecError: An entry cannot be decoded, and `on_unreadable` is "raise".

        Cost: one consumer, deleted when the loop ends or is left; memory as for `watch`.
        """
        raises = check_on_unreadable(on_unreadable) == "raise"
        return self._bucket.revisions(
            filters, self._form, first=first, last=last, created_ns=created_ns, raises=raises
        )

    def watch(
        self,
        *filters: str,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
        resume_after: int | None = None,
        created_ns: int | None = None,
        on_unreadable: Literal["raise", "hand_out"] = "raise",
    ) -> Watch[T]:
        """Describe a watch: the newest entry of each key, then every change.

        Use it as `async with kv.watch("orders.*") as watch: async for entry in watch`. In the
        block, `async for entry in watch.initial()` ends behind the last entry that was there.

        Args:
            filters: Keys or filters of keys, at most 1,000; none is all keys. They may overlap:
                each entry comes once.
            include_history: Begin with all revisions that the bucket keeps, not the newest alone.
            ignore_deletes: Leave out markers of deleted, purged and expired keys.
            meta_only: Leave out the values; `entry.data` is `b""`.
            updates_only: Begin with the next write; nothing is initial.
            resume_after: Begin behind this revision: `revision` of an earlier watch, also of
                another process.
            created_ns: The bucket's identity, `created_ns` of the earlier watch: refuse another
                bucket of this name. Without it, only a bucket that has not reached the revision is
                refused.
            on_unreadable: "raise" when an entry cannot be decoded; iterating again continues behind
                it. "hand_out": yield the entry with its `error` set.

        Returns:
            A watch; nothing is sent before its block is entered.

        Raises:
            ConfigError: Two starts are given, or too many filters, or an illegal value.

        Cost: one consumer on the server, while the block lasts; memory of at most 16 MiB of entries
        that have arrived.
        Source: ADR-8 watch; nats.go jetstream/kv.go WatchFiltered.
        """
        return Watch(
            self._bucket,
            self._form,
            filters,
            include_history=include_history,
            ignore_deletes=ignore_deletes,
            meta_only=meta_only,
            updates_only=updates_only,
            resume_after=resume_after,
            created_ns=created_ns,
            on_unreadable=on_unreadable,
        )

    # Writes.

    async def put(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value and return its revision.

        Args:
            key: The key; no wildcards.
            value: The value: bytes, or an object of a typed bucket; empty bytes are a value too.
            ttl: Whole seconds after which the key expires. Only in a bucket without history: there
                the older value would be the newest again.

        Raises:
            ConfigError: The value is not bytes, or the format cannot write it; or the `ttl` is not
                legal, or the bucket keeps a history.
            MessageRuleError: The bucket allows no ttl: it needs `limit_marker_ttl`.
            MessageTooLargeError: The value exceeds the bucket's `max_value_size`.
            StreamFullError: The bucket is at `max_bytes`. In a bucket with a history, markers are
                refused too.
            RequestTimeoutError: No ack in time; the value may be stored or not.
            ConnectionLostError: The connection broke; the value may be stored or not, unless it
                says that it was not sent.

        Cost: one round trip, plus the stream's replication; with a `ttl` one more, at most once a
        second or where it is refused, which looks whether the bucket keeps it. Without responders,
        as during an election, it is sent again after 250 ms, twice (ADR-22). Then one request finds
        out whether the bucket is gone or has no leader.
        Source: ADR-8; nats.go jetstream/kv.go Put.
        """
        return await self._bucket.put(key, self._bytes(key, value), ttl=ttl)

    async def create(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value if the key has none, and return its revision.

        It works at once after a delete, a purge or an expiry. If several clients create one key,
        one succeeds.

        Args:
            key: The key; no wildcards.
            value: The value, as in `put`.
            ttl: Whole seconds after which the key expires, unless it is written again. The bucket
                needs `limit_marker_ttl`; with a history, the `ttl` cannot be below that.

        Raises:
            KeyExistsError: The key has a value; `revision` is its revision. It is None if others
                wrote and removed the key for 5 s; `retryable` is True then.
            NatsStreamError: As for `put`.

        Cost: one round trip if the key was never written or its marker is gone; three over a
        marker, and more while others write the key.
        Source: ADR-8, ADR-48; nats.go jetstream/kv.go Create.
        """
        return await self._bucket.create(key, self._bytes(key, value), ttl=ttl)

    async def update(self, key: str, value: T, *, revision: int, ttl: Ttl | None = None) -> int:
        """Store a value if the key's newest revision is the expected one; return the new revision.

        Args:
            key: The key; no wildcards.
            value: The value, as in `put`.
            revision: The expected newest revision, of a value or a marker; 0 if the key must have
                no record at all, not even a marker.
            ttl: As in `put`.

        Raises:
            WrongRevisionError: The newest revision is another one; nothing was written. It is a
                `WrongLastSequenceError` (10071, and 10164 on replicated buckets).
            NatsStreamError: As for `put`.

        Cost: one round trip, plus the stream's replication.
        Source: ADR-8; nats.go jetstream/kv.go Update.
        """
        return await self._bucket.update(key, self._bytes(key, value), revision=revision, ttl=ttl)

    async def put_guarded(self, key: str, value: T, *, guard: str, revision: int) -> int:
        """Store a value if another key is still at a revision; return the new revision.

        The server compares and stores in one step, so `revision` is a fencing token that the server
        itself checks: a writer that was replaced meanwhile changes nothing.

        Args:
            key: The key; no wildcards.
            value: The value, as in `put`.
            guard: The other key.
            revision: The expected newest revision of the other key; 0 for no record.

        Raises:
            WrongRevisionError: The other key has another revision; nothing was written. `key` is
                the guard.
            ConfigError: The bucket is a mirror.
            UnsupportedServerError: The server is older than 2.11; nothing was sent.
            NatsStreamError: As for `put`.

        Cost: one round trip, plus the stream's replication.
        Source: `Nats-Expected-Last-Subject-Sequence-Subject`, nats-server 2.11.
        """
        data = self._bytes(key, value)
        return await self._bucket.put_guarded(key, data, guard=guard, revision=revision)

    async def delete(self, key: str, *, revision: int | None = None) -> int:
        """Mark a key as deleted and return the marker's revision; its history stays.

        A key without a value gets a marker too, as with every client.

        Args:
            key: The key; no wildcards.
            revision: The expected newest revision.

        Raises:
            WrongRevisionError: The newest revision is another one; nothing was written.
            NatsStreamError: As for `put`.

        Cost: one round trip, plus the stream's replication.
        Source: ADR-8; nats.go jetstream/kv.go Delete.
        """
        return await self._bucket.delete(key, revision=revision)

    async def purge(self, key: str, *, revision: int | None = None, ttl: Ttl | None = None) -> int:
        """Mark a key as deleted, remove its history, and return the marker's revision.

        Args:
            key: The key; no wildcards: `purge_matching` takes a filter.
            revision: The expected newest revision.
            ttl: Whole seconds after which the marker expires too; as for `create`.

        Raises:
            WrongRevisionError: The newest revision is another one; nothing was written or removed.
            NatsStreamError: As for `put`.

        Cost: one round trip, plus the stream's replication.
        Source: ADR-8, ADR-48; nats.go jetstream/kv.go Purge.
        """
        return await self._bucket.purge(key, revision=revision, ttl=ttl)

    async def revert(self, key: str, revision: int) -> int:
        """Store an older value of a key as its newest one, and return the new revision.

        A write that comes between is not overwritten.

        Args:
            key: The key; no wildcards. It may be deleted by now.
            revision: The revision with the value.

        Raises:
            ConfigError: The key has no value at this revision.
            WrongRevisionError: Another client wrote the key meanwhile; nothing was written.
            NatsStreamError: As for `get` and `put`.

        Cost: three round trips.
        Source: nats CLI `nats kv revert`.
        """
        return await self._bucket.revert(key, revision)

    # Removals of many keys.

    async def purge_deletes(self, *, older_than: float | timedelta = _HALF_AN_HOUR_S) -> int:
        """Remove old markers, and the history before every marker; return how many revisions.

        A key that is written again meanwhile keeps its new value. A watch that resumes from before
        a removed marker misses the deletion, so leave it time. With one replica on disk, a server
        that is killed afterwards may restore a value from before the deletion (nats-server issue
        8505); a marker that stays prevents that.

        Args:
            older_than: Seconds or timedelta, by the server's clock. Markers of at least this age
                are removed; of younger ones only the history before them. 0 is all markers.

        Returns:
            How many revisions were removed, markers included.

        Raises:
            ConfigError: The duration is not legal, or the bucket is a mirror.
            NotPermittedError: The bucket's stream has `deny_purge`.
            TransportError: No answer; the removed revisions stay removed, and the call may be
                repeated.

        Cost: the headers of each key's newest entry; then one request for each marker, 64 in flight
        at once, and the memory of their subjects.
        Source: ADR-8; nats.go jetstream/kv.go PurgeDeletes; nats CLI `nats kv compact`.
        """
        return await removals.purge_deletes(self._bucket, older_than)

    async def purge_matching(self, *filters: str, ttl: Ttl | None = None) -> int:
        """Purge every key that has a value and matches a filter; return how many keys.

        Each key gets its own marker, as with `purge`, so watches and mirrors see it. A key that is
        written meanwhile keeps its new value.

        Args:
            filters: Keys or filters of keys, at least one; ">" is the whole bucket.
            ttl: Whole seconds after which the markers expire too; as for `create`.

        Returns:
            How many keys were purged.

        Raises:
            ConfigError: No filter is given, or the `ttl` is not legal.
            NatsStreamError: As for `purge`; the keys before it are purged, and the call may be
                repeated.

        Cost: the headers of each matching key's newest entry; then one message for each key, 64 in
        flight at once. `kv.stream.purge(subject=...)` is one round trip, but watches miss it.
        Source: nats.js kv.ts purge with wildcards.
        """
        return await removals.purge_matching(self._bucket, filters, ttl)

    # The same bucket with other keys and values.

    def typed(
        self,
        encode: ValueCodec[U] | Callable[[U], bytes],
        decode: Callable[[bytes], U] | None = None,
    ) -> KeyValue[U]:
        """Return this bucket with values of a type, instead of its present values.

        Every call, watch, mirror and lock of the result takes and returns objects of that type.
        Other clients read the bytes that the format writes.

        Args:
            encode: A format: `ns.JSON`, `ns.MSGPACK`, `ns.TEXT`, `ns.RAW`; or any object with
                `encode` and `decode`; or a function from an object to bytes.
            decode: With a function: the function from bytes to the object.

        Raises:
            ConfigError: One of the two functions is missing, is async, or cannot be called.

        Cost: none; nothing is sent.
        """
        return KeyValue(self._bucket, make_format(encode, decode))

    def with_codec(
        self, *, keys: KeyCodec | None = None, values: ValueCodec | None = None
    ) -> KeyValue[T]:
        """Return this bucket with encoded keys or values; this object stays as it is.

        All calls of the result take and return the application's keys and values. Readers need the
        same codec: nothing in the bucket names it.

        Args:
            keys: Encodes keys into legal ones, such as `ns.Base64Keys()` or `ns.PathKeys()`; None
                leaves keys as they are in this bucket.
            values: Encodes the bytes of values, behind the format of a typed bucket; None leaves
                them as they are.

        Raises:
            ConfigError: It is no codec, none is given, or the bucket has one already.

        Cost: none; nothing is sent.
        Source: ADR-54; orbit.go kvcodec.
        """
        subjects = self._bucket.subjects
        if keys is None and values is None:
            raise ConfigError(
                "with_codec needs keys or values", hint="with_codec(keys=ns.Base64Keys())"
            )
        for name, given, held in (
            ("keys", keys, subjects.key_codec),
            ("values", values, subjects.value_codec),
        ):
            if given is not None and held is not None:
                raise ConfigError(
                    f"bucket {self.name} has a codec for {name}: {held!r}",
                    hint=f"ns.Chained{name.capitalize()}(one, two) is one behind the other",
                )
        if isinstance(values, ValueFormat):
            raise ConfigError(
                f"the format {values.name} turns objects into bytes, a codec bytes into bytes",
                hint="a bucket with a format is kv.typed(ns.JSON)",
            )
        coded = replace(
            subjects,
            key_codec=subjects.key_codec if keys is None else checked_key_codec(keys),
            value_codec=subjects.value_codec if values is None else checked_value_codec(values),
        )
        return KeyValue(self._bucket.with_subjects(coded), self._form)

    # A local mirror, locks and elections.

    def cached(
        self,
        *filters: str,
        max_bytes: int = CACHE_BYTES_MAX,
        timeout: float = _CACHE_TIMEOUT_S,
    ) -> CachedKeyValue[T]:
        """Describe a local mirror of this bucket, to be used with `async with`.

        Reads are answered from memory, writes go to the server. Entering the block waits until the
        mirror has all that the bucket holds.

        Args:
            filters: Keys or filters of keys to mirror; none is all keys.
            max_bytes: The limit of keys and values together; beyond it the mirror ends with
                `CacheFullError` rather than miss keys.
            timeout: Seconds that entering may take.

        Cost: a watch: one consumer on the server, and the memory of the mirrored keys and values.
        """
        options = CacheOptions(max_bytes=max_bytes, timeout_s=timeout)
        return CachedKeyValue(self._bucket, self._form, filters, options)

    def lock(
        self,
        name: str,
        *,
        ttl: float = TTL_S,
        timeout: float | None = _LOCK_TIMEOUT_S,
        holder: str | None = None,
        on_loss: Literal["cancel", "tell"] = "cancel",
        margin: float | None = None,
    ) -> Lock[T]:
        """Describe a lock, to be used as `async with kv.lock("jobs.nightly") as lock`.

        The lock has one holder at a time in the whole account. It is a key of this bucket that
        expires. The holder renews it three times in its ttl; if the holder dies, the lock is free
        after the ttl. The bucket needs `limit_marker_ttl` and a history of 1, on a server of 2.11.

        Args:
            name: The key; no wildcards. A lock is not reentrant: taking the same name again inside
                the block waits for itself.
            ttl: Whole seconds, at most a day, after which the server frees the lock of a holder
                that is gone.
            timeout: Seconds to wait for the lock; 0 is one try, None waits without limit. While a
                server is away, up to 2 s more to take back a claim that it may have stored.
            holder: The holder's name for others to see; None is host and process id.
            on_loss: "cancel" cancels the block when the lock is lost, and it raises LockLostError.
                "tell" lets the block run to its end and raises then; `lock.lost()` and
                `lock.check()` report the loss before.
            margin: Seconds before the server's expiry when the holder counts the lock as lost; None
                is a fifth of the ttl.

        Cost: entering: one round trip if the lock is free, three if it was released within its ttl.
        Held: one round trip for each third of the ttl. Leaving: one round trip, at most 2 s.
        """
        check_choice(on_loss, "on_loss", ("cancel", "tell"))
        if timeout is not None:
            check_seconds(timeout, "timeout", may_be_zero=True)
        self._bucket.subjects.read_subject(name)
        key = LockKey(self._bucket, name, _holder(holder, "holder"), make_terms(ttl, margin))
        return Lock(key, self._form, timeout_s=timeout, on_loss=on_loss)

    def election(
        self,
        name: str,
        *,
        candidate: str | None = None,
        ttl: float = TTL_S,
        margin: float | None = None,
    ) -> Election[T]:
        """Describe an election: `async with election.lead() as term` waits until elected.

        Args:
            name: The key; no wildcards. All candidates use the same.
            candidate: The name of this candidate; None is host and process id.
            ttl: Whole seconds, at most a day, after which the server drops a leader that is gone.
                Until then there is no leader. A leader that resigns is followed at once.
            margin: As for `lock`.

        Cost: none; nothing is sent. A term costs as much as a lock.
        """
        self._bucket.subjects.read_subject(name)
        terms = make_terms(ttl, margin)
        candidate = _holder(candidate, "candidate")
        return Election(self._bucket, self._form, name, candidate=candidate, terms=terms)

    def _bytes(self, key: str, value: T) -> bytes:
        return self._form.to_bytes(value, bucket=self.name, key=key)

    def __repr__(self) -> str:
        return f"<KeyValue {self.name}>"


def _holder(given: str | None, name: str) -> str:
    return f"{socket.gethostname()}:{os.getpid()}" if given is None else check_holder(given, name)
