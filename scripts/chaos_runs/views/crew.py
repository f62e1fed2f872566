"""All workers on the views: who they are, on which connection, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from natsstream import JetStream
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.site import Site
from scripts.chaos_runs.views.bucket_book import BucketBook
from scripts.chaos_runs.views.lock_book import LockBook
from scripts.chaos_runs.views.lockers import Locker
from scripts.chaos_runs.views.mirrors import Mirrored
from scripts.chaos_runs.views.movers import Getter, Putter
from scripts.chaos_runs.views.object_book import ObjectBook
from scripts.chaos_runs.views.owners import BriefOwner, Owner, Sweeper
from scripts.chaos_runs.views.watchers import Reader, Watcher
from scripts.chaos_runs.workers import Workers

KEPT = "chaos-kept"
"""A bucket with a long history, whose markers stay."""
SWEPT = "chaos-swept"
"""A bucket without history, whose markers somebody removes, and with keys that expire."""
LOCKS = "chaos-locks"
LOCK = "jobs.nightly"
STORE = "chaos-objects"
STREAMS = (f"KV_{KEPT}", f"KV_{SWEPT}", f"KV_{LOCKS}", f"OBJ_{STORE}")
CLIENTS = (
    "views-writers-1",
    "views-writers-2",
    "views-watchers-1",
    "views-watchers-2",
    "views-locks",
    "views-objects",
)
_HISTORY = 64
# Longer than a run: a watch that was cut off still learns that a key has expired.
_MARKERS_S = 3_600
_LOCKERS = 4

_KEPT_KEYS = (("one.a", "one.b.c", "one.d_/=-x"), ("two.a", "two.b.c", "two.E.f.g.h"))
_SWEPT_KEYS = (("one.a", "one.b"), ("two.a", "two.b.c"))
_BRIEF_KEYS = ("brief.a", "brief.b", "brief.c")
_MIRRORED_KEYS = ("mine.a", "mine.b")
_OBJECTS = (("one/a.bin", "one b"), ("two.c", "two/*.>d"))


@dataclass(slots=True)
class Bucket:
    """One bucket of the run.

    Attributes:
        name: Its name.
        book: What was written to it.
        keys: All keys that somebody writes.
        brief: Those that expire.
        watchers: Who watches it.
        mirrors: Who keeps a local mirror of it.
    """

    name: str
    book: BucketBook
    keys: Sequence[str]
    brief: Sequence[str] = ()
    watchers: list[Watcher] = field(default_factory=list[Watcher])
    mirrors: list[Mirrored] = field(default_factory=list[Mirrored])


class Crew(Workers):
    """All workers of a run.

    Args:
        load: The state that they share.

    Attributes:
        buckets: The buckets that are judged by their content.
        lock_book: Who has held the lock.
        object_book: What was put into the store.
    """

    def __init__(self, load: Load) -> None:
        super().__init__(load)
        kept = [*_flat(_KEPT_KEYS), *_MIRRORED_KEYS]
        swept = [*_flat(_SWEPT_KEYS), *_BRIEF_KEYS]
        self.buckets: Sequence[Bucket] = (
            Bucket(KEPT, BucketBook(load.findings, name=KEPT), kept),
            Bucket(
                SWEPT,
                BucketBook(load.findings, name=SWEPT, brief=_BRIEF_KEYS, swept=swept),
                swept,
                _BRIEF_KEYS,
            ),
        )
        self.lock_book: LockBook = LockBook(LOCK, load.findings)
        self.object_book: ObjectBook = ObjectBook(load.findings)

    async def create(self, js: JetStream) -> None:
        """Make the buckets and the store."""
        replicas = self.load.replicas
        await insist(lambda: js.kv.ensure(KEPT, history=_HISTORY, replicas=replicas))
        for name in (SWEPT, LOCKS):
            await insist(
                lambda name=name: js.kv.ensure(name, limit_marker_ttl=_MARKERS_S, replicas=replicas)
            )
        await insist(lambda: js.objects.ensure(STORE, replicas=replicas))

    async def connect(self, site: Site) -> list[JetStream]:
        """Open the connections."""
        return await self.connect_all(CLIENTS, site, STREAMS[0])

    def begin(self, clients: Sequence[JetStream]) -> None:
        """Start all workers."""
        load = self.load
        self.watch()
        writes, more_writes, watches, more_watches, locks, objects = clients
        for bucket, keys in zip(self.buckets, (_KEPT_KEYS, _SWEPT_KEYS), strict=True):
            for js, own, who in zip((writes, more_writes), keys, ("one", "two"), strict=True):
                name = f"owner {who} of {bucket.name}"
                self.start(Owner(load, js, bucket.name, bucket.book, own, name))
            self.start(Reader(load, more_watches, bucket.name, bucket.book, bucket.keys))
            self._begin_watches(bucket, watches, more_watches)
        kept, swept = self.buckets
        brief = "owner of brief keys"
        self.start(BriefOwner(load, more_writes, SWEPT, swept.book, _BRIEF_KEYS, brief))
        self.start(Sweeper(load, writes, SWEPT))
        kept.mirrors.append(Mirrored(load, more_watches, KEPT, kept.book, _MIRRORED_KEYS))
        self.start(kept.mirrors[0])
        for number in range(1, _LOCKERS + 1):
            js = locks if number % 2 else writes
            self.start(Locker(load, js, LOCKS, LOCK, self.lock_book, number))
        for names, who in zip(_OBJECTS, ("one", "two"), strict=True):
            js = objects if who == "one" else more_writes
            self.start(Putter(load, js, STORE, self.object_book, names, f"putter {who}"))
        self.start(Getter(load, objects, STORE, self.object_book, _flat(_OBJECTS)))

    def _begin_watches(self, bucket: Bucket, watches: JetStream, more: JetStream) -> None:
        load, name, book = self.load, bucket.name, bucket.book
        bucket.watchers += [
            Watcher(load, watches, name, book, "steady"),
            Watcher(load, watches, name, book, "steady", ["one.>", "*.a", "one.*"]),
            Watcher(load, more, name, book, "resumed"),
            Watcher(load, more, name, book, "resumed", ["two.*", "brief.>"]),
            Watcher(load, more, name, book, "interrupted"),
            Watcher(load, watches, name, book, "fresh"),
            Watcher(load, watches, name, book, "fresh", ["*.b.c", "one.a"]),
        ]
        for each in bucket.watchers:
            self.start(each)

    def progress(self) -> dict[str, int]:
        """Return how often each worker, and some together, have done what they are there for."""
        return super().progress() | {
            "the lock": self.lock_book.counts["held"],
            "guarded writes": self.lock_book.counts["guarded writes"],
            "markers swept": self.load.counts["markers swept"],
        }


def _flat(groups: Sequence[Sequence[str]]) -> list[str]:
    return [each for group in groups for each in group]
