"""All workers on the views with their connections: who they are, how they begin and end.

Law: a worker that ends by an error of its own is a finding, and every task is awaited.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from natsstream import JetStream
from scripts.chaos_runs.load import Load, describe_client, insist
from scripts.chaos_runs.site import Site
from scripts.chaos_runs.views.bucket_book import BucketBook
from scripts.chaos_runs.views.lock_book import LockBook
from scripts.chaos_runs.views.lockers import Locker
from scripts.chaos_runs.views.mirrors import Mirrored
from scripts.chaos_runs.views.movers import Getter, Putter
from scripts.chaos_runs.views.object_book import ObjectBook
from scripts.chaos_runs.views.owners import BriefOwner, Owner, Sweeper
from scripts.chaos_runs.views.watchers import Reader, Watcher
from scripts.chaos_runs.views.worker import Worker
from scripts.chaos_runs.watch import describe_task

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
_END_S = 150.0

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


class Crew:
    """All workers of a run.

    Args:
        load: What they share.

    Attributes:
        buckets: The buckets that are judged by their content.
        lock_book: Who has held the lock.
        object_book: What was put into the store.
        workers: All of them.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._clients = AsyncExitStack()
        self._tasks: dict[Worker, asyncio.Task[None]] = {}
        self._watching: asyncio.Task[None] | None = None
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

    @property
    def workers(self) -> Sequence[Worker]:
        """All workers that have begun."""
        return [*self._tasks]

    async def create(self, js: JetStream) -> None:
        """Make the buckets and the store."""
        replicas = self._load.replicas
        await insist(lambda: js.kv.ensure(KEPT, history=_HISTORY, replicas=replicas))
        for name in (SWEPT, LOCKS):
            await insist(
                lambda name=name: js.kv.ensure(name, limit_marker_ttl=_MARKERS_S, replicas=replicas)
            )
        await insist(lambda: js.objects.ensure(STORE, replicas=replicas))

    async def connect(self, site: Site) -> list[JetStream]:
        """Open the connections; each has asked something, so it has all that it keeps."""
        opened: list[JetStream] = []
        for index, name in enumerate(CLIENTS):
            opened.append(await self._connect(name, site.urls(index)))
        return opened

    async def _connect(self, name: str, urls: Sequence[str]) -> JetStream:
        js = await insist(lambda: self._clients.enter_async_context(describe_client(name, urls)))
        await insist(lambda: js.streams.get(STREAMS[0]))
        return js

    def begin(self, clients: Sequence[JetStream]) -> None:
        """Start all workers."""
        load = self._load
        self._watching = asyncio.create_task(load.watch.run(), name="watch")
        writes, more_writes, watches, more_watches, locks, objects = clients
        for bucket, keys in zip(self.buckets, (_KEPT_KEYS, _SWEPT_KEYS), strict=True):
            for js, own, who in zip((writes, more_writes), keys, ("one", "two"), strict=True):
                name = f"owner {who} of {bucket.name}"
                self._start(Owner(load, js, bucket.name, bucket.book, own, name))
            self._start(Reader(load, more_watches, bucket.name, bucket.book, bucket.keys))
            self._begin_watches(bucket, watches, more_watches)
        kept, swept = self.buckets
        brief = "owner of brief keys"
        self._start(BriefOwner(load, more_writes, SWEPT, swept.book, _BRIEF_KEYS, brief))
        self._start(Sweeper(load, writes, SWEPT))
        kept.mirrors.append(Mirrored(load, more_watches, KEPT, kept.book, _MIRRORED_KEYS))
        self._start(kept.mirrors[0])
        for number in range(1, _LOCKERS + 1):
            js = locks if number % 2 else writes
            self._start(Locker(load, js, LOCKS, LOCK, self.lock_book, number))
        for names, who in zip(_OBJECTS, ("one", "two"), strict=True):
            js = objects if who == "one" else more_writes
            self._start(Putter(load, js, STORE, self.object_book, names, f"putter {who}"))
        self._start(Getter(load, objects, STORE, self.object_book, _flat(_OBJECTS)))

    def _begin_watches(self, bucket: Bucket, watches: JetStream, more: JetStream) -> None:
        load, name, book = self._load, bucket.name, bucket.book
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
            self._start(each)

    def _start(self, worker: Worker) -> None:
        self._tasks[worker] = asyncio.create_task(self._guard(worker), name=worker.name)

    async def _guard(self, worker: Worker) -> None:
        try:
            await worker.run()
        except Exception:  # noqa: BLE001 - Whatever it is, the run tells it.
            self._load.findings.add("crash", f"{worker.name}: {traceback.format_exc()}")

    def progress(self) -> dict[str, int]:
        """Return how often each worker, and some together, have done what they are there for."""
        done = {each.name: each.done for each in self._tasks}
        return done | {
            "the lock": self.lock_book.counts["held"],
            "guarded writes": self.lock_book.counts["guarded writes"],
            "markers swept": self._load.counts["markers swept"],
        }

    async def end_writing(self) -> None:
        """Let those who write end by themselves."""
        self._load.writing_is_over.set()
        await self._end([task for each, task in self._tasks.items() if each.is_writer])

    async def end_reading(self) -> None:
        """Cancel those who read, wherever they wait; each has its time to leave."""
        self._load.reading_is_over.set()
        tasks = [task for each, task in self._tasks.items() if not each.is_writer]
        for task in tasks:
            task.cancel()
        await self._end(tasks)
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])

    async def _end(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=_END_S)
        for task in late:
            place = describe_task(task)
            self._load.findings.add("hangs", f"{task.get_name()} does not end\n{place}")
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_END_S)

    async def abandon(self) -> None:
        """Cancel whoever still works; for a run that ends by an error."""
        for task in self._tasks.values():
            task.cancel()
        await self.end_reading()
        await self._end([*self._tasks.values()])

    async def disconnect(self) -> None:
        """Close the connections."""
        await self._clients.aclose()


def _flat(groups: Sequence[Sequence[str]]) -> list[str]:
    return [each for group in groups for each in group]
