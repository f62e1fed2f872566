"""Removing what a bucket stores of many keys: old markers, and all keys of a filter.

Law: nothing is removed that was stored after it was looked at. A key that is written again while
its old marker goes keeps its new value; each removal names the last revision that it may reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TypeVar

from natsstream.api.message import Message
from natsstream.api.names import is_literal
from natsstream.errors import (
    ConfigError,
    WrongRevisionError,
)
from natsstream.kv.buckets.conventions import BUCKET
from natsstream.kv.doors.part import Part
from natsstream.kv.entry import operation_of
from natsstream.kv.lifetimes import check_ttl
from natsstream.kv.storing import PURGE_HEADERS, Record, store
from natsstream.publish.schedule import Ttl
from natsstream.units import duration_ns

_HALF_AN_HOUR_S = 1_800.0
# Requests of one call that are under way at once.
_UNDER_WAY_MAX = 64

T = TypeVar("T")


class Removals(Part):
    """Removes many keys."""

    async def purge_deletes(self, *, older_than: float | timedelta = _HALF_AN_HOUR_S) -> int:
        """Remove what deleted keys still take: old markers, and the history before every marker.

        A key that is written again meanwhile keeps its new value. Watches that resume from before
        a removed marker do not learn of the deletion, so give them time. With one replica on disk a
        server that is killed afterwards may bring a value from before the deletion back
        (nats-server issue 8505); a marker that stays prevents that.

        Args:
            older_than: Seconds or timedelta, by the server's clock: markers of at least this age
                go; of younger ones only the history before them. 0 is all markers.

        Returns:
            How many revisions were removed, markers included.

        Raises:
            ConfigError: The duration is none, or the bucket is a mirror: nothing was sent.
            NotPermittedError: The bucket's stream has `deny_purge`.
            BucketNotFoundError: The bucket was deleted.
            TransportError: No answer; what was removed stays so, and it may be repeated.

        Cost: the headers of each key's newest entry; then one request for each marker, 64 of them
        under way at once, and the memory of their subjects.
        Source: ADR-8; nats.go jetstream/kv.go PurgeDeletes; nats CLI `nats kv compact`.
        """
        age_ns = duration_ns(older_than)
        self._refuse_mirror("purge_deletes")
        with BUCKET.translate_errors(self.name):
            info = await self._stream.info()
            markers = await self._markers()
            limit_ns = info.time_ns - age_ns

            async def remove(marker: tuple[str, int, int]) -> int:
                subject, revision, created_ns = marker
                # At 0 also what was stored since the server told its time.
                is_old = not age_ns or created_ns <= limit_ns
                before = revision + 1 if is_old else revision
                return await self._stream.purge(subject=subject, before=before)

            return await _sum_of(remove, markers)

    async def _markers(self) -> list[tuple[str, int, int]]:
        """Return subject, revision and time of each key whose newest record is a marker."""
        latest = self._stream.latest(filters=[f"{self._place.read_prefix}>"], headers_only=True)
        async with latest as tail:
            return [
                (message.subject, message.sequence, message.time_ns)
                async for message in tail.initial()
                if operation_of(message) != "PUT" and is_literal(message.subject)
            ]

    async def purge_matching(self, *filters: str, ttl: Ttl | None = None) -> int:
        """Purge every key that has a value and that one of the filters matches.

        Each gets its own marker, as `purge` writes it, so that watches and caches learn of it. A
        key that is written while this runs keeps its new value.

        Args:
            filters: Keys, or filters with wildcards: `*` is one token, a final `>` the rest; at
                least one. ">" is the whole bucket.
            ttl: Whole seconds after which the markers are gone too; as for `create`.

        Returns:
            How many keys were purged.

        Raises:
            KeyNameError: A filter is not legal; nothing was sent.
            ConfigError: No filter is given, or the ttl has no legal value; nothing was sent.
            BucketNotFoundError: The bucket was deleted.
            NatsStreamError: What `purge` raises; the keys before it are purged, and it may be
                repeated.

        Cost: the headers of each matching key's newest entry; then one message for each key, 64
        of them under way at once. `kv.stream.purge(subject=...)` is one round trip, but nobody
        learns of it.
        Source: nats.js kv.ts purge with wildcards.
        """
        if not filters:
            raise ConfigError(
                "purge_matching names no key", hint='purge_matching(">") is the whole bucket'
            )
        check_ttl(self._stream.cached.config, self.name, ttl, is_over_a_value=False)
        subjects = [self._place.read_filter(each) for each in filters]
        with BUCKET.translate_errors(self.name):
            async with self._stream.latest(filters=subjects, headers_only=True) as tail:
                found = [
                    each
                    async for each in tail.initial()
                    if operation_of(each) == "PUT" and is_literal(each.subject)
                ]
        return await _sum_of(lambda each: self._purge_one(each, ttl), found)

    async def _purge_one(self, message: Message, ttl: Ttl | None) -> int:
        """Write a marker over a message that is still its key's newest; return how many: 0 or 1."""
        # As it is stored: the codec that wrote it may be another one.
        key = message.subject[len(self._place.read_prefix) :]
        record = Record(
            key=key,
            subject=self._place.write_prefix + key,
            headers=PURGE_HEADERS,
            revision=message.sequence,
            ttl=ttl,
            rollup="subject",
        )
        try:
            await store(self._js, self._stream, self._place, record)
        except WrongRevisionError:
            return 0  # It was written, deleted or purged meanwhile: that is newer than we are.
        return 1

    def _refuse_mirror(self, what: str) -> None:
        if self._stream.cached.config.mirror is not None:
            raise ConfigError(
                f"bucket {self.name} is a mirror: {what} would remove from the copy alone",
                hint="do it at the origin; mirrors follow",
            )


async def _sum_of(act: Callable[[T], Awaitable[int]], items: Sequence[T]) -> int:
    """Do something with each item, a limited number at once, and return the sum of the results.

    After a failure nothing more is begun; it is raised when all that is under way has ended.
    """
    total = 0
    for start in range(0, len(items), _UNDER_WAY_MAX):
        some = items[start : start + _UNDER_WAY_MAX]
        outcomes = await asyncio.gather(*map(act, some), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            total += outcome
    return total
