"""The workers of a Spark run: one publisher, and the driver with its two queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from natsstream import JetStream
from scripts.chaos_runs.ledger import WriterBook
from scripts.chaos_runs.letters import SUBJECT_PREFIX
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.site import Site
from scripts.chaos_runs.spark.driver import Driver
from scripts.chaos_runs.spark.program import COPY, SOURCE, TARGET
from scripts.chaos_runs.spark.schedule import QUERIES, Query
from scripts.chaos_runs.spark.stored import committed, planned
from scripts.chaos_runs.views.worker import Worker
from scripts.chaos_runs.workers import Workers
from scripts.chaos_runs.writers import WAYS, Way, publish_pipelined

STREAMS = {SOURCE: [f"{SUBJECT_PREFIX}.>"], TARGET: [COPY, f"{COPY}.>"]}
# More than both queries take on a busy machine is a backlog at the end.
_LETTERS_PER_S = 15
_WAY = Way(WAYS["again"].retry_for, letters_per_s=_LETTERS_PER_S)


class _Writer(Worker):
    """Publishes into the source.

    Args:
        load: As for `Worker`.
        js: Its connection.
        book: The records of the run.
    """

    def __init__(self, load: Load, js: JetStream, book: WriterBook) -> None:
        super().__init__(load, book.name)
        self._js = js
        self._book = book

    async def run(self) -> None:
        """Publish until writing is over."""
        await publish_pipelined(self.load, self._js, self._book, _WAY)


class Crew(Workers):
    """The publisher and the driver.

    Args:
        load: The state that they share.
        capacity: Messages that may be published.
        folder: For tables, checkpoints and logs.

    Attributes:
        master: The address of Spark's master, once it has started.
        book: The acks of the publisher.
        driver: The driver.
    """

    def __init__(self, load: Load, capacity: int, folder: Path) -> None:
        super().__init__(load)
        self._folder = folder
        self.master: str = ""
        self.book: WriterBook = WriterBook("again", 0, capacity)
        self.driver: Driver = Driver(folder, load.findings)

    async def create(self, js: JetStream) -> None:
        """Make the streams."""
        for name, subjects in STREAMS.items():
            await insist(
                lambda name=name, subjects=subjects: js.streams.ensure(
                    name, subjects=subjects, replicas=self.load.replicas
                )
            )

    async def connect(self, site: Site) -> list[JetStream]:
        """Start the driver, and open the publisher's connection."""
        await self.driver.start(self.master, site.urls(0))
        return await self.connect_all(["chaos-writers"], site, SOURCE)

    def begin(self, clients: Sequence[JetStream]) -> None:
        """Let the publisher begin."""
        self.watch()
        self.start(_Writer(self.load, clients[0], self.book))

    def progress(self) -> dict[str, int]:
        """Return the acks, and the micro-batches of each query that have ended."""
        ended: dict[str, int] = {query: committed(self.checkpoint(query)) for query in QUERIES}
        return ended | {self.book.name: self.book.ends["acked"]}

    def set_goals(self) -> Callable[[], list[str]]:
        """Return what tells which queries have not ended a micro-batch that is planned from now."""
        newest: dict[Query, int] = {query: planned(self.checkpoint(query)) for query in QUERIES}
        return lambda: [
            f"{query} after batch {batch}"
            for query, batch in newest.items()
            if committed(self.checkpoint(query)) <= batch
        ]

    def checkpoint(self, query: Query) -> Path:
        """Return the folder of a query's checkpoint."""
        return self._folder / "checkpoints" / query

    async def abandon(self) -> None:
        """End the driver and the publisher; for a run that ends by an error."""
        await self.driver.kill()
        await super().abandon()
