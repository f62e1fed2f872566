"""Who reads a bucket: watches of every kind, and reads of one key or of all.

Law: a reader that was told an error goes on where it was, as a user would: with `resume_after`.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from typing import Literal, TypeAlias

from natsstream import Entry, JetStream, KeyValue, NatsStreamError
from natsstream.kv.watch import Watch
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.views.bucket_book import BucketBook, Seen
from scripts.chaos_runs.views.watch_book import WatchBook
from scripts.chaos_runs.views.worker import STEP_S, SWEEP_S, Worker

Manner: TypeAlias = Literal["steady", "resumed", "interrupted", "fresh"]
"""How a watch is read: one for the whole run, one after the other that each resume where the last
one ended, one whose waits are cancelled all the time, or new ones with drawn options."""

_AGAIN_S = 0.2
_CLOSE_S = 10.0
_SESSION_S = (0.5, 6.0)
_PATIENCE_S = (0.0, 0.3)
_SESSIONS_KEPT = 20
_READ_EVERY_S = 0.05
_LISTED_EVERY = 12


def seen_of(entry: Entry, *, has_value: bool = True) -> Seen:
    """Return what the books know of an entry."""
    value = entry.value if has_value else None
    return Seen(entry.key, entry.revision, entry.operation, value)


class Watcher(Worker):
    """Watches a bucket.

    Args:
        load: What all workers share.
        js: Its connection.
        bucket: The bucket's name.
        book: What was written to it.
        manner: How it reads.
        filters: Of keys; none for all.

    Attributes:
        watch_book: What it was given, in all sessions that each go on from the last.
        left_books: What sessions of "fresh" were given that have ended.
    """

    is_writer: bool = False

    def __init__(
        self,
        load: Load,
        js: JetStream,
        bucket: str,
        book: BucketBook,
        manner: Manner,
        filters: Sequence[str] = (),
    ) -> None:
        super().__init__(load, f"{manner} watch of {bucket} {' '.join(filters)}".strip())
        self._js = js
        self._bucket = bucket
        self._book = book
        self._manner: Manner = manner
        self._filters = filters
        self._draw: random.Random = load.draw(self.name)
        self.watch_book: WatchBook = self._new_book()
        self.left_books: deque[WatchBook] = deque(maxlen=_SESSIONS_KEPT)

    @property
    def is_left(self) -> bool:
        """True for one whose watches end again and again, each with a book of its own."""
        return self._manner == "fresh"

    def _new_book(self, *, ignores_deletes: bool = False, updates: bool = False) -> WatchBook:
        return WatchBook(
            self.name,
            self._book,
            self.load.findings,
            filters=self._filters,
            ignores_deletes=ignores_deletes,
            has_no_initial=updates,
        )

    async def run(self) -> None:
        """Watch until reading is over, however often that breaks."""
        with self.activity.limit("open the bucket", STEP_S):
            kv = await insist(lambda: self._js.kv.get(self._bucket))
        while not self.load.reading_is_over.is_set():
            try:
                if self._manner == "fresh":
                    await self._watch_anew(kv)
                else:
                    await self._watch_on(kv)
            except NatsStreamError as error:
                self.load.note(self.name, error)
            self.load.counts["sessions of watches"] += 1
            await asyncio.sleep(_AGAIN_S)

    async def _watch_on(self, kv: KeyValue) -> None:
        """Go on behind what was given last; at first with all that is kept of each key."""
        book = self.watch_book
        resume_after = book.last or None
        if resume_after is None:
            book.begin_at(0)
        watch = kv.watch(
            *self._filters, include_history=resume_after is None, resume_after=resume_after
        )
        with self.activity.limit("open a watch", STEP_S):
            await watch.__aenter__()
        try:
            with self.activity.limit("initial", STEP_S):
                async for entry in watch.initial():
                    self._see(book, entry)
                    self.activity.beat()
            book.follow()
            seconds = self._draw.uniform(*_SESSION_S) if self._manner == "resumed" else None
            async with asyncio.timeout(seconds):
                if self._manner == "interrupted":
                    while not self.load.reading_is_over.is_set():
                        await self._follow_a_little(watch, book)
                else:
                    async for entry in watch:
                        self._see(book, entry)
        except TimeoutError:
            self.load.counts["watches left"] += 1
        finally:
            with self.activity.limit("leave a watch", _CLOSE_S):
                await watch.__aexit__(None, None, None)

    async def _follow_a_little(self, watch: Watch, book: WatchBook) -> None:
        try:
            async with asyncio.timeout(self._draw.uniform(*_PATIENCE_S)):
                async for entry in watch:
                    self._see(book, entry)
        except TimeoutError:
            self.load.counts["waits of watches cancelled"] += 1

    async def _watch_anew(self, kv: KeyValue) -> None:
        """Watch for some seconds with drawn options."""
        draw = self._draw
        updates_only, ignores_deletes = draw.random() < 0.3, draw.random() < 0.4
        meta_only, has_history = draw.random() < 0.3, draw.random() < 0.4 and not updates_only
        book = self._new_book(ignores_deletes=ignores_deletes, updates=updates_only)
        if has_history:
            book.begin_at(0)
        try:
            async with asyncio.timeout(draw.uniform(*_SESSION_S)):
                async with kv.watch(
                    *self._filters,
                    include_history=has_history,
                    ignore_deletes=ignores_deletes,
                    meta_only=meta_only,
                    updates_only=updates_only,
                ) as watch:
                    async for entry in watch.initial():
                        self._see(book, entry, has_value=not meta_only)
                    book.follow()
                    async for entry in watch:
                        self._see(book, entry, has_value=not meta_only)
        except TimeoutError:
            self.load.counts["watches left"] += 1
        finally:
            self.left_books.append(book)

    def _see(self, book: WatchBook, entry: Entry, *, has_value: bool = True) -> None:
        book.see(seen_of(entry, has_value=has_value))
        self.done += 1
        self.activity.steps += 1


class Reader(Worker):
    """Reads single keys, old revisions, histories and lists of keys."""

    def __init__(
        self, load: Load, js: JetStream, bucket: str, book: BucketBook, keys: Sequence[str]
    ) -> None:
        super().__init__(load, f"reader of {bucket}")
        self._js = js
        self._bucket = bucket
        self._book = book
        self._keys = keys
        self._draw: random.Random = load.draw(self.name)

    async def run(self) -> None:
        """Read until writing is over."""
        with self.activity.limit("open the bucket", STEP_S):
            kv = await insist(lambda: self._js.kv.get(self._bucket))
        count = 0
        while not self.load.writing_is_over.is_set():
            count += 1
            try:
                if count % _LISTED_EVERY:
                    await self._read_one(kv, self._draw.choice(self._keys))
                else:
                    await self._list(kv)
                self.done += 1
            except NatsStreamError as error:
                self.load.note(self.name, error)
                await asyncio.sleep(_AGAIN_S)
            await self.load.pause(_READ_EVERY_S)

    async def _read_one(self, kv: KeyValue, key: str) -> None:
        last = self._book.last_acked(key)
        revision = last.revision if last is not None and self._draw.random() < 0.3 else None
        with self.activity.limit("get", STEP_S):
            entry = await kv.get(key, revision=revision)
        if entry is None:
            return
        if entry.key != key or revision not in (None, entry.revision):
            self.load.findings.add(
                "content",
                f"{self.name}: asked for {key} at {revision}, got {entry.key} at {entry.revision}",
            )
        self._book.see(seen_of(entry), self.name)

    async def _list(self, kv: KeyValue) -> None:
        key = self._draw.choice(self._keys)
        if self._draw.random() < 0.5:
            with self.activity.limit("history", STEP_S):
                async for entry in kv.history(key):
                    self._book.see(seen_of(entry), self.name)
                    self.activity.beat()
            return
        with self.activity.limit("keys", SWEEP_S):
            found = [key async for key in kv.keys()]  # noqa: SIM118 - A bucket is no dict.
        wrong = sorted(set(found) - set(self._keys))
        if wrong or len(set(found)) != len(found):
            self.load.findings.add("content", f"{self.name}: keys() gave {wrong or found}")
