"""The workers of a run with their connections: who they are, how they begin and how they end.

Law: a worker that ends by an error of its own is a finding, and every task is awaited.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack

from natsstream import JetStream
from scripts.chaos_runs import hands_crew
from scripts.chaos_runs.hands_crew import Hands
from scripts.chaos_runs.ledger import WriterBook
from scripts.chaos_runs.letters import SUBJECT_PREFIX
from scripts.chaos_runs.load import STREAM, Load, describe_client
from scripts.chaos_runs.readers import BoundedReader, Follower, Manner, Reader
from scripts.chaos_runs.site import Site
from scripts.chaos_runs.watch import describe_task
from scripts.chaos_runs.writers import WAYS, publish_pipelined, publish_singly

WRITERS = ("single", *WAYS)
CLIENTS = (
    "chaos-writers-1",
    "chaos-writers-2",
    "chaos-readers",
    "chaos-tails-1",
    "chaos-tails-2",
    *hands_crew.CLIENTS,
)
# A message that is sent again, what waits behind it, and a generous time on top.
WRITERS_END_S = 150.0
READERS_END_S = 60.0
_FILTERED_WRITERS = (1, 3)
_DUPLICATE_WINDOW_S = 120


class Crew:
    """All workers of a run.

    Args:
        load: The state that they share.
        capacity: Messages that each writer may send.

    Attributes:
        books: What the writers were told.
        readers: The readers.
        hands: Who takes messages from consumers.
    """

    def __init__(self, load: Load, capacity: int) -> None:
        self._load = load
        self._clients = AsyncExitStack()
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._reading: dict[Reader, asyncio.Task[None]] = {}
        self._watching: asyncio.Task[None] | None = None
        self.books: Sequence[WriterBook] = [
            WriterBook(name, index, capacity, keeps_order=name == "ordered")
            for index, name in enumerate(WRITERS)
        ]
        self.readers: list[Reader] = []
        self.hands: Hands = Hands(load, capacity * len(WRITERS))

    async def create(self, js: JetStream) -> None:
        """Make the stream and its consumers."""
        await js.streams.create(
            STREAM,
            subjects=[f"{SUBJECT_PREFIX}.>"],
            replicas=self._load.replicas,
            duplicate_window=_DUPLICATE_WINDOW_S,
        )
        await self.hands.create(js)

    async def connect(self, site: Site) -> list[JetStream]:
        """Open the connections; each has asked something, so it has all that it keeps."""
        opened: list[JetStream] = []
        for index, name in enumerate(CLIENTS):
            js = await self._clients.enter_async_context(describe_client(name, site.urls(index)))
            await js.streams.get(STREAM)
            opened.append(js)
        return opened

    def begin(self, clients: Sequence[JetStream]) -> None:
        """Start all workers."""
        load = self._load
        self._watching = asyncio.create_task(load.watch.run(), name="watch")
        first, second, reading, tails, more_tails, *for_hands = clients
        self.hands.begin(for_hands)
        single, *pipelined = self.books
        self._write("single", publish_singly(load, first, single))
        for book, js in zip(pipelined, (first, second, second), strict=True):
            self._write(book.name, publish_pipelined(load, js, book, WAYS[book.name]))
        self._read(BoundedReader(load, reading, "messages", "messages"))
        self._read(BoundedReader(load, reading, "arrow", "arrow"))
        self._read(Follower(load, tails, "steady", "steady"))
        self._read(Follower(load, tails, "filtered", "filtered", _FILTERED_WRITERS))
        manners: Sequence[Manner] = ("reopened", "interrupted", "slow")
        for manner in manners:
            self._read(Follower(load, more_tails, manner, manner))

    def _write(self, name: str, work: Coroutine[object, object, None]) -> None:
        self._writing[name] = asyncio.create_task(self._guard(name, work), name=name)

    def _read(self, reader: Reader) -> None:
        self.readers.append(reader)
        name = reader.sightings.name
        self._reading[reader] = asyncio.create_task(self._guard(name, reader.run()), name=name)

    async def _guard(self, name: str, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except Exception:  # noqa: BLE001 - Whatever it is, the run tells it.
            self._load.findings.add("crash", f"{name}: {traceback.format_exc()}")

    def progress(self) -> dict[str, int]:
        """Return the acks of each writer that may still write, and each consumer's deliveries."""
        acked = {book.name: book.ends["acked"] for book in self.books if not book.is_full}
        return acked | self.hands.progress()

    def set_goals(self) -> Callable[[], list[str]]:
        """Return what tells which readers have not come to what is acknowledged now.

        The slow one is behind by nature; it has to come to the end when nobody writes any more.
        """
        goals = {each: self.goal(each) for each in self.readers if each.sightings.name != "slow"}
        return lambda: [
            each.sightings.name for each, goal in goals.items() if each.sightings.last < goal
        ]

    def goal(self, reader: Reader) -> int:
        """Return the last acknowledged sequence that a reader has to come to."""
        wanted = reader.sightings.writers
        return max(book.last_acked_seq for book in self.books if not wanted or book.index in wanted)

    async def end_writing(self) -> None:
        """Let the writers end, each within its own deadlines."""
        self._load.writing_is_over.set()
        await self._end(list(self._writing.values()), WRITERS_END_S)

    async def end_reading(self) -> None:
        """Let the readers end: by themselves, by a close under them, or by cancelling them."""
        self._load.reading_is_over.set()
        for reader, task in self._reading.items():
            if not isinstance(reader, Follower):
                continue
            if reader.sightings.name in ("steady", "filtered"):
                await reader.end()
            else:
                task.cancel()
        await self.hands.end()
        await self._end(list(self._reading.values()), READERS_END_S)
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])

    async def _end(self, tasks: Sequence[asyncio.Task[None]], seconds: float) -> None:
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            place = describe_task(task)
            self._load.findings.add("hangs", f"{task.get_name()} does not end\n{place}")
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=seconds)

    async def abandon(self) -> None:
        """Cancel whoever still works; for a run that ends by an error."""
        await self.hands.end()
        tasks = [*self._writing.values(), *self._reading.values()]
        tasks += [self._watching] if self._watching is not None else []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=READERS_END_S)

    async def disconnect(self) -> None:
        """Close the connections."""
        await self._clients.aclose()
