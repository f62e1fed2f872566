"""One run of the crew of Spark: what it proves, and what it tells."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from natsstream import JetStream
from scripts.chaos_runs.crew_run import CrewRun
from scripts.chaos_runs.ledger import Content, Findings
from scripts.chaos_runs.leftovers import GROWTH_BYTES_MAX
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.plan import Plan, carry_out
from scripts.chaos_runs.result import Result
from scripts.chaos_runs.spark.book import digest_of, judge_order, judge_rows
from scripts.chaos_runs.spark.cluster import SparkCluster
from scripts.chaos_runs.spark.crew import STREAMS, Crew
from scripts.chaos_runs.spark.kills import Kills
from scripts.chaos_runs.spark.program import EXECUTORS, SOURCE, TARGET
from scripts.chaos_runs.spark.schedule import KINDS, QUERIES, Kind
from scripts.chaos_runs.spark.stored import copied_rows, table_rows


async def run(plan: Plan, tell: Callable[[str], None], kinds: Collection[Kind] = KINDS) -> Result:
    """Run a plan.

    Args:
        plan: What is run.
        tell: Gets lines about what happens.
        kinds: The kinds of kills; those of the schedule that are of no such kind are left out.
    """

    async def work(result: Result, findings: Findings) -> None:
        with tempfile.TemporaryDirectory(prefix="natsstream-spark-") as folder:
            # The books of letters are for another crew.
            load = Load(plan.seed, plan.replicas, Content(1, findings), findings)
            crew = Crew(load, plan.capacity, Path(folder))
            await _SparkRun(plan, tell, result, crew, Path(folder), kinds).run()

    return await carry_out(plan, tell, work)


class _SparkRun(CrewRun):
    """The parts of one run."""

    # A driver starts, its executors start, and a server may just have come back.
    still_s: float = 300.0
    # Arrow keeps what it has read the table with.
    growth_bytes_max: int = GROWTH_BYTES_MAX + (128 << 20)

    def __init__(
        self,
        plan: Plan,
        tell: Callable[[str], None],
        result: Result,
        crew: Crew,
        folder: Path,
        kinds: Collection[Kind],
    ) -> None:
        super().__init__(plan, tell, result, crew.load, crew, [*STREAMS])
        self._spark = crew
        self._folder = folder
        self._kinds = kinds
        self._cluster = SparkCluster(folder)
        self._rows: dict[str, int] = {}

    async def start(self) -> None:
        """Start the servers and the cluster."""
        await asyncio.gather(super().start(), asyncio.to_thread(self._cluster.start))
        self._spark.master = self._cluster.url

    async def stop(self) -> list[int]:
        """End the cluster and the servers; returns the processes that are still there."""
        return await asyncio.to_thread(self._cluster.stop) + await super().stop()

    def log_tail(self, n_lines: int) -> str:
        """Return the last lines of each log."""
        return f"{super().log_tail(n_lines)}\n{self._cluster.log_tail(n_lines)}"

    def make_faults(self, js: JetStream, admin: JetStream) -> Kills:
        """Return the kills."""
        del admin
        return Kills(self, self._cluster, self._spark, js, self._kinds)

    def set_goals(self) -> Callable[[], list[str]]:
        """Return what tells which queries have not ended a micro-batch that is planned from now."""
        return self._spark.set_goals()

    async def wait_until_done(self, late: Callable[[], Awaitable[list[str]]], when: str) -> None:
        """Wait as all crews do, and look whether the driver has ended by itself.

        Args:
            late: As for `CrewRun`.
            when: As for `CrewRun`.
        """

        async def late_or_ended() -> list[str]:
            self._spark.driver.check()
            return await late()

        await super().wait_until_done(late_or_ended, when)

    async def end_work(self, js: JetStream) -> None:
        """Let the queries come to the end of the source, and prove what they have stored."""
        crew, findings = self._spark, self.load.findings
        await crew.end_writing()
        if not findings.count:
            self.tell("finishing")
            await crew.driver.finish()
        if not findings.count:
            self.tell("reading all again")
            await self._judge(js)
        await crew.driver.kill()
        await crew.end_reading()

    async def _judge(self, js: JetStream) -> None:
        """Compare table and copy with the source, which is read past all proxies."""
        findings = self.load.findings
        source = await insist(lambda: js.streams.get(SOURCE))
        held = {message.sequence: digest_of(message.data) async for message in source.read()}
        target = await insist(lambda: js.streams.get(TARGET))
        copies, order = await copied_rows(target)
        self._rows = {
            "source": len(held),
            "table": judge_rows("the table", table_rows(self._folder / "table"), held, findings),
            "copy": judge_rows("the copy", copies, held, findings),
        }
        judge_order("the copy", order, findings)
        if len({partition for partition, _ in order}) < EXECUTORS:
            findings.add("order", "the copy was written by one partition alone")

    def note_work(self) -> None:
        """Write into the result what the publisher and the queries did."""
        crew, result = self._spark, self.result
        ended, book = crew.progress(), crew.book
        result.writers = {
            book.name: {each: book.ends[each] for each in ("acked", "refused", "unknown")}
        }
        result.readers = {
            query: {"messages": self._rows.get(query, 0), "batches": ended[query] + 1, "resumes": 0}
            for query in QUERIES
        }
        crew.load.counts["drivers"] = crew.driver.starts
        crew.load.counts["source"] = self._rows.get("source", 0)
