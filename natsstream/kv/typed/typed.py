"""A bucket whose values are objects: the calls of a bucket, with an encoder and a decoder.

Law: everything but the value is the plain bucket's: other clients read the bytes. One value that
can not be read ends nothing: a watch hands it out as such, or raises and can be taken up again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic, Literal

from natsstream.arguments import check_choice
from natsstream.kv.cache.cached import CachedKeyValue
from natsstream.kv.cache.sync import CACHE_BYTES_MAX, CacheOptions
from natsstream.kv.plain import PlainBucket
from natsstream.kv.typed.formats import T, ValueFormat
from natsstream.kv.typed.typed_cache import TypedCachedKeyValue
from natsstream.kv.typed.typed_entry import TypedEntry, decoded, readable
from natsstream.kv.typed.typed_watch import TypedWatch
from natsstream.publish.schedule import Ttl

_UNREADABLE = ("raise", "hand_out")


class TypedKeyValue(Generic[T]):
    """A bucket with objects for values; made by `KeyValue.typed`.

    Attributes:
        plain: The bucket with bytes.
        format: How objects become bytes and back.
        name: The bucket's name.
    """

    def __init__(self, bucket: PlainBucket, form: ValueFormat[T]) -> None:
        self.plain: PlainBucket = bucket
        self.format: ValueFormat[T] = form
        self.name: str = bucket.name

    async def get(
        self, key: str, *, revision: int | None = None, consistent: bool = False
    ) -> TypedEntry[T] | None:
        """Return the entry of a key, or None where it has no value; see `KeyValue.get`.

        Raises:
            ValueDecodeError: The value is none of the format; it has key and revision.
            NatsStreamError: What the plain `get` raises.

        Cost: that of the plain `get`.
        """
        found = await self.plain.get(key, revision=revision, consistent=consistent)
        return None if found is None else readable(decoded(found, self.format), raises=True)

    async def put(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value and return its revision; see `KeyValue.put`.

        Raises:
            ConfigError: The format can not write the value; nothing was sent.
            NatsStreamError: What the plain `put` raises.

        Cost: that of the plain `put`.
        """
        return await self.plain.put(key, self._bytes(key, value), ttl=ttl)

    async def create(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value where the key has none, and return its revision; see `KeyValue.create`.

        Raises:
            KeyExistsError: The key has a value; `revision` says which.
            ConfigError: The format can not write the value; nothing was sent.
            NatsStreamError: What the plain `create` raises.

        Cost: that of the plain `create`.
        """
        return await self.plain.create(key, self._bytes(key, value), ttl=ttl)

    async def update(self, key: str, value: T, *, revision: int, ttl: Ttl | None = None) -> int:
        """Store a value over the expected revision, and return the new one; see `KeyValue.update`.

        Raises:
            WrongRevisionError: Another revision is the newest; nothing was written.
            ConfigError: The format can not write the value; nothing was sent.
            NatsStreamError: What the plain `update` raises.

        Cost: that of the plain `update`.
        """
        return await self.plain.update(key, self._bytes(key, value), revision=revision, ttl=ttl)

    async def delete(self, key: str, *, revision: int | None = None) -> int:
        """Mark a key as deleted and return the marker's revision; see `KeyValue.delete`."""
        return await self.plain.delete(key, revision=revision)

    async def purge(self, key: str, *, revision: int | None = None, ttl: Ttl | None = None) -> int:
        """Mark a key as deleted and remove its history; see `KeyValue.purge`."""
        return await self.plain.purge(key, revision=revision, ttl=ttl)

    async def revert(self, key: str, revision: int) -> int:
        """Store the value of an older revision anew; see `KeyValue.revert`."""
        return await self.plain.revert(key, revision)

    def watch(
        self,
        *filters: str,
        include_history: bool = False,
        ignore_deletes: bool = False,
        updates_only: bool = False,
        resume_after: int | None = None,
        created_ns: int | None = None,
        on_unreadable: Literal["raise", "hand_out"] = "raise",
    ) -> TypedWatch[T]:
        """Describe a watch of keys, to be used with `async with`; see `KeyValue.watch`.

        Args:
            filters: Keys or filters of keys; none is all.
            include_history: Begin with all revisions, not the newest of each key alone.
            ignore_deletes: Leave markers out.
            updates_only: Begin with what is written from now on.
            resume_after: Begin behind this revision: `watch.revision` of an earlier one.
            created_ns: The bucket's identity, `watch.created_ns` of the earlier one.
            on_unreadable: What becomes of a value that can not be read. "raise": the iteration
                raises, and goes on behind it when it is taken up again. "hand_out": the entry
                comes, with `error` set, and its `value` raises.

        Raises:
            ConfigError: An option has no legal value.
            KeyNameError: A filter is no filter of keys.
        """
        check_choice(on_unreadable, "on_unreadable", _UNREADABLE)
        watch = self.plain.watch(
            *filters,
            include_history=include_history,
            ignore_deletes=ignore_deletes,
            updates_only=updates_only,
            resume_after=resume_after,
            created_ns=created_ns,
        )
        return TypedWatch(watch, self.format, raises=on_unreadable == "raise")

    async def entries(
        self, *filters: str, on_unreadable: Literal["raise", "hand_out"] = "raise"
    ) -> AsyncGenerator[TypedEntry[T]]:
        """Yield the newest entry of each key that has a value; see `KeyValue.entries`.

        Args:
            filters: Keys or filters of keys; none is all.
            on_unreadable: "raise", or "hand_out" the entry with `error` set.

        Raises:
            ValueDecodeError: A value can not be read, and `on_unreadable` is "raise".
            NatsStreamError: What the plain `entries` raises.
        """
        check_choice(on_unreadable, "on_unreadable", _UNREADABLE)
        async with aclosing(self.plain.entries(*filters)) as entries:
            async for entry in entries:
                yield readable(decoded(entry, self.format), raises=on_unreadable == "raise")

    async def history(
        self, *filters: str, on_unreadable: Literal["raise", "hand_out"] = "raise"
    ) -> AsyncGenerator[TypedEntry[T]]:
        """Yield the revisions of a key, the oldest first, markers too; see `KeyValue.history`.

        Args:
            filters: A key, or filters of keys; none is all.
            on_unreadable: "raise", or "hand_out" the entry with `error` set.

        Raises:
            ValueDecodeError: A value can not be read, and `on_unreadable` is "raise".
            NatsStreamError: What the plain `history` raises.
        """
        check_choice(on_unreadable, "on_unreadable", _UNREADABLE)
        async with aclosing(self.plain.history(*filters)) as entries:
            async for entry in entries:
                yield readable(decoded(entry, self.format), raises=on_unreadable == "raise")

    async def keys(self, *filters: str) -> AsyncGenerator[str]:
        """Yield the keys that have a value; see `KeyValue.keys`.

        Raises:
            NatsStreamError: What the plain `keys` raises.
        """
        async with aclosing(self.plain.keys(*filters)) as keys:
            async for key in keys:
                yield key

    def cached(
        self, *filters: str, max_bytes: int = CACHE_BYTES_MAX, timeout: float = 30.0
    ) -> TypedCachedKeyValue[T]:
        """Describe a local mirror with objects for values; see `KeyValue.cached`.

        Args:
            filters: Keys or filters of keys that are mirrored; none is all.
            max_bytes: The most that keys and stored values may take together.
            timeout: Seconds that entering may take.

        Raises:
            KeyNameError: A filter is no filter of keys.
            ConfigError: An option has no legal value.

        Cost: that of the plain mirror; a value is decoded each time that it is asked for.
        """
        options = CacheOptions(max_bytes=max_bytes, timeout_s=timeout)
        return TypedCachedKeyValue(CachedKeyValue(self.plain, filters, options), self.format)

    def _bytes(self, key: str, value: T) -> bytes:
        return self.format.to_bytes(value, bucket=self.name, key=key)

    def __repr__(self) -> str:
        return f"<TypedKeyValue {self.name}: {self.format.name}>"
