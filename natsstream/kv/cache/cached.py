"""A local mirror of a bucket: reads from memory, writes through to the server.

Law: a mirror that is not filled, or has ended, answers nothing: it raises the error that ended it.
A deleted or expired key has no entry, and a key that the filters leave out is an error.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator
from typing import Generic, Self

from natsstream.arguments import check_int, check_seconds, counted
from natsstream.errors import CodecError, RequestTimeoutError, UsageError
from natsstream.iteration import Calls
from natsstream.kv.bucket import Bucket
from natsstream.kv.cache.sync import CacheOptions, CacheSync
from natsstream.kv.codecs import T
from natsstream.kv.entry import Entry, decoded, readable
from natsstream.kv.formats import ValueFormat
from natsstream.kv.locks.leases import now_ns
from natsstream.own_loop import OwnLoop
from natsstream.publish.schedule import Ttl
from natsstream.units import NS_PER_SECOND

_SEEN_TIMEOUT_S = 5.0


class CachedKeyValue(Generic[T]):
    """A bucket that is read from memory; made by `KeyValue.cached`, used with `async with`.

    Every method raises the error that has ended the mirror, such as `CacheFullError` or
    `BucketNotFoundError`, and `UsageError` outside of the block.

    Attributes:
        name: The bucket's name.
    """

    def __init__(
        self,
        bucket: Bucket,
        form: ValueFormat[T],
        filters: tuple[str, ...],
        options: CacheOptions,
    ) -> None:
        self.name: str = bucket.name
        self._bucket = bucket
        self._form = form
        self._filters = filters
        self._timeout_s = options.timeout_s
        self._sync = CacheSync(bucket, filters, options)
        self._contents = self._sync.contents
        self._own_loop: OwnLoop | None = None
        self._is_entered = False
        self._is_closed = False

    async def __aenter__(self) -> Self:
        """Fill the mirror; returns when it has all that the bucket holds.

        Raises:
            CacheFullError: The bucket does not fit into `max_bytes`.
            BucketNotFoundError: The bucket does not exist.
            RequestTimeoutError: It was not filled within `timeout`.
            NatsStreamError: As for a watch.
        """
        if self._is_entered or self._is_closed:
            raise UsageError("a mirror is entered once", hint="call kv.cached() again")
        self._is_entered = True
        self._own_loop = OwnLoop()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._sync.fill()
            self._check()
        except TimeoutError:
            await self.close()
            raise RequestTimeoutError(
                f"the mirror of bucket {self.name} was not filled within "
                f"{self._timeout_s:g} s: {counted(len(self._contents), 'key')} so far",
                hint="give a longer timeout, or filters: cached('users.>')",
                retryable=True,
            ) from None
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop following the bucket and free everything; closing twice is fine."""
        self._check_loop()
        self._is_closed = True
        await self._sync.close()

    # Reading, from memory.

    def get(self, key: str) -> Entry[T] | None:
        """Return the entry of a key, or None if the key has no value.

        Raises:
            KeyNameError: The key is not legal.
            UsageError: The filters leave the key out; or the block was left, or not entered yet.
            CodecError: The value cannot be decoded.

        Cost: a look into a dictionary; in a typed bucket, decoding the value.
        """
        entry = self._find(key)
        if entry is None and not self._bucket.is_among(key, self._filters):
            raise UsageError(
                f"key {key!r} is not mirrored: the filters are {', '.join(self._filters)}",
                hint="read the bucket itself, or give a filter to cached() that has the key",
            )
        return None if entry is None else readable(decoded(entry, self._form))

    def keys(self) -> list[str]:
        """Return the keys that have a value, in the order of their revisions.

        A key whose value cannot be decoded is among them. A key that cannot be decoded itself is
        not. `unreadable` has the errors of both.

        Cost: the list, and a look at each key with a ttl of its own.
        """
        return list(self._live())

    def items(self) -> list[tuple[str, Entry[T]]]:
        """Return the keys with their entries, in the order of their revisions.

        An entry whose value cannot be decoded has its `error` set.

        Cost: as for `keys`; in a typed bucket, decoding all values.
        """
        return [(key, decoded(entry, self._form)) for key, entry in self._live().items()]

    @property
    def unreadable(self) -> tuple[CodecError, ...]:
        """The errors of keys and values that cannot be decoded; empty while all can.

        Another program wrote them without the bucket's codec or format. An error goes when its key
        is written again, is deleted or expires.

        Cost: a look at each entry; in a typed bucket, decoding all values.
        """
        self._check()
        entries = self._contents.with_foreign(now_ns())
        errors = (decoded(each, self._form).error for each in entries)
        return tuple(each for each in errors if each is not None)

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def __len__(self) -> int:
        return len(self._live())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    # How fresh it is.

    @property
    def is_caught_up(self) -> bool:
        """True when the mirror has all that the bucket held on entering the block."""
        return self._sync.is_filled

    @property
    def revision(self) -> int:
        """The newest revision received; everything up to it is in the mirror."""
        return self._contents.revision

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""
        return self._bucket.is_connected

    @property
    def staleness(self) -> float:
        """How many seconds old the answers may be.

        The mirror asks the server every 5 seconds what the bucket holds. When all of that has
        arrived, the mirror is as new as that question; after a break, when the keys were listed
        too. So staleness stays below about 5, and grows while the server is away or the mirror is
        behind. It is infinite until the mirror is filled.
        """
        if not self.is_caught_up:
            return math.inf
        return (now_ns() - self._sync.freshness.known_ns) / NS_PER_SECOND

    @property
    def size_bytes(self) -> int:
        """The memory of the mirror, about."""
        return self._contents.size_bytes

    async def wait_for(self, revision: int, *, timeout: float = _SEEN_TIMEOUT_S) -> None:
        """Wait until the mirror has a revision, such as the result of `kv.put`.

        Args:
            revision: The revision of a mirrored key.
            timeout: Seconds to wait.

        Raises:
            RequestTimeoutError: It did not arrive in time; the filters may leave its key out.
        """
        check_int(revision, "revision", minimum=0)
        check_seconds(timeout, "timeout")
        self._check_loop()
        self._check()
        if not await self._comes(revision, timeout):
            raise RequestTimeoutError(
                f"the mirror of bucket {self.name} has not seen revision {revision} within "
                f"{timeout:g} s; it is at {self.revision}",
                hint="writes of keys that the filters leave out do not arrive",
                retryable=True,
            )

    async def resync(self) -> int:
        """List the server's keys, drop all others, and return how many were dropped.

        The mirror does this itself after a break. Call it after keys were removed without markers,
        as by a purge of the stream.

        Raises:
            NatsStreamError: As for `KeyValue.keys`.

        Cost: one listing of the mirrored keys.
        """
        self._check()
        return await self._sync.drop_missing()

    def changes(self) -> AsyncGenerator[Entry[T]]:
        """Return the changes from this call on: the newest entry of each key, deletions too.

        Use it as `async for entry in mirror.changes()`. A slow reader gets the newest entry of a
        key, not those between, and no entry of a key that was created and deleted meanwhile. So the
        backlog is never more than the mirror's keys. An entry that cannot be decoded has its
        `error` set. The iteration ends with the mirror's block.
        """
        self._check_loop()
        self._check()
        reader = self._sync.changes.add()

        async def take() -> Entry[T] | None:
            while (entry := reader.take()) is None:
                if self._is_closed and self._sync.error is None:
                    return None
                self._check()
                reader.wake.clear()
                await reader.wake.wait()
            return decoded(entry, self._form)

        return Calls(take)

    # Writing, through to the server.

    async def put(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value, wait until the mirror has it, and return its revision.

        Raises:
            RequestTimeoutError: It is stored but did not arrive here in time (not retryable, the
                message has the revision), or the server did not answer.
            NatsStreamError: As for `KeyValue.put`.
        """
        return await self._seen(key, await self._bucket.put(key, self._bytes(key, value), ttl=ttl))

    async def create(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value if the key has none, and wait until the mirror has it.

        Raises:
            KeyExistsError: The key has a value.
            NatsStreamError: As for `put`.
        """
        return await self._seen(
            key, await self._bucket.create(key, self._bytes(key, value), ttl=ttl)
        )

    async def update(self, key: str, value: T, *, revision: int, ttl: Ttl | None = None) -> int:
        """Store a value if the newest revision is the expected one; wait until the mirror has it.

        Raises:
            WrongRevisionError: The newest revision is another one.
            NatsStreamError: As for `put`.
        """
        data = self._bytes(key, value)
        return await self._seen(
            key, await self._bucket.update(key, data, revision=revision, ttl=ttl)
        )

    async def delete(self, key: str, *, revision: int | None = None) -> int:
        """Mark a key as deleted, and wait until the mirror has the marker; raises as `put`."""
        self._check()
        return await self._seen(key, await self._bucket.delete(key, revision=revision))

    async def purge(self, key: str, *, revision: int | None = None, ttl: Ttl | None = None) -> int:
        """Mark a key as deleted, remove its history, and wait until the mirror has the marker.

        Raises:
            NatsStreamError: As for `put`.
        """
        self._check()
        return await self._seen(key, await self._bucket.purge(key, revision=revision, ttl=ttl))

    # Internals.

    def _bytes(self, key: str, value: T) -> bytes:
        self._check()
        return self._form.to_bytes(value, bucket=self.name, key=key)

    async def _seen(self, key: str, revision: int) -> int:
        """Wait until the mirror has a written revision, and return that."""
        is_mirrored = self._bucket.is_among(key, self._filters)
        if is_mirrored and not await self._comes(revision, _SEEN_TIMEOUT_S):
            raise RequestTimeoutError(
                f"key {key!r} of bucket {self.name} is written as revision {revision}, which the "
                f"mirror has not seen within {_SEEN_TIMEOUT_S:g} s; it is at {self.revision}",
                hint=f"do not write it again: await mirror.wait_for({revision})",
            )
        return revision

    async def _comes(self, revision: int, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                while self.revision < revision:
                    await self._sync.arrivals.wait(revision)
                    self._check()
        except TimeoutError:
            return self.revision >= revision
        return True

    def _find(self, key: object) -> Entry | None:
        self._check()
        return self._contents.get(key, now_ns()) if isinstance(key, str) else None

    def _live(self) -> dict[str, Entry]:
        self._check()
        self._sync.forget_expired()
        return self._contents.all()

    def _check_loop(self) -> None:
        if self._own_loop is not None:
            self._own_loop.check()

    def _check(self) -> None:
        if self._sync.error is not None:
            raise self._sync.error.with_traceback(None)  # Else it would grow with each call.
        if self._is_closed or not self._sync.is_filled:
            state = "was left" if self._is_closed else "is not entered yet, or not filled"
            raise UsageError(
                f"the mirror of bucket {self.name} {state}", hint="use it inside of `async with`"
            )

    def __repr__(self) -> str:
        return f"<CachedKeyValue {self.name}: {counted(len(self._contents), 'key')}>"
