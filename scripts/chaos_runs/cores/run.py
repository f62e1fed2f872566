"""One run of the crew on core streams: servers, workers, rounds of faults, and the proof.

Law: whatever happens, workers, connections and servers are ended, and the findings are told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import natsstream as ns
from natsstream import JetStream
from scripts.chaos_runs.cores.core_book import Told, brief
from scripts.chaos_runs.cores.crew import LOG, MAP, STREAMS, Crew
from scripts.chaos_runs.faults import Faults
from scripts.chaos_runs.ledger import Content, Findings
from scripts.chaos_runs.leftovers import check_consumers, compare_memory, patience, resident_bytes
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.result import Result
from scripts.chaos_runs.run import PROGRESS_S, Plan, carry_out
from scripts.chaos_runs.schedule import make_round
from scripts.chaos_runs.site import ADMIN_PASSWORD, ADMIN_USER, Site
from scripts.chaos_runs.watch import describe_all_tasks

_LOOK_S = 0.25
_LOG_LINES = 40


async def run(plan: Plan, tell: Callable[[str], None]) -> Result:
    """Run a plan.

    Args:
        plan: What is run.
        tell: Gets lines about what happens.
    """
    return await carry_out(
        plan, tell, lambda result, findings: _Run(plan, tell, result, findings).run()
    )


class _Run:
    """The parts of one run."""

    def __init__(
        self, plan: Plan, tell: Callable[[str], None], result: Result, findings: Findings
    ) -> None:
        self._plan = plan
        self._tell = tell
        self._result = result
        self._findings = findings
        self._site = Site(plan.replicas)
        # The books of letters are for another crew.
        self._load = Load(plan.seed, plan.replicas, Content(1, findings), findings)
        self._crew = Crew(self._load)
        self._healed_ns = 0
        self._memory = 0

    async def run(self) -> None:
        """Run everything, and end everything."""
        site = self._site
        try:
            await site.call(site.start)
            self._result.version = next(iter(site.nodes.values())).version
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
                self._result.log = site.log_tail(_LOG_LINES)
            for pid in await site.call(site.stop):
                self._findings.add("left behind", f"server process {pid}")
            site.end_thread()

    async def _work(self, js: JetStream, admin: JetStream) -> None:
        crew, is_over = self._crew, False
        faults = Faults(
            self._site,
            STREAMS,
            js,
            admin,
            lambda line: self._tell(f"  {line}"),
            note_kill=self._load.note_kill,
        )
        try:
            clients = await crew.connect(self._site)
            await crew.open(clients)
            crew.begin(clients, js)
            await self._rounds(faults, js)
            with patience():
                self._healed_ns = time.time_ns()
                await self._end(js)
                await crew.abandon()
                await crew.close()
                is_over = True
                await self._check_consumers(js)
        finally:
            if not is_over:
                await faults.end()
                await crew.abandon()
                await crew.close()
            self._note(faults)

    async def _rounds(self, faults: Faults, js: JetStream) -> None:
        plan, site = self._plan, self._site
        loop = asyncio.get_running_loop()
        end = loop.time() + plan.seconds
        await self._check_progress("before the first round")
        for number in range(1, plan.rounds + 1):
            made = make_round(plan.seed, number, plan.replicas)
            self._result.steps.append(str(made))
            self._result.rounds = number
            self._tell(f"round {number}")
            await faults.run(made)
            await site.call(lambda: site.heal(STREAMS))
            await self._check_progress(f"after round {number}")
            await self._compare(js, f"after round {number}")
            self._note_memory(is_first=number == 1)
            acked = self._crew.book.counts["acked"]
            self._tell(f"  healed; {acked:,} acknowledged, {self._findings.count} findings")
            if self._findings.count or loop.time() >= end:
                return

    async def _check_progress(self, when: str) -> None:
        """With all healed, each worker gets on."""
        before = self._crew.progress()

        async def late() -> list[str]:
            now = self._crew.progress()
            return [name for name, count in before.items() if now[name] <= count]

        await self._wait_until_done(late, when)

    async def _compare(self, js: JetStream, when: str) -> None:
        """While nobody writes, all clients come to what the server holds."""
        crew = self._crew
        crew.gate.close()

        async def different() -> list[str]:
            stream = await insist(lambda: js.streams.get(STREAMS[0]))
            held = [
                (each.sequence, each.time_ns // 1_000_000)
                async for each in stream.read(on_loss="report")
            ]
            found: list[str] = []
            for book, core in zip(crew.books, crew.cores, strict=True):
                mine = [(each.seq, each.timestamp) for each in core.raw]
                if mine != held:
                    wrong = sorted({*mine} ^ {*held})[:9]
                    found.append(f"{book.name} differs from the server in {wrong}")
            return found

        await self._wait_until_done(different, when)
        for book, core in zip(crew.books, crew.cores, strict=True):
            book.compare([each.seq for each in core.raw])
        crew.gate.open()

    async def _wait_until_done(self, late: Callable[[], Awaitable[list[str]]], when: str) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PROGRESS_S
        while (names := await late()) and not self._findings.count:
            if loop.time() >= deadline:
                text = f"{when}, all healed, for {PROGRESS_S:g} s: {', '.join(names)}"
                self._findings.add("stands still", f"{text}\n{describe_all_tasks()}")
                return
            await asyncio.sleep(_LOOK_S)

    async def _end(self, js: JetStream) -> None:
        """Let all come to its end, and prove it."""
        crew = self._crew
        await crew.end()
        await self._compare(js, "at the end")
        core = crew.cores[0]
        crew.book.judge(
            [
                Told(raw.seq, raw.key, brief(value))
                for raw, value in zip(core.raw, core.messages, strict=True)
            ]
        )
        for book in crew.books:
            book.judge()
        await self._compare_layers(js)
        self._note_memory()

    async def _compare_layers(self, js: JetStream) -> None:
        """Compare all maps and logs with new ones, which load what the server holds."""
        crew = self._crew
        async with await js.dkv(MAP) as dkv, await js.dstream(LOG) as log:
            wanted, values = dkv.get_all(), log.get_all()

            async def late() -> list[str]:
                pairs = [(each.get_all(), wanted) for each in crew.maps]
                pairs += [(each.get_all(), values) for each in crew.logs]
                return [f"client {at}" for at, (mine, held) in enumerate(pairs) if mine != held]

            await self._wait_until_done(late, "map and log at the end")
            crew.map_book.compare("a new client", wanted)
            crew.log_book.compare("a new client", values, is_told=False)
        for book, dkv, log in zip(crew.books, crew.maps, crew.logs, strict=True):
            crew.map_book.compare(book.name, dkv.get_all())
            crew.log_book.compare(book.name, log.get_all())

    async def _check_consumers(self, js: JetStream) -> None:
        for stream in STREAMS:
            await check_consumers(
                js,
                stream,
                self._healed_ns,
                self._load,
                waits_for_orphans=self._plan.waits_for_orphans,
            )

    def _note_memory(self, *, is_first: bool = False) -> None:
        resident = resident_bytes()
        self._result.note_memory(resident)
        if is_first:
            self._memory = resident
        compare_memory(self._memory, resident, self._findings)

    def _note(self, faults: Faults) -> None:
        result, load, crew = self._result, self._load, self._crew
        result.faults = {str(kind): count for kind, count in faults.done.items()}
        books = {"core": crew.book, "map": crew.map_book, "log": crew.log_book}
        result.writers = {name: {"acked": 0} | dict(each.counts) for name, each in books.items()}
        result.readers = {
            each.name: {"messages": each.count, "conflated": each.conflated, "resumes": 0}
            for each in crew.books
        }
        result.hands = {"done": crew.progress()}
        result.errors = dict(load.errors)
        asked = {f"{kind}: not granted": count for kind, count in faults.failed.items()}
        result.counts = dict(load.counts) | asked
