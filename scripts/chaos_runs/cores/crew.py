"""All workers on core streams, maps and logs with their connections.

Law: a worker that ends by an error of its own is a finding, and every task is awaited.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Sequence
from contextlib import AsyncExitStack

from natsstream import DKV, CoreStream, DStream, JetStream
from natsstream.conat.dkv import KeyChange
from natsstream.conat.names import StreamNames
from natsstream.conat.views import Change
from scripts.chaos_runs.cores.core_book import ClientBook, CoreBook, Told, brief
from scripts.chaos_runs.cores.layer_book import LogBook, MapBook
from scripts.chaos_runs.cores.workers import (
    BIG_BYTES,
    CoreWriter,
    Gate,
    LogWriter,
    MapOwner,
    Reopener,
    Stranger,
    saver_of,
)
from scripts.chaos_runs.load import Load, describe_client, insist
from scripts.chaos_runs.site import Site
from scripts.chaos_runs.views.worker import Worker
from scripts.chaos_runs.watch import describe_task

CORE, MAP, LOG = "chaos core", "chaos map", "chaos log"
STREAMS = tuple(StreamNames(f"hub/{name}").stream for name in (CORE, MAP, LOG))
CLIENTS = ("cores-1", "cores-2", "cores-3")
_WRITERS = 2
_END_S = 150.0
# The stranger tells nobody what it removes: clients find it when they look.
_LOOK_EVERY_S = 2.0


class Crew:
    """All workers of a run.

    Args:
        load: The state that they share.

    Attributes:
        gate: Closed while all is compared.
        book: What was written to the core stream.
        map_book: What was written to the map.
        log_book: What was written to the log.
        cores: A core stream for each connection.
        maps: A map for each.
        logs: A log for each.
        books: What the core stream's clients were told.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._connections = AsyncExitStack()
        self._opened = AsyncExitStack()
        self._past_faults: JetStream | None = None
        self._tasks: dict[Worker, asyncio.Task[None]] = {}
        self._watching: asyncio.Task[None] | None = None
        self.gate: Gate = Gate()
        self.book: CoreBook = CoreBook(load.findings)
        self.map_book: MapBook = MapBook(load.findings)
        self.log_book: LogBook = LogBook(load.findings)
        self.cores: list[CoreStream] = []
        self.maps: list[DKV] = []
        self.logs: list[DStream] = []
        self.books: list[ClientBook] = []

    async def create(self, js: JetStream) -> None:
        """Take the connection past the faults; the clients make their streams by themselves."""
        self._past_faults = js

    async def connect(self, site: Site) -> list[JetStream]:
        """Open the connections, and all documents on each."""
        opened: list[JetStream] = []
        for index, name in enumerate(CLIENTS):
            client = describe_client(name, site.urls(index))
            opened.append(await insist(lambda c=client: self._connections.enter_async_context(c)))
        await self._open(opened)
        return opened

    async def _open(self, clients: Sequence[JetStream]) -> None:
        """Open everything on each connection, and listen to all changes."""
        replicas = self._load.replicas
        for js, name in zip(clients, CLIENTS, strict=True):
            config = {"allow_msg_ttl": True}
            core = await js.core_stream(
                CORE, replicas=replicas, config=config, look_every=_LOOK_EVERY_S
            )
            self._opened.push_async_callback(core.close)
            dkv = await js.dkv(MAP, replicas=replicas)
            self._opened.push_async_callback(dkv.close)
            log = await js.dstream(LOG, replicas=replicas)
            self._opened.push_async_callback(log.close)
            self.cores.append(core)
            self.maps.append(dkv)
            self.logs.append(log)
            self._listen(name, len(self.maps) - 1, core, dkv, log)

        await self._make_blob_streams()

    async def _make_blob_streams(self) -> None:
        """Write a big value each: no stream can be made while servers are away."""
        value = "begin-1-".ljust(BIG_BYTES, "x")
        self.book.send(None, value)
        stored = await insist(lambda: self.cores[0].publish(value))
        if stored is not None:
            self.book.ack(stored.seq, None, value)
        self.map_book.wanted["begin"] = value
        self.maps[0].set("begin", value)
        await insist(self.maps[0].save)

    def _listen(self, name: str, index: int, core: CoreStream, dkv: DKV, log: DStream) -> None:
        book = ClientBook(name, self.book, self._load.findings)
        self.books.append(book)
        core.on("change", lambda change: book.take(told_of(change)))
        dkv.on("change", lambda each: self._take_key(name, index, each))
        log.on("change", lambda each: self.log_book.take(name, each.mesg))
        for each in (core, dkv, log):
            each.on("closed", lambda error: self._note_end(name, error))

    def _take_key(self, name: str, index: int, change: KeyChange) -> None:
        is_owner = change.key.startswith(f"map{index}/")
        self.map_book.take(name, change.key, change.value, is_owner=is_owner)

    def _note_end(self, name: str, error: object) -> None:
        if error is not None:
            self._load.findings.add("ended", f"{name}: {error}")

    def begin(self, clients: Sequence[JetStream]) -> None:
        """Start all workers."""
        load, gate = self._load, self.gate
        self._watching = asyncio.create_task(load.watch.run(), name="watch")
        for number in range(_WRITERS):
            core, dkv, log = self.cores[number], self.maps[number], self.logs[-1 - number]
            self._start(CoreWriter(load, gate, f"core{number}", core, self.book))
            self._start(MapOwner(load, gate, f"map{number}", dkv, self.map_book))
            self._start(LogWriter(load, gate, f"log{number}", log, self.log_book))
        if self._past_faults is not None:
            self._start(Stranger(load, gate, self._past_faults, STREAMS[0], self.book))
        self._start(Reopener(load, clients[-1], CORE))

    def _start(self, worker: Worker) -> None:
        self._tasks[worker] = asyncio.create_task(self._guard(worker), name=worker.name)

    async def _guard(self, worker: Worker) -> None:
        try:
            await worker.run()
        except Exception:  # noqa: BLE001 - Whatever it is, the run tells it.
            self._load.findings.add("crash", f"{worker.name}: {traceback.format_exc()}")

    def progress(self) -> dict[str, int]:
        """Return how often each worker has done what it is there for."""
        return {each.name: each.done for each in self._tasks}

    async def end(self) -> None:
        """Let the writers end by themselves, and cancel the others; then save what is unsaved."""
        self._load.writing_is_over.set()
        self.gate.open()
        for worker, task in self._tasks.items():
            if not worker.is_writer:
                task.cancel()
        await self._wait([*self._tasks.values()])
        for worker in self._tasks:
            saver = saver_of(worker)
            if saver is not None:
                await insist(saver.save)

    async def abandon(self) -> None:
        """Cancel whoever still works."""
        for task in self._tasks.values():
            task.cancel()
        await self._wait([*self._tasks.values()])
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])

    async def _wait(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=_END_S)
        for task in late:
            place = describe_task(task)
            self._load.findings.add("hangs", f"{task.get_name()} does not end\n{place}")
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_END_S)

    async def close(self) -> None:
        """Close all documents; closing twice is fine."""
        await self._opened.aclose()

    async def disconnect(self) -> None:
        """Close the documents and the connections."""
        await self.close()
        await self._connections.aclose()


def told_of(change: Change) -> Told:
    """Return what the books keep of a change."""
    if change.is_removal:
        return Told(change.seq, is_removal=True)
    return Told(
        change.seq,
        change.key,
        brief(change.mesg),
        brief(change.prev),
        is_conflated=change.is_conflated,
    )
