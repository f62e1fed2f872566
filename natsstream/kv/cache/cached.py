"""A local mirror of a bucket, as its users see it: reads from memory, writes through to the server.

Law: nothing is cached that nobody asked for, and nothing is answered from a mirror that is not
filled or has ended: what has ended it is raised. A deleted or expired key is not answered; of a key
that is not mirrored nothing is said.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator
from types import TracebackType
from typing import Self, TypeGuard

from natsstream.arguments import check_int, check_seconds
from natsstream.errors import CodecError, RequestTimeoutError, UsageError
from natsstream.kv.cache.changes import ChangeReader
from natsstream.kv.cache.feed import ChangeFeed
from natsstream.kv.cache.sync import CacheOptions, CacheSync
from natsstream.kv.entry import Entry, readable
from natsstream.kv.locks.leases import now_ns
from natsstream.kv.plain import PlainBucket
from natsstream.publish.outgoing import Payload
from natsstream.publish.schedule import Ttl
from natsstream.units import NS_PER_SECOND

_SEEN_TIMEOUT_S = 5.0


class CachedKeyValue:
    """A bucket that is read from memory; made by `KeyValue.cached`, used with `async with`.

    Attributes:
        plain: The bucket itself.
        name: Its name.
    """

    def __init__(
        self, bucket: PlainBucket, filters: tuple[str, ...], options: CacheOptions
    ) -> None:
        self.plain: PlainBucket = bucket
        self.name: str = bucket.name
        self._filters = filters
        self._timeout_s = options.timeout_s
        self._keeper = CacheSync(bucket, filters, options)
        self._contents = self._keeper.contents
        self._is_entered = False
        self._is_closed = False

    async def __aenter__(self) -> Self:
        """Fill the mirror; returns when it has all that the bucket held.

        Raises:
            CacheFullError: The bucket does not fit into `max_bytes`.
            BucketNotFoundError: There is no such bucket.
            RequestTimeoutError: It was not filled within `timeout`.
            NatsStreamError: What a watch raises.
        """
        if self._is_entered or self._is_closed:
            raise UsageError("a mirror is entered once", hint="call kv.cached() again")
        self._is_entered = True
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._keeper.fill()
            self._check()
        except TimeoutError:
            await self.close()
            raise RequestTimeoutError(
                f"the mirror of bucket {self.name} was not filled within "
                f"{self._timeout_s:g} s: {len(self._contents)} keys so far",
                hint="give a longer timeout, or filters: cached('users.>')",
                retryable=True,
            ) from None
        except BaseException:
            await self.close()
            raise
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
        self._is_closed = True
        await self._keeper.close()

    # Reading, from memory.

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key, or None where it has no value.

        Raises:
            KeyNameError: It is no legal key.
            UsageError: The filters leave the key out; or the block was left, or not entered yet.
            CodecError: The value is not of the bucket's codec's form, as `KeyValue.get` raises.
            NatsStreamError: What has ended the mirror, such as CacheFullError.

        Cost: a look into a dictionary.
        """
        self._check()
        entry = self.find(key) if _is_text(key) else None
        if entry is None and not self.plain.is_among(key, *self._filters):
            raise UsageError(
                f"key {key!r} is not mirrored: the filters are {', '.join(self._filters)}",
                hint="ask the bucket itself, or give a filter to cached() that has the key",
            )
        return None if entry is None else readable(entry)

    def keys(self) -> list[str]:
        """Return the keys that have a value, the one that was written longest ago first.

        A key whose value can not be decoded is among them; one that can not be decoded itself is
        not. `unreadable` tells of both.

        Raises:
            NatsStreamError: What has ended the mirror.

        Cost: the list, and a look at each key with a life time of its own.
        """
        return list(self._live())

    def items(self) -> list[tuple[str, Entry]]:
        """Return the keys with their entries, the one that was written longest ago first.

        Raises:
            CodecError: A value is not of the bucket's codec's form, as `KeyValue.entries` raises;
                `get` answers for each of the others.
            NatsStreamError: What has ended the mirror.

        Cost: as for `keys`.
        """
        return [(key, readable(entry)) for key, entry in self._live().items()]

    def all_items(self) -> list[tuple[str, Entry]]:
        """Return what `items` returns; what can not be decoded comes as an `UnreadableEntry`.

        Raises:
            NatsStreamError: What has ended the mirror.

        Cost: as for `keys`.
        """
        return list(self._live().items())

    @property
    def unreadable(self) -> tuple[CodecError, ...]:
        """Why entries of the mirror can not be read, with keys; empty while everything can.

        Somebody wrote them without the bucket's codec. They end nothing: each is gone from here
        when its key is written anew, deleted or expires.

        Cost: a look at each entry.
        """
        self._check()
        return self._contents.unreadable(now_ns())

    def find(self, key: str) -> Entry | None:
        """Return what is mirrored of a key, an `UnreadableEntry` where it can not be decoded.

        Raises:
            NatsStreamError: What has ended the mirror.
        """
        self._check()
        return self._contents.get(key, now_ns())

    def __contains__(self, key: object) -> bool:
        self._check()
        return _is_text(key) and self.find(key) is not None

    def __len__(self) -> int:
        return len(self._live())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    # How fresh it is.

    @property
    def is_caught_up(self) -> bool:
        """True when everything came that the bucket held when the block was entered."""
        return self._keeper.is_filled

    @property
    def revision(self) -> int:
        """The newest revision that came; everything up to it is in the mirror."""
        return self._contents.revision

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""
        return self.plain.is_connected

    @property
    def staleness(self) -> float:
        """How many seconds old what is answered may be.

        The server is looked at every 5 seconds. A look counts when all that the bucket held then
        has come, and after a break when its keys were listed; so it goes up to 5 while all is well,
        and on and on while the server is away or the mirror is behind. Before it is filled it is
        infinite.
        """
        if not self.is_caught_up:
            return math.inf
        return (now_ns() - self._keeper.freshness.known_ns) / NS_PER_SECOND

    @property
    def size_bytes(self) -> int:
        """What the mirror takes in memory, about."""
        return self._contents.size_bytes

    async def wait_for(self, revision: int, *, timeout: float = _SEEN_TIMEOUT_S) -> None:
        """Wait until the mirror has a revision: `rev = await kv.put(...)`, then it is read here.

        Args:
            revision: What a write returned, of a key that is mirrored.
            timeout: Seconds to wait.

        Raises:
            RequestTimeoutError: It did not come in time; its key may not be among the filters.
            NatsStreamError: What has ended the mirror.
        """
        check_int(revision, "revision", minimum=0)
        check_seconds(timeout, "timeout")
        self._check()
        if not await self._comes(revision, timeout):
            raise RequestTimeoutError(
                f"the mirror of bucket {self.name} has not seen revision {revision} within "
                f"{timeout:g} s; it is at {self.revision}",
                hint="a write of a key that the filters leave out never comes",
                retryable=True,
            )

    async def resync(self) -> int:
        """List the server's keys and drop what it has no more; return how many keys went.

        It is done by itself after a break. Call it where keys are removed without markers, as by a
        purge of the stream.

        Raises:
            NatsStreamError: What `KeyValue.keys` raises.

        Cost: one listing of the mirrored keys.
        """
        self._check()
        return await self._keeper.drop_missing()

    def changes(self) -> AsyncGenerator[Entry]:
        """Return what changes from this call on: the newest entry of each key, deletions too.

        Use it as `async for entry in mirror.changes()`. Who is slow gets the newest entry of a key
        and not those between, and nothing of a key that came and went meanwhile. So what waits is
        never more than the mirror's keys. It ends with the mirror's block.

        Raises:
            CodecError: The entry is not of the bucket's codec's form; iterating again goes on
                behind it.
            NatsStreamError: What has ended the mirror.
        """
        return ChangeFeed(self.all_changes())

    def all_changes(self) -> AsyncGenerator[Entry]:
        """Return what `changes` returns; what can not be decoded comes as an `UnreadableEntry`.

        Raises:
            NatsStreamError: What has ended the mirror.
        """
        self._check()
        return self._changes(self._keeper.changes.add())

    # Writing, through to the server.

    async def put(self, key: str, value: Payload, *, ttl: Ttl | None = None) -> int:
        """Store a value, wait until it is here, and return its revision; see `KeyValue.put`.

        Raises:
            RequestTimeoutError: It was stored but has not come here in time (not retryable, the
                message has the revision), or the server did not answer.
            NatsStreamError: What `KeyValue.put` raises, or what has ended the mirror.
        """
        self._check()
        return await self._seen(key, await self.plain.put(key, value, ttl=ttl))

    async def create(self, key: str, value: Payload, *, ttl: Ttl | None = None) -> int:
        """Store a value where the key has none, and wait until it is here.

        Raises:
            KeyExistsError: The key has a value.
            NatsStreamError: As for `put`.
        """
        self._check()
        return await self._seen(key, await self.plain.create(key, value, ttl=ttl))

    async def update(
        self, key: str, value: Payload, *, revision: int, ttl: Ttl | None = None
    ) -> int:
        """Store a value over the expected revision, and wait until it is here.

        Raises:
            WrongRevisionError: Another revision is the newest.
            NatsStreamError: As for `put`.
        """
        self._check()
        return await self._seen(
            key, await self.plain.update(key, value, revision=revision, ttl=ttl)
        )

    async def delete(self, key: str, *, revision: int | None = None) -> int:
        """Mark a key as deleted, and wait until that is here; raises as `put`."""
        self._check()
        return await self._seen(key, await self.plain.delete(key, revision=revision))

    async def purge(self, key: str, *, revision: int | None = None, ttl: Ttl | None = None) -> int:
        """Mark a key as deleted, remove its history, and wait until that is here; as `put`."""
        self._check()
        return await self._seen(key, await self.plain.purge(key, revision=revision, ttl=ttl))

    # How it is done.

    async def _seen(self, key: str, revision: int) -> int:
        if self.plain.is_among(key, *self._filters) and not await self._comes(
            revision, _SEEN_TIMEOUT_S
        ):
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
                    await self._keeper.arrivals.wait(revision)
                    self._check()
        except TimeoutError:
            return self.revision >= revision
        return True

    async def _changes(self, reader: ChangeReader) -> AsyncGenerator[Entry]:
        while True:
            while (entry := reader.take()) is not None:
                yield entry
            if self._is_closed and self._keeper.error is None:
                return
            self._check()
            reader.wake.clear()
            await reader.wake.wait()

    def _live(self) -> dict[str, Entry]:
        self._check()
        self._keeper.forget_expired()
        return self._contents.all()

    def _check(self) -> None:
        if self._keeper.error is not None:
            raise self._keeper.error.with_traceback(None)  # Else it would grow with each call.
        if self._is_closed or not self._keeper.is_filled:
            state = "was left" if self._is_closed else "is not entered yet, or not filled"
            raise UsageError(
                f"the mirror of bucket {self.name} {state}", hint="use it inside of `async with`"
            )

    def __repr__(self) -> str:
        return f"<CachedKeyValue {self.name}: {len(self._contents)} keys>"


def _is_text(key: object) -> TypeGuard[str]:
    return isinstance(key, str)
