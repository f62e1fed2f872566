"""One run of the views' crew: servers, workers, rounds of faults, and the proof.

Law: whatever happens, workers, connections and servers are ended, and the findings are told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

import natsstream as ns
from natsstream import JetStream
from scripts.chaos_runs.faults import Faults
from scripts.chaos_runs.ledger import Content, Findings
from scripts.chaos_runs.leftovers import (
    check_consumers,
    check_subscriptions,
    compare_memory,
    patience,
    resident_bytes,
)
from scripts.chaos_runs.load import Load
from scripts.chaos_runs.result import Result
from scripts.chaos_runs.run import Plan, carry_out
from scripts.chaos_runs.schedule import make_round
from scripts.chaos_runs.site import ADMIN_PASSWORD, ADMIN_USER, Site
from scripts.chaos_runs.views.bucket_book import End
from scripts.chaos_runs.views.crew import STREAMS, Crew
from scripts.chaos_runs.views.judges import judge_buckets, judge_lock, judge_store
from scripts.chaos_runs.views.worker import STEP_S, SWEEP_S
from scripts.chaos_runs.watch import describe_all_tasks

_LOOK_S = 0.25
# Nobody stands still whose call may still be under way; the longest is a sweep.
_STILL_S = SWEEP_S + STEP_S
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
        # The books of letters are for the other crew.
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
        crew = self._crew
        await crew.create(js)
        faults = Faults(
            self._site,
            STREAMS,
            js,
            admin,
            lambda line: self._tell(f"  {line}"),
            note_kill=self._note_kill,
        )
        try:
            clients = await crew.connect(self._site)
            subscriptions = await self._site.call(self._site.subscriptions)
            crew.begin(clients)
            await self._rounds(faults)
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
        crew, load = self._crew, self._load
        await crew.end_writing()
        self._tell("reading all again")
        await judge_buckets(js, crew, load)
        await crew.end_reading()
        await judge_lock(js, crew, load)
        await judge_store(js, crew, load)
        await check_subscriptions(self._site, subscriptions, self._findings)
        for stream in STREAMS:
            await check_consumers(
                js,
                stream,
                self._healed_ns,
                load,
                waits_for_orphans=self._plan.waits_for_orphans,
            )
        self._note_memory()

    def _note_kill(self) -> None:
        self._load.note_kill()
        if self._plan.replicas == 1:
            for bucket in self._crew.buckets:
                bucket.book.note_kill()

    async def _rounds(self, faults: Faults) -> None:
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
            self._note_memory(is_first=number == 1)
            done = sum(self._crew.progress().values())
            self._tell(f"  healed; {done:,} done, {self._findings.count} findings")
            if self._findings.count or loop.time() >= end:
                return

    async def _check_progress(self, when: str) -> None:
        """With all healed, each worker gets on."""
        loop, before = asyncio.get_running_loop(), self._crew.progress()
        deadline = loop.time() + _STILL_S

        def late() -> list[str]:
            now = self._crew.progress()
            return [name for name, count in before.items() if now[name] <= count]

        while (names := late()) and not self._findings.count:
            if loop.time() >= deadline:
                text = f"{when}, all healed, for {_STILL_S:g} s: {', '.join(names)}"
                self._findings.add("stands still", f"{text}\n{describe_all_tasks()}")
                return
            await asyncio.sleep(_LOOK_S)

    def _note_memory(self, *, is_first: bool = False) -> None:
        resident = resident_bytes()
        self._result.note_memory(resident)
        if is_first:
            self._memory = resident
        compare_memory(self._memory, resident, self._findings)

    def _note(self, faults: Faults) -> None:
        result, load, crew = self._result, self._load, self._crew
        result.faults = {str(kind): count for kind, count in faults.done.items()}
        books = {bucket.name: bucket.book for bucket in crew.buckets}
        result.writers = {
            name: _told(book.ends) | dict(book.counts)
            for name, book in (books | {"objects": crew.object_book}).items()
        }
        result.readers = {
            each.name: {"messages": each.watch_book.count, "resumes": 0}
            for bucket in crew.buckets
            for each in bucket.watchers
        }
        result.hands = {"lock": dict(crew.lock_book.counts), "done": crew.progress()}
        result.errors = dict(load.errors)
        asked = {f"{kind}: not granted": count for kind, count in faults.failed.items()}
        result.counts = dict(load.counts) | asked


def _told(ends: Mapping[End, int]) -> dict[str, int]:
    ended = ("acked", "refused", "unknown")
    return {each: ends.get(each, 0) for each in ended}
