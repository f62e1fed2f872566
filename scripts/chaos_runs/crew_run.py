"""One run of a crew: servers, workers, rounds of faults, and the proof.

Law: whatever happens, workers, connections and servers are ended, and the findings are told.
"""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Protocol

import natsstream as ns
from natsstream import JetStream
from scripts.chaos_runs.faults import Faults
from scripts.chaos_runs.leftovers import (
    GROWTH_BYTES_MAX,
    check_consumers,
    check_subscriptions,
    compare_memory,
    patience,
    resident_bytes,
)
from scripts.chaos_runs.load import Load
from scripts.chaos_runs.plan import PROGRESS_S, Plan
from scripts.chaos_runs.result import Result
from scripts.chaos_runs.site import ADMIN_PASSWORD, ADMIN_USER, Site
from scripts.chaos_runs.watch import describe_all_tasks

_LOOK_S = 0.25
_LOG_LINES = 40
_TRACED_LINES = 25


class AnyCrew(Protocol):
    """The workers of a run."""

    async def create(self, js: JetStream) -> None:
        """Make what they work on."""
        ...

    async def connect(self, site: Site) -> list[JetStream]:
        """Open their connections."""
        ...

    def begin(self, clients: Sequence[JetStream]) -> None:
        """Start them."""
        ...

    def progress(self) -> dict[str, int]:
        """Return how often each has done what it is there for."""
        ...

    async def abandon(self) -> None:
        """Cancel whoever still works."""
        ...

    async def disconnect(self) -> None:
        """Close the connections."""
        ...


class AnyFaults(Protocol):
    """The faults of a run."""

    @property
    def done(self) -> Mapping[str, int]:
        """Return the number of faults of each kind."""
        ...

    @property
    def failed(self) -> Mapping[str, int]:
        """Of these, what was not granted."""
        ...

    def describe(self, number: int) -> str:
        """Return what happens in a round, as lines."""
        ...

    async def run(self, number: int) -> None:
        """Do what happens in a round."""
        ...

    async def end(self) -> None:
        """End the faults of a round that was left before its end."""
        ...


class CrewRun(ABC):
    """The parts of one run.

    Args:
        plan: What is run.
        tell: Gets lines about what happens.
        result: What the run did.
        load: What the workers share.
        crew: The workers.
        streams: The streams that faults disturb.
        spared: As for `Faults`.

    Attributes:
        still_s: Seconds in which each worker has to get on, with all healed.
        growth_bytes_max: How much more memory than after the first round is no finding.
        plan: As given.
        tell: As given.
        result: As given.
        load: As given.
        streams: As given.
        site: The servers.
    """

    still_s: float = PROGRESS_S
    growth_bytes_max: int = GROWTH_BYTES_MAX

    def __init__(
        self,
        plan: Plan,
        tell: Callable[[str], None],
        result: Result,
        load: Load,
        crew: AnyCrew,
        streams: Sequence[str],
        *,
        spared: str = "-",
    ) -> None:
        self.plan: Plan = plan
        self.tell: Callable[[str], None] = tell
        self.result: Result = result
        self.load: Load = load
        self.streams: Sequence[str] = streams
        self._crew = crew
        self._findings = load.findings
        self.site: Site = Site(plan.replicas, plan.binary)
        self._spared = spared
        self._healed_ns = 0
        self._memory = 0
        self._traced: tracemalloc.Snapshot | None = None

    @abstractmethod
    async def end_work(self, js: JetStream) -> None:
        """Let all workers end, and prove what they promise."""

    def set_goals(self) -> Callable[[], list[str]]:
        """Return what tells who has not come to where all have to come from now on."""
        return list[str]

    async def compare(self, js: JetStream, when: str) -> None:
        """Compare what can be compared after a round, with all healed; most crews wait for the end.

        Args:
            js: A connection without faults.
            when: The moment, for findings.
        """
        del js, when

    @abstractmethod
    def note_work(self) -> None:
        """Write into the result what the workers did."""

    def note_kill(self) -> None:
        """Take down that a server is killed now."""
        self.load.note_kill()

    async def start(self) -> None:
        """Start the servers."""
        await self.site.call(self.site.start)

    async def stop(self) -> list[int]:
        """End the servers; returns the processes that are still there."""
        return await self.site.call(self.site.stop)

    def log_tail(self, n_lines: int) -> str:
        """Return the last lines of each log."""
        return self.site.log_tail(n_lines)

    def make_faults(self, js: JetStream, admin: JetStream) -> AnyFaults:
        """Return what disturbs the run.

        Args:
            js: A connection without faults.
            admin: The same for the system account.
        """
        return Faults(
            self.plan,
            self.site,
            self.streams,
            js,
            admin,
            lambda line: self.tell(f"  {line}"),
            note_kill=self.note_kill,
            spared=self._spared,
        )

    async def run(self) -> None:
        """Run everything, and end everything."""
        site = self.site
        try:
            await self.start()
            self.result.version = next(iter(site.nodes.values())).version
            async with AsyncExitStack() as stack:
                js = await stack.enter_async_context(
                    ns.connect(site.direct_urls, name="chaos-past-proxies")
                )
                admin = await stack.enter_async_context(
                    ns.connect(
                        site.direct_urls,
                        name="chaos-admin",
                        user=ADMIN_USER,
                        password=ADMIN_PASSWORD,
                    )
                )
                await self._work(js, admin)
        finally:
            if self._findings.count:
                self.result.log = self.log_tail(_LOG_LINES)
            for pid in await self.stop():
                self._findings.add("left behind", f"process {pid}")
            site.end_thread()

    async def _work(self, js: JetStream, admin: JetStream) -> None:
        crew = self._crew
        await crew.create(js)
        faults = self.make_faults(js, admin)
        try:
            clients = await crew.connect(self.site)
            subscriptions = await self.site.call(self.site.subscriptions)
            crew.begin(clients)
            if self.plan.traces_memory:
                tracemalloc.start()
            await self._rounds(faults, js)
            with patience():
                # From now on nobody leaves a read without the server's answer. Not earlier: one
                # that goes on works off what was asked of it in the fault, and of two requests that
                # it has it may do the deletion before the creation.
                self._healed_ns = time.time_ns()
                await self._end(js, subscriptions)
        finally:
            await faults.end()
            await crew.abandon()
            await crew.disconnect()
            self._note(faults)

    async def _end(self, js: JetStream, subscriptions: dict[str, int]) -> None:
        """Let all come to its end, and prove it."""
        await self.end_work(js)
        await check_subscriptions(self.site, subscriptions, self._findings)
        for stream in self.streams:
            await check_consumers(
                js,
                stream,
                self._healed_ns,
                self.load,
                waits_for_orphans=self.plan.waits_for_orphans,
            )
        self._note_memory()
        if self._traced is not None:
            grown = tracemalloc.take_snapshot().compare_to(self._traced, "lineno")
            self.result.traced = [str(each) for each in grown[:_TRACED_LINES]]
            tracemalloc.stop()

    async def _rounds(self, faults: AnyFaults, js: JetStream) -> None:
        plan, site = self.plan, self.site
        loop = asyncio.get_running_loop()
        end = loop.time() + plan.seconds
        await self.check_progress("before the first round")
        for number in range(1, plan.rounds + 1):
            self.result.steps.append(faults.describe(number))
            self.result.rounds = number
            self.tell(f"round {number}")
            await faults.run(number)
            await site.call(lambda: site.heal(self.streams))
            await self.check_progress(f"after round {number}")
            await self.compare(js, f"after round {number}")
            self._note_memory(is_first=number == 1)
            done = sum(self._crew.progress().values())
            self.tell(f"  healed; {done:,} done, {self._findings.count} findings")
            if self._findings.count or loop.time() >= end:
                return

    async def check_progress(self, when: str) -> None:
        """With all healed, each worker gets on, unless it has ended.

        Args:
            when: The moment, for findings.
        """
        before, behind = self._crew.progress(), self.set_goals()

        async def late() -> list[str]:
            now = self._crew.progress()
            stuck = [name for name, count in before.items() if now.get(name, count + 1) <= count]
            return stuck + behind()

        await self.wait_until_done(late, when)

    async def wait_until_done(self, late: Callable[[], Awaitable[list[str]]], when: str) -> None:
        """Wait until nothing is late, or write down what stands still.

        Args:
            late: Returns what is not as it should be yet.
            when: The moment, for the finding.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.still_s
        while (names := await late()) and not self._findings.count:
            if loop.time() >= deadline:
                text = f"{when}, all healed, for {self.still_s:g} s: {', '.join(names)}"
                self._findings.add("stands still", f"{text}\n{describe_all_tasks(names)}")
                return
            await asyncio.sleep(_LOOK_S)

    def _note_memory(self, *, is_first: bool = False) -> None:
        resident = resident_bytes()
        self.result.note_memory(resident)
        if is_first:
            self._memory = resident
            if tracemalloc.is_tracing():
                self._traced = tracemalloc.take_snapshot()
        compare_memory(self._memory, resident, self.growth_bytes_max, self._findings)

    def _note(self, faults: AnyFaults) -> None:
        result = self.result
        result.faults = dict(faults.done)
        self.note_work()
        result.errors = dict(self.load.errors)
        asked = {f"{kind}: not granted": count for kind, count in faults.failed.items()}
        result.counts = dict(self.load.counts) | asked
