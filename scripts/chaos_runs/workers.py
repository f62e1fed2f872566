"""The workers of a crew with their connections: how they begin and how they end.

Law: a worker that ends by an error of its own is a finding, and every task is awaited.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Sequence
from contextlib import AsyncExitStack

from natsstream import JetStream
from scripts.chaos_runs.load import Load, describe_client, insist
from scripts.chaos_runs.site import Site
from scripts.chaos_runs.views.worker import Worker
from scripts.chaos_runs.watch import describe_task

_END_S = 150.0


class Workers:
    """The workers of one crew.

    Args:
        load: The state that they share.

    Attributes:
        load: As given.
        clients: Their connections, and what else ends with them.
        tasks: The tasks of those that have begun.
    """

    def __init__(self, load: Load) -> None:
        self.load: Load = load
        self.clients: AsyncExitStack = AsyncExitStack()
        self.tasks: dict[Worker, asyncio.Task[None]] = {}
        self._watching: asyncio.Task[None] | None = None

    async def connect_all(self, names: Sequence[str], site: Site, stream: str) -> list[JetStream]:
        """Open connections; each has asked for a stream, so it has all that it keeps."""
        opened: list[JetStream] = []
        for index, name in enumerate(names):
            opened.append(await self.connect_one(name, site.urls(index), stream))
        return opened

    async def connect_one(self, name: str, urls: Sequence[str], stream: str) -> JetStream:
        """Open a connection that has asked for a stream."""
        js = await insist(lambda: self.clients.enter_async_context(describe_client(name, urls)))
        await insist(lambda: js.streams.get(stream))
        return js

    def watch(self) -> None:
        """Begin to look whether something hangs."""
        self._watching = asyncio.create_task(self.load.watch.run(), name="watch")

    def start(self, worker: Worker) -> None:
        """Let a worker begin."""
        self.tasks[worker] = asyncio.create_task(self._guard(worker), name=worker.name)

    async def _guard(self, worker: Worker) -> None:
        try:
            await worker.run()
        except Exception:  # noqa: BLE001 - Whatever it is, the run tells it.
            self.load.findings.add("crash", f"{worker.name}: {traceback.format_exc()}")

    def progress(self) -> dict[str, int]:
        """Return how often each has done what it is there for."""
        return {each.name: each.done for each in self.tasks}

    async def end_writing(self) -> None:
        """Let those who write end by themselves."""
        self.load.writing_is_over.set()
        await self._end([task for each, task in self.tasks.items() if each.is_writer])

    async def end_reading(self) -> None:
        """Cancel those who read, wherever they wait; each has its time to leave."""
        self.load.reading_is_over.set()
        tasks = [task for each, task in self.tasks.items() if not each.is_writer]
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
            self.load.findings.add("hangs", f"{task.get_name()} does not end\n{place}")
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_END_S)

    async def abandon(self) -> None:
        """Cancel whoever still works; for a run that ends by an error."""
        for task in self.tasks.values():
            task.cancel()
        await self.end_reading()
        await self._end([*self.tasks.values()])

    async def disconnect(self) -> None:
        """Close the connections."""
        await self.clients.aclose()
