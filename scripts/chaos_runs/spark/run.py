"""One run of the crew of Spark: servers, a cluster, kills, and the proof.

Law: whatever happens, drivers, executors and servers are ended, and the findings are told.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

from natsstream import JetStream
from natsstream.errors import NatsStreamError
from scripts.chaos_runs.ledger import Content, Findings, WriterBook
from scripts.chaos_runs.leftovers import resident_bytes
from scripts.chaos_runs.letters import SUBJECT_PREFIX
from scripts.chaos_runs.load import Load, describe_client, insist
from scripts.chaos_runs.plan import Plan, carry_out
from scripts.chaos_runs.result import Result
from scripts.chaos_runs.site import ACCOUNT, Site
from scripts.chaos_runs.spark.book import digest_of, judge_order, judge_rows
from scripts.chaos_runs.spark.cluster import SparkCluster
from scripts.chaos_runs.spark.driver import Driver
from scripts.chaos_runs.spark.program import EXECUTORS, SOURCE, TARGET
from scripts.chaos_runs.spark.schedule import QUERIES, Kill, describe_round, make_kills
from scripts.chaos_runs.spark.stored import committed, copied_rows, open_batch, table_rows
from scripts.chaos_runs.writers import WAYS, publish_pipelined

# A hundred messages a second each: more than both queries take is a backlog at the end.
WRITERS = 1
_LOG_LINES = 40
_LOOK_S = 0.02
# A driver starts, its executors start, and a server may just have come back.
_PROGRESS_S = 120.0
_WRITERS_END_S = 60.0
# On each connection: a partition of some hundred messages takes most of a second to read.
_BYTES_PER_S = 250_000


async def run(plan: Plan, tell: Callable[[str], None]) -> Result:
    """Run a plan.

    Args:
        plan: The faults and the servers.
        tell: Gets lines about what happens.
    """

    async def work(result: Result, findings: Findings) -> None:
        with tempfile.TemporaryDirectory(prefix="natsstream-spark-") as folder:
            # The books of letters are for another crew.
            load = Load(plan.seed, plan.replicas, Content(1, findings), findings)
            await _SparkRun(plan, tell, result, load, Path(folder)).run()

    return await carry_out(plan, tell, work)


class _SparkRun:
    """The parts of one run."""

    def __init__(
        self,
        plan: Plan,
        tell: Callable[[str], None],
        result: Result,
        load: Load,
        folder: Path,
    ) -> None:
        self._plan = plan
        self._tell = tell
        self._result = result
        self._load = load
        self._findings = load.findings
        self._folder = folder
        self._site = Site(plan.replicas, plan.binary)
        self._cluster = SparkCluster(folder)
        self._books = [WriterBook(f"again{n}", n, plan.capacity) for n in range(WRITERS)]
        self._kills: Counter[str] = Counter()
        self._rows: dict[str, int] = {}

    async def run(self) -> None:
        """Run everything, and end everything."""
        site, cluster = self._site, self._cluster
        try:
            await site.call(site.start)
            self._result.version = next(iter(site.nodes.values())).version
            await site.call(cluster.start)
            async with AsyncExitStack() as stack:
                names = ("chaos-past-proxies", "chaos-writers")
                js, writing = [
                    await stack.enter_async_context(describe_client(name, site.direct_urls))
                    for name in names
                ]
                await self._work(js, writing)
        finally:
            self._note()
            if self._findings.count:
                tails = (each.log_tail(_LOG_LINES) for each in (site, cluster))
                self._result.log = "\n".join(tails)
            for end in (cluster.stop, site.stop):
                for pid in await site.call(end):
                    self._findings.add("left behind", f"process {pid}")
            site.end_thread()

    async def _work(self, js: JetStream, writing: JetStream) -> None:
        for name, subjects in ((SOURCE, f"{SUBJECT_PREFIX}.>"), (TARGET, "copy.>")):
            area = [subjects] if name == SOURCE else ["copy", subjects]
            await js.streams.create(name, subjects=area, replicas=self._plan.replicas)
        await self._heal()
        driver = Driver(self._cluster.url, self._site.urls(0), self._folder, self._findings)
        try:
            async with self._publishing(writing):
                await driver.start()
                await self._check_progress(driver, dict.fromkeys(QUERIES, -1), "at first")
                await self._rounds(js, driver)
            if not self._findings.count:
                await driver.finish()
            if not self._findings.count:
                await self._judge(js)
        finally:
            await driver.kill()
            self._load.counts["drivers"] = driver.starts

    @asynccontextmanager
    async def _publishing(self, js: JetStream) -> AsyncGenerator[None]:
        """Publish meanwhile; in the end all is acknowledged."""
        way = WAYS["again"]
        tasks = [
            asyncio.create_task(publish_pipelined(self._load, js, book, way), name=book.name)
            for book in self._books
        ]
        watching = asyncio.create_task(self._load.watch.run(), name="watch")
        try:
            yield
            self._load.writing_is_over.set()
            async with asyncio.timeout(_WRITERS_END_S):
                await asyncio.gather(*tasks)
        finally:
            for task in (*tasks, watching):
                task.cancel()
            await asyncio.gather(*tasks, watching, return_exceptions=True)

    async def _rounds(self, js: JetStream, driver: Driver) -> None:
        plan, loop = self._plan, asyncio.get_running_loop()
        end = loop.time() + plan.seconds
        for number in range(1, plan.rounds + 1):
            self._result.steps.append(describe_round(plan.seed, number, plan.replicas))
            self._result.rounds = number
            self._tell(f"round {number}")
            for kill in make_kills(plan.seed, number, plan.replicas):
                await asyncio.sleep(kill.calm_s)
                before = self._committed()
                self._tell(f"  {kill}")
                await self._kill(kill, js, driver)
                await self._check_progress(driver, before, f"after {kill}")
                if self._findings.count:
                    return
            self._result.note_memory(resident_bytes())
            if loop.time() >= end:
                return

    async def _kill(self, kill: Kill, js: JetStream, driver: Driver) -> None:
        """Kill something in the middle of a micro-batch of the query."""
        checkpoint = self._checkpoint(kill.query)
        cluster = self._cluster

        async def is_open() -> bool:
            return open_batch(checkpoint) is not None

        async def is_read() -> bool:
            # A partition is read by a consumer that lives as long as the read.
            return await is_open() and bool(await _consumers(js)) and bool(cluster.executors())

        await self._wait(is_read if kill.kind == "executor" else is_open, driver, str(kill))
        await asyncio.sleep(kill.into_batch_s)
        await self._wait(is_read if kill.kind == "executor" else is_open, driver, str(kill))
        batch = open_batch(checkpoint)
        if kill.kind == "server":
            await self._kill_server(kill)
        elif kill.kind == "executor":
            pid = self._load.draw(str(kill)).choice(cluster.executors())
            cluster.kill_executor(pid, has_children=kill.has_children)
            self._kills["executor: partition open"] += bool(await _consumers(js))
        else:
            await driver.kill()
            # What its executors still store, the next one's must fence.
            await asyncio.sleep(kill.away_s)
            self._kills["driver: batch open"] += open_batch(checkpoint) == batch is not None
            await driver.start()
        self._kills[kill.kind] += 1

    async def _kill_server(self, kill: Kill) -> None:
        site = self._site

        def work() -> str:
            if site.cluster is None:
                name = "n1"
            else:
                name = site.cluster.wait_for_leader(SOURCE, account=ACCOUNT).name
            site.nodes[name].kill()
            return name

        name = await site.call(work)
        await asyncio.sleep(kill.away_s)
        await site.call(lambda: site.start_node(name))
        await self._heal()

    async def _heal(self) -> None:
        """Wait until all servers work, and keep the reads slow enough to be hit."""
        await self._site.call(lambda: self._site.heal([SOURCE, TARGET]))
        for proxy in self._site.links.values():
            proxy.limit_rate(_BYTES_PER_S, direction="to_client")

    def _checkpoint(self, query: str) -> Path:
        return self._folder / "checkpoints" / query

    def _committed(self) -> dict[str, int]:
        return {query: committed(self._checkpoint(query)) for query in QUERIES}

    async def _check_progress(self, driver: Driver, before: dict[str, int], when: str) -> None:
        """Each query ends a micro-batch that was not ended before, and one that began after it."""

        async def is_ahead() -> bool:
            now = self._committed()
            return all(now[query] > batch + 1 for query, batch in before.items())

        await self._wait(is_ahead, driver, when)

    async def _wait(self, is_so: Callable[[], Awaitable[bool]], driver: Driver, when: str) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PROGRESS_S
        while not self._findings.count and not await is_so():
            driver.check()
            if loop.time() >= deadline:
                told = f"{when}, for {_PROGRESS_S:g} s: {self._committed()}"
                self._findings.add("stands still", told)
            await asyncio.sleep(_LOOK_S)

    async def _judge(self, js: JetStream) -> None:
        """Compare table and copy with the source, which is read past all proxies."""
        self._tell("reading all again")
        source = await insist(lambda: js.streams.get(SOURCE))
        held = {message.sequence: digest_of(message.data) async for message in source.read()}
        table = table_rows(self._folder / "table")
        target = await insist(lambda: js.streams.get(TARGET))
        copies, order = await copied_rows(target)
        self._rows = {
            "source": len(held),
            "table": judge_rows("the table", table, held, self._findings),
            "copy": judge_rows("the copy", copies, held, self._findings),
        }
        judge_order("the copy", order, self._findings)
        if len({partition for partition, _ in order}) < EXECUTORS:
            self._findings.add("order", "the copy was written by one partition alone")

    def _note(self) -> None:
        """Write into the result what was done."""
        result, batches = self._result, self._committed()
        result.faults = dict(self._kills)
        result.writers = {
            book.name: {each: book.ends[each] for each in ("acked", "refused", "unknown")}
            for book in self._books
        }
        result.readers = {
            query: {"messages": self._rows.get(query, 0), "batches": batches[query] + 1}
            | {"resumes": 0}
            for query in QUERIES
        }
        result.errors = dict(self._load.errors)
        result.counts = dict(self._load.counts) | {"source": self._rows.get("source", 0)}


async def _consumers(js: JetStream) -> list[str]:
    """Return the consumers of the source; none while its leader is away."""
    try:
        answer = await js.core.request(f"$JS.API.CONSUMER.NAMES.{SOURCE}", timeout=1.0)
    except NatsStreamError:
        return []
    names = cast("dict[str, list[str] | None]", json.loads(answer.data))
    return names.get("consumers") or []
