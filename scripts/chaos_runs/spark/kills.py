"""Carries out the kills of a schedule, each in the middle of a micro-batch.

Law: after each kill both queries come to end a micro-batch that was planned after it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

from natsstream import JetStream
from scripts.chaos_runs.leftovers import consumers_left
from scripts.chaos_runs.load import insist
from scripts.chaos_runs.site import ACCOUNT
from scripts.chaos_runs.spark.cluster import SparkCluster
from scripts.chaos_runs.spark.crew import STREAMS, Crew
from scripts.chaos_runs.spark.program import COPY, SOURCE, TARGET
from scripts.chaos_runs.spark.schedule import Kill, Kind, describe_round, make_kills
from scripts.chaos_runs.spark.stored import open_batch

if TYPE_CHECKING:
    from scripts.chaos_runs.crew_run import CrewRun

# On each connection: a partition of some dozen messages takes most of a second to read.
_BYTES_PER_S = 60_000


class Kills:
    """Carries out rounds.

    Args:
        run: The run, which waits and checks.
        cluster: The cluster whose executors are killed.
        crew: Its driver is killed.
        js: A connection past all proxies.
        kinds: The kinds of kills that are done.

    Attributes:
        done: Kills, by kind, and how often there was something open.
        failed: Empty: nobody is asked.
    """

    def __init__(
        self,
        run: CrewRun,
        cluster: SparkCluster,
        crew: Crew,
        js: JetStream,
        kinds: Collection[Kind],
    ) -> None:
        self._run = run
        self._cluster = cluster
        self._crew = crew
        self._js = js
        self._kinds = kinds
        self._copied: tuple[int, int] | None = None
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def describe(self, number: int) -> str:
        """Return the kills of a round, as lines."""
        plan = self._run.plan
        return describe_round(plan.seed, number, plan.replicas)

    async def run(self, number: int) -> None:
        """Do the kills of a round, one after the other."""
        run, plan = self._run, self._run.plan
        self._slow_down()
        for kill in make_kills(plan.seed, number, plan.replicas):
            if kill.kind not in self._kinds:
                continue
            await asyncio.sleep(kill.calm_s)
            run.tell(f"  {kill}")
            await self._kill(kill)
            await run.check_progress(f"after {kill}")
            if run.load.findings.count:
                return

    async def end(self) -> None:
        """Do nothing: servers are started again, and the driver is the crew's."""

    async def _kill(self, kill: Kill) -> None:
        """Kill something in the middle of a micro-batch of the query."""
        checkpoint = self._crew.checkpoint(kill.query)
        await self._wait(kill)
        await asyncio.sleep(kill.into_batch_s)
        await self._wait(kill)
        batch = open_batch(checkpoint)
        if kill.kind == "server":
            await self._kill_server(kill)
        elif kill.kind == "executor":
            executors = self._cluster.executors()
            if not executors:
                return  # A finding has ended the wait.
            pid = self._run.load.draw(str(kill)).choice(executors)
            self._cluster.kill_executor(pid, has_children=kill.has_children)
            self.done["executor: partition open"] += await self._is_read()
        else:
            driver = self._crew.driver
            await driver.kill()
            # What its executors still store, the next one's must fence.
            await asyncio.sleep(kill.away_s)
            is_open = open_batch(checkpoint) == batch is not None
            self.done["driver: batch open"] += is_open
            self.done["driver: rows stored"] += is_open and kill.is_late
            await driver.start(self._crew.master, self._run.site.urls(0))
        self.done[kill.kind] += 1

    async def _wait(self, kill: Kill) -> None:
        """Wait for the moment of a kill."""
        checkpoint = self._crew.checkpoint(kill.query)

        async def missing() -> list[str]:
            batch = open_batch(checkpoint)
            if batch is None:
                return [f"a micro-batch of the {kill.query}"]
            names: list[str] = []
            if kill.is_late:
                names = await self._not_copied(batch)
            elif kill.kind == "executor":
                # A partition is read by a consumer that lives as long as the read.
                is_read = bool(self._cluster.executors()) and await self._is_read()
                names = [] if is_read else ["a partition that is read"]
            # It may have ended meanwhile.
            is_open = open_batch(checkpoint) == batch
            return names if is_open else [f"another micro-batch of the {kill.query}"]

        await self._run.wait_until_done(missing, f"before {kill}")

    async def _not_copied(self, batch: int) -> list[str]:
        """Tell that a micro-batch has stored no row yet, from when it was seen first."""
        target = await insist(lambda: self._js.streams.get(TARGET))
        newest = await insist(lambda: target.get(last_by_subject=COPY))
        sequence = 0 if newest is None else newest.sequence
        if self._copied is None or self._copied[0] != batch:
            self._copied = (batch, sequence)
        return [] if sequence > self._copied[1] else ["a row of the copy"]

    async def _is_read(self) -> bool:
        total, _ = await consumers_left(self._js, SOURCE, 0)
        return total > 0

    async def _kill_server(self, kill: Kill) -> None:
        site = self._run.site

        def work() -> str:
            name = "n1"
            if site.cluster is not None:
                name = site.cluster.wait_for_leader(SOURCE, account=ACCOUNT).name
            self._run.note_kill()
            site.nodes[name].kill()
            return name

        name = await site.call(work)
        await asyncio.sleep(kill.away_s)
        await site.call(lambda: site.start_node(name))
        await site.call(lambda: site.heal([*STREAMS]))
        self._slow_down()

    def _slow_down(self) -> None:
        """Keep the reads slow enough to be hit."""
        for proxy in self._run.site.links.values():
            proxy.limit_rate(_BYTES_PER_S, direction="to_client")
