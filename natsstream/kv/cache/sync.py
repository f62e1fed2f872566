"""Keeps a local mirror in sync: follows the bucket, polls its state, lists its keys after breaks.

Law: an error that ends one of the tasks ends the mirror, so no mirror answers while it is not kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from natsstream.api.at_once import at_once
from natsstream.arguments import check_int, check_seconds
from natsstream.errors import ConnectionLostError, NatsStreamError, UsageError
from natsstream.kv.bucket import Bucket
from natsstream.kv.cache.changes import Changes
from natsstream.kv.cache.contents import CacheContents
from natsstream.kv.cache.freshness import Freshness, LookAtServer
from natsstream.kv.entry import Entry
from natsstream.kv.formats import RAW
from natsstream.kv.locks.leases import now_ns
from natsstream.kv.watch import Watch
from natsstream.read.read_events import Recreated
from natsstream.units import NS_PER_SECOND
from natsstream.waiters import Waiters

_log = logging.getLogger("natsstream.kv")

CACHE_BYTES_MAX = 256 << 20
_LOOK_EVERY_S = 5.0
_LOOK_TIMEOUT_S = 5.0
_RETRY_S = 0.25
# Each filter is one question to the leader.
_FILTERS_ASKED_MAX = 8


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """Options of a mirror.

    Attributes:
        max_bytes: The limit of keys and values together.
        timeout_s: Seconds that filling it may take.
        look_every_s: Seconds between two status requests.
    """

    max_bytes: int = CACHE_BYTES_MAX
    timeout_s: float = 30.0
    look_every_s: float = _LOOK_EVERY_S

    def __post_init__(self) -> None:
        check_int(self.max_bytes, "max_bytes", minimum=1)
        check_seconds(self.timeout_s, "timeout")
        check_seconds(self.look_every_s, "look_every")


class CacheSync:
    """Keeps one mirror.

    Args:
        bucket: The bucket.
        filters: Filters of the mirrored keys; none is all keys.
        options: The options.

    Attributes:
        contents: The mirrored entries.
        freshness: How old they can be.
        changes: The readers of changes.
        arrivals: The tasks that wait for revisions.
        error: The error that has ended it.
        is_filled: True when all has arrived that the bucket held at the beginning.
    """

    def __init__(self, bucket: Bucket, filters: tuple[str, ...], options: CacheOptions) -> None:
        self.contents: CacheContents = CacheContents(options.max_bytes)
        self.freshness: Freshness = Freshness(now_ns())
        self.changes: Changes = Changes()
        self.arrivals: Waiters[int] = Waiters()
        self.error: Exception | None = None
        self.is_filled: bool = False
        self._bucket = bucket
        self._filters = filters
        self._look_every_s = options.look_every_s
        # One value that cannot be decoded is no reason to lose all others.
        self._watch: Watch = Watch(bucket, RAW, filters, on_unreadable="hand_out")
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closing = False
        # The keys that the watch has brought while others are asked for, for each who asks.
        self._arrived: list[set[str]] = []
        self._must_look = asyncio.Event()
        self._last_look = LookAtServer(0, now_ns())

    async def fill(self) -> None:
        """Start, and return when the mirror has all that the bucket held, or has ended."""
        await self._look_at_server()
        await self._watch.__aenter__()
        filled = asyncio.Event()
        jobs = (self._follow(filled), self._look_again_and_again(), self._notice_breaks())
        for job in jobs:
            task = asyncio.create_task(job)
            task.add_done_callback(self._on_end)
            task.add_done_callback(lambda _: filled.set())
            self._tasks.append(task)
        await filled.wait()

    async def close(self) -> None:
        """End the tasks and delete the consumer; closing twice is fine."""
        self._is_closing = True
        for task in self._tasks:
            task.cancel()
        try:
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            self._wake_all()
            await self._watch.close()

    def forget_expired(self) -> None:
        """Drop entries that have expired on the server."""
        self._tell_gone(self.contents.forget_expired(now_ns()))

    async def drop_missing(self) -> int:
        """Drop the keys that the server no longer has; return how many.

        A server that was killed may also have values again whose markers were removed.
        """
        breaks, passed = self._watch.report.resumes, self._watch.revision
        horizon = (await self._bucket.status()).revision
        there = await self._bucket.newest_revisions(self._filters)
        # The watch brings what is newer.
        back = [key for key, at in there.items() if at <= passed and not self.contents.holds(key)]
        await self._take_back(back)
        missing = self.contents.missing(there, horizon)
        for entry in missing:
            self.contents.drop(entry.key)
        self._tell_gone(missing)
        self.freshness.note_listed(breaks)
        self._note_progress()
        return len(missing)

    async def _take_back(self, keys: Sequence[str]) -> None:
        passed, arrived = self._watch.revision, set[str]()
        # The leader of a mirror may lag behind, and is not asked.
        is_origin = self._bucket.config.mirror is None
        self._arrived.append(arrived)
        try:
            entries = await at_once(partial(self._bucket.get, consistent=is_origin), keys)
        finally:
            self._arrived = [each for each in self._arrived if each is not arrived]
        older = [each for each in entries if each is not None and each.revision <= passed]
        # A deletion that has come meanwhile is newer than the answer.
        valid = [each for each in older if each.key not in arrived]
        for entry in self.contents.take_back(valid, now_ns()):
            self.changes.tell(entry, had_value=False)

    async def _follow(self, filled: asyncio.Event) -> None:
        """Take entries from the watch, until it is closed."""
        while True:
            with suppress(ConnectionLostError):
                batches = self._watch.batches(until_caught_up=not self.is_filled)
                async for batch in batches:
                    self._take(batch)
                if self.is_filled:
                    return
                self.is_filled = True
                self._reach(self._last_look.revision)
                filled.set()
                continue
            await asyncio.sleep(_RETRY_S)  # Iterating again retries.

    def _take(self, batch: Sequence[Entry]) -> None:
        for arrived in self._arrived:
            arrived.update(each.key for each in batch)
        for entry in batch:
            had_value = self.contents.holds(entry.key)
            if self.contents.take(entry):
                self.changes.tell(entry, had_value=had_value)
        self._note_progress()

    def _tell_gone(self, gone: Sequence[Entry]) -> None:
        """Report the entries that went without a marker as changes."""
        for each in gone:
            entry: Entry = Entry(
                each.bucket, each.key, b"", each.revision, each.created_ns, "PURGE"
            )
            self.changes.tell(entry, had_value=True)

    def _note_progress(self) -> None:
        self.arrivals.release_below(self.contents.revision + 1)
        self._reach(self._watch.revision)

    def _reach(self, revision: int) -> None:
        self.freshness.reach(revision, breaks=self._watch.report.resumes)

    async def _notice_breaks(self) -> None:
        """Ask for the status right after each break, not after the next pause."""
        async for event in self._watch.events():
            if isinstance(event, Recreated):
                self._note_progress()
                self._must_look.set()

    async def _look_again_and_again(self) -> None:
        """Ask for the status every few seconds: the server's time, its revision, its keys."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(
                    _RETRY_S if self.freshness.must_list else self._look_every_s
                ):
                    await self._must_look.wait()
            self._must_look.clear()
            with suppress(NatsStreamError, TimeoutError):
                async with asyncio.timeout(_LOOK_TIMEOUT_S):
                    before = self._last_look
                    keys_held = await self._look_at_server()
                    await self._find_progress(before)
                self.forget_expired()
                if self.freshness.must_list or keys_held < len(self.contents):
                    await self.drop_missing()
            self.forget_expired()

    async def _look_at_server(self) -> int:
        """Take the server's clock and the bucket's rules; return how many keys it has."""
        asked_ns = now_ns()
        status = await self._bucket.status()
        look = self._last_look = LookAtServer(status.revision, asked_ns, status.stream.time_ns)
        self.contents.set_rules(round(status.ttl * NS_PER_SECOND), look)
        self.freshness.look(look)
        return status.keys

    async def _find_progress(self, before: LookAtServer) -> None:
        """Find out whether the mirror has reached the last look, or the one before."""
        look = self._last_look
        self._note_progress()
        if not self.is_filled or self._watch.revision >= look.revision:
            return
        # The newest revision is gone, or of a key that is not mirrored, or has not arrived yet.
        if len(self._filters) > _FILTERS_ASKED_MAX:
            self._reach(before.revision)  # Heartbeats arrived since: its watch has passed it.
        elif await self._watch.is_current():
            self._reach(look.revision)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        if self._is_closing:
            return
        error = _cancelled(self._bucket.name) if task.cancelled() else task.exception()
        if isinstance(error, Exception) and self.error is None:
            self.error = error
            _log.error("mirror of bucket %s ended: %s", self._bucket.name, error)
            self._wake_all()

    def _wake_all(self) -> None:
        self.arrivals.release_all()
        self.changes.wake()


def _cancelled(bucket: str) -> UsageError:
    return UsageError(
        f"a task of the mirror of bucket {bucket} was cancelled, as with all of the event loop",
        hint="open it again: async with kv.cached() as mirror",
    )
