"""A local mirror of a bucket whose values are objects.

Law: one value that can not be read ends no mirror: whoever asks for it is told.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from types import TracebackType
from typing import Generic, Self

from natsstream.kv.cache.cached import CachedKeyValue
from natsstream.kv.entry import Entry
from natsstream.kv.typed.formats import T, ValueFormat
from natsstream.kv.typed.typed_entry import TypedEntry, decoded, readable
from natsstream.publish.schedule import Ttl


class TypedCachedKeyValue(Generic[T]):
    """A bucket of objects that is read from memory; made by `TypedKeyValue.cached`.

    Attributes:
        plain: The mirror below, which gives bytes and says how fresh it is.
        format: How objects become bytes and back.
        name: The bucket's name.
    """

    def __init__(self, mirror: CachedKeyValue, form: ValueFormat[T]) -> None:
        self.plain: CachedKeyValue = mirror
        self.format: ValueFormat[T] = form
        self.name: str = mirror.name

    async def __aenter__(self) -> Self:
        """Fill the mirror; see `CachedKeyValue`.

        Raises:
            NatsStreamError: What a plain mirror raises.
        """
        await self.plain.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Follow no more and free everything; closing twice is fine."""
        await self.plain.close()

    def get(self, key: str) -> TypedEntry[T] | None:
        """Return the entry of a key, or None where it has no value.

        Raises:
            ValueDecodeError: The value is none of the format; it has key and revision.
            CodecError: It is not of the bucket's codec's form.
            NatsStreamError: What a plain mirror raises.

        Cost: a look into a dictionary, and decoding the value.
        """
        found = self.plain.get(key)
        return None if found is None else readable(decoded(found, self.format))

    def keys(self) -> list[str]:
        """Return the keys that have a value, the one that was written longest ago first."""
        return self.plain.keys()

    def items(self) -> list[tuple[str, TypedEntry[T]]]:
        """Return the keys with their entries; one that can not be read has its `error` set.

        Cost: decoding all values.
        """
        return [(key, decoded(entry, self.format)) for key, entry in self.plain.all_items()]

    def __contains__(self, key: object) -> bool:
        return key in self.plain

    def __len__(self) -> int:
        return len(self.plain)

    def __iter__(self) -> Iterator[str]:
        return iter(self.plain)

    @property
    def revision(self) -> int:
        """The newest revision that came; everything up to it is in the mirror."""
        return self.plain.revision

    @property
    def staleness(self) -> float:
        """How many seconds old what is answered may be; see `CachedKeyValue.staleness`."""
        return self.plain.staleness

    async def wait_for(self, revision: int, *, timeout: float = 5.0) -> None:
        """Wait until the mirror has a revision; see `CachedKeyValue.wait_for`.

        Raises:
            RequestTimeoutError: It did not come in time.
            NatsStreamError: What has ended the mirror.
        """
        await self.plain.wait_for(revision, timeout=timeout)

    def changes(self) -> AsyncGenerator[TypedEntry[T]]:
        """Return what changes from this call on; see `CachedKeyValue.changes`.

        An entry that can not be read comes too, with its `error` set.
        """
        return self._changes(self.plain.all_changes())

    async def put(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value, wait until it is here, and return its revision.

        Raises:
            ConfigError: The format can not write the value; nothing was sent.
            NatsStreamError: What the plain mirror's `put` raises.
        """
        return await self.plain.put(key, self._bytes(key, value), ttl=ttl)

    async def create(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value where the key has none, and wait until it is here; raises as `put`."""
        return await self.plain.create(key, self._bytes(key, value), ttl=ttl)

    async def update(self, key: str, value: T, *, revision: int, ttl: Ttl | None = None) -> int:
        """Store a value over the expected revision, and wait until it is here; raises as `put`."""
        return await self.plain.update(key, self._bytes(key, value), revision=revision, ttl=ttl)

    async def delete(self, key: str, *, revision: int | None = None) -> int:
        """Mark a key as deleted, and wait until that is here."""
        return await self.plain.delete(key, revision=revision)

    async def purge(self, key: str, *, revision: int | None = None, ttl: Ttl | None = None) -> int:
        """Mark a key as deleted, remove its history, and wait until that is here."""
        return await self.plain.purge(key, revision=revision, ttl=ttl)

    async def _changes(self, changes: AsyncGenerator[Entry]) -> AsyncGenerator[TypedEntry[T]]:
        async with aclosing(changes):
            async for entry in changes:
                yield decoded(entry, self.format)

    def _bytes(self, key: str, value: T) -> bytes:
        return self.format.to_bytes(value, bucket=self.name, key=key)

    def __repr__(self) -> str:
        return f"<TypedCachedKeyValue {self.name}: {self.format.name}>"
