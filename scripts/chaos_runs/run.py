"""One run: servers, workers, rounds of faults with a look at all between them, and the proof.

Law: whatever happens, workers, connections and servers are ended, and the findings are told.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
import traceback
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import natsstream as ns
from natsstream import JetStream
from natsstream.testing import server_binary
from scripts.chaos_runs.audit import StreamEnd, audit
from scripts.chaos_runs.crew import WRITERS, Crew
from scripts.chaos_runs.faults import Faults
from scripts.chaos_runs.hands_crew import PREFIX, wanted_of
from scripts.chaos_runs.ledger import Content, Findings, Sightings
from scripts.chaos_runs.leftovers import (
    check_consumers,
    check_subscriptions,
    compare_belongings,
    compare_memory,
    count_belongings,
    patience,
    resident_bytes,
)
from scripts.chaos_runs.letters import HEADER, SUBJECT_PREFIX
from scripts.chaos_runs.load import STREAM, Load
from scripts.chaos_runs.readers import Follower
from scripts.chaos_runs.result import Result
from scripts.chaos_runs.schedule import make_round
from scripts.chaos_runs.site import ADMIN_PASSWORD, ADMIN_USER, Site
from scripts.chaos_runs.watch import describe_all_tasks
from scripts.chaos_runs.writers import LETTERS_PER_S

# After everything is healed: an election, the time to reconnect, a busy machine.
PROGRESS_S = 120.0
_TELL_S = 10.0
_LOOK_S = 0.25
_DUPLICATE_WINDOW_S = 120
_SAMPLES = 300
_LOG_LINES = 40
_TRACED_LINES = 25
# Rounds are longer than their faults: healing takes some seconds.
_HEAL_S = 40.0
_ROUND_S_MAX = 14.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run.

    Attributes:
        seed: Draws faults and load.
        replicas: 1 for one server, 3 for a cluster.
        rounds: How many rounds at most.
        seconds: No round begins after this time.
        waits_for_orphans: Also wait until the server has forgotten the consumers whose deletion
            was lost in a fault, which takes a minute.
        traces_memory: Note where memory is made; several times slower.
        version: The servers' release or line; empty for the installed one.
    """

    seed: int
    replicas: int
    rounds: int = 1_000
    seconds: float = 3_600.0
    waits_for_orphans: bool = True
    traces_memory: bool = False
    version: str = ""

    @property
    def binary(self) -> Path | None:
        """The program of the servers; None for the installed one."""
        return server_binary(self.version) if self.version else None

    @property
    def capacity(self) -> int:
        """Messages that each writer may send."""
        seconds = min(self.seconds + _ROUND_S_MAX, self.rounds * (_ROUND_S_MAX + _HEAL_S))
        return int((seconds + PROGRESS_S) * LETTERS_PER_S)


async def run(plan: Plan, tell: Callable[[str], None]) -> Result:
    """Run a plan.

    Args:
        plan: What is run.
        tell: Gets lines about what happens.
    """
    return await carry_out(
        plan, tell, lambda result, findings: _Run(plan, tell, result, findings).run()
    )


async def carry_out(
    plan: Plan,
    tell: Callable[[str], None],
    work: Callable[[Result, Findings], Awaitable[None]],
) -> Result:
    """Do the work of a crew's run, and tell what was found and what is left of it here.

    Args:
        plan: What is run.
        tell: Gets lines about what happens.
        work: Runs everything and ends everything.
    """
    result = Result(plan.seed, plan.replicas)
    findings = Findings(tell)
    started = time.monotonic()
    before = count_belongings()
    try:
        await work(result, findings)
    except Exception:  # noqa: BLE001 - Whatever it is, the result tells it with its steps.
        findings.add("crash", traceback.format_exc())
    await compare_belongings(before, findings)
    result.seconds = time.monotonic() - started
    result.findings = [str(each) for each in findings.kept]
    if findings.count > len(findings.kept):
        result.findings.append(f"... {findings.count} in all")
    return result


class _Run:
    """The parts of one run."""

    def __init__(
        self, plan: Plan, tell: Callable[[str], None], result: Result, findings: Findings
    ) -> None:
        self._plan = plan
        self._tell = tell
        self._result = result
        self._findings = findings
        self._site = Site(plan.replicas, plan.binary)
        capacity = plan.capacity
        self._content = Content(capacity * len(WRITERS), findings)
        self._load = Load(plan.seed, plan.replicas, self._content, findings)
        self._crew = Crew(self._load, capacity)
        self._healed_ns = 0
        self._memory = [0, 0]

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
        await js.streams.create(
            STREAM,
            subjects=[f"{SUBJECT_PREFIX}.>"],
            replicas=self._plan.replicas,
            duplicate_window=_DUPLICATE_WINDOW_S,
        )
        crew = self._crew
        await crew.hands.create(js)
        faults = Faults(
            self._site,
            [STREAM],
            js,
            admin,
            lambda line: self._tell(f"  {line}"),
            note_kill=self._load.note_kill,
            spared=PREFIX,
        )
        try:
            clients = await crew.connect(self._site)
            subscriptions = await self._site.call(self._site.subscriptions)
            crew.begin(clients)
            if self._plan.traces_memory:
                tracemalloc.start()
            await self._rounds(faults)
            with patience():
                # From now on nobody leaves a read without the server's answer.
                self._healed_ns = time.time_ns()
                await self._end(js, subscriptions)
        finally:
            await faults.end()
            await crew.abandon()
            await crew.disconnect()
            self._note(faults)

    async def _end(self, js: JetStream, subscriptions: dict[str, int]) -> None:
        """Let all come to its end, and prove it."""
        crew = self._crew
        is_finished = await self._end_work(js)
        await check_subscriptions(self._site, subscriptions, self._findings)
        await crew.hands.judge(js, wanted_of(crew.books) if is_finished else None)
        await crew.hands.delete(js)
        await check_consumers(
            js,
            STREAM,
            self._healed_ns,
            self._load,
            waits_for_orphans=self._plan.waits_for_orphans,
        )
        self._compare_memory()
        await self._check_content(js)

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
            await site.call(lambda: site.heal([STREAM]))
            await self._check_progress(f"after round {number}")
            self._note_memory(is_first=number == 1)
            acked = sum(book.ends["acked"] for book in self._crew.books)
            self._tell(f"  healed; {acked:,} acknowledged, {self._findings.count} findings")
            if self._findings.count or loop.time() >= end:
                return

    async def _check_progress(self, when: str) -> None:
        """With all healed, each writer gets acks, and each reader comes to what was acked."""
        crew = self._crew
        # The slow one is behind by nature; it has to come to the end when nobody writes any more.
        goals = {each: crew.goal(each) for each in crew.readers if each.sightings.name != "slow"}
        before = crew.progress()
        counts = before.acked | before.delivered

        def late() -> list[str]:
            progress = crew.progress()
            now = progress.acked | progress.delivered
            names = [name for name, count in counts.items() if now.get(name, count + 1) <= count]
            return names + [
                each.sightings.name for each, goal in goals.items() if each.sightings.last < goal
            ]

        await self._wait_until_done(late, when)

    async def _wait_until_done(self, late: Callable[[], list[str]], when: str) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PROGRESS_S
        while (names := late()) and not self._findings.count:
            if loop.time() >= deadline:
                text = f"{when}, all healed, for {PROGRESS_S:g} s: {', '.join(names)}"
                self._findings.add("stands still", f"{text}\n{describe_all_tasks()}")
                return
            await asyncio.sleep(_LOOK_S)

    async def _end_work(self, js: JetStream) -> bool:
        """Let all end; returns False when a finding has kept it from waiting for the hands."""
        crew = self._crew
        await crew.end_writing()
        state = (await js.streams.get(STREAM)).cached.state

        def late() -> list[str]:
            return [
                each.sightings.name
                for each in crew.readers
                if each.sightings.last < (crew.goal(each) if each.sightings.writers else last)
            ]

        last = state.last_seq
        await self._wait_until_done(late, "at the end")
        is_finished = await self._finish_hands(js)
        await crew.end_reading()
        return is_finished

    async def _finish_hands(self, js: JetStream) -> bool:
        """In the end nothing is pending, nothing out, and everything handled."""
        crew, loop = self._crew, asyncio.get_running_loop()
        wanted = wanted_of(crew.books)
        least, deadline, told_at = math.inf, 0.0, loop.time()
        while True:
            count, left = await crew.hands.left_to_do(js, wanted)
            if not left:
                return True
            if self._findings.count:
                return False
            # What becomes less does not stand still, however slowly: one by one and confirmed by
            # three servers, some hundred messages take minutes on a busy machine.
            if count < least or not deadline:
                least, deadline = count, loop.time() + PROGRESS_S
            if loop.time() >= told_at + _TELL_S:
                told_at = loop.time()
                self._tell(f"  left: {', '.join(left)}")
            if loop.time() >= deadline:
                text = f"nobody publishes, for {PROGRESS_S:g} s: {', '.join(left)}"
                self._findings.add("stands still", f"{text}\n{describe_all_tasks()}")
                return True
            await asyncio.sleep(_LOOK_S)

    async def _check_content(self, js: JetStream) -> None:
        """Read everything once more, with a new connection to a server without faults."""
        self._tell("reading all again")
        held: dict[int, int] = {}
        final = Sightings("final", self._content, self._findings)
        stream = await js.streams.get(STREAM)
        async for message in stream.read():
            mark = message.headers.get(HEADER)
            final.see(message.sequence, message.subject, mark, message.data)
            held[message.sequence] = self._content.identity(message.sequence)
        state = (await stream.info()).state
        await self._check_samples(stream, held, state.last_seq)
        for reader in self._crew.readers:
            reader.sightings.check_whole()
        final.check_whole(state.last_seq)
        end = StreamEnd(state.first_seq, state.last_seq, state.messages)
        audit(held, end, self._crew.books, self._content, self._findings)

    async def _check_samples(self, stream: ns.Stream, held: dict[int, int], last: int) -> None:
        """Compare some messages with what the leader gives one by one."""
        draw = random.Random(self._plan.seed)  # noqa: S311 - To be repeated, no secret.
        once = "one by one"
        for sequence in {draw.randint(1, last) for _ in range(_SAMPLES)} | {1, last}:
            message = await stream.get(sequence)
            if message is None:
                if sequence in held:
                    self._findings.add("content", f"{once}: {sequence} is not there")
                continue
            alone = Sightings(once, self._content, self._findings, first=sequence)
            mark = message.headers.get(HEADER)
            alone.see(message.sequence, message.subject, mark, message.data)

    def _note_memory(self, *, is_first: bool) -> None:
        resident = resident_bytes()
        self._result.note_memory(resident)
        if is_first:
            self._memory[0] = resident
            if tracemalloc.is_tracing():
                self._traced = tracemalloc.take_snapshot()

    def _compare_memory(self) -> None:
        resident = resident_bytes()
        self._result.note_memory(resident)
        compare_memory(self._memory[0], resident, self._findings)
        if tracemalloc.is_tracing():
            grown = tracemalloc.take_snapshot().compare_to(self._traced, "lineno")
            self._result.traced = [str(each) for each in grown[:_TRACED_LINES]]
            tracemalloc.stop()

    def _note(self, faults: Faults) -> None:
        result, load, crew = self._result, self._load, self._crew
        result.faults = {str(kind): count for kind, count in faults.done.items()}
        result.writers = {
            book.name: {"sent": book.count, "duplicates": book.duplicates}
            | {each: book.ends[each] for each in ("acked", "refused", "unknown")}
            for book in crew.books
        }
        result.readers = {
            each.sightings.name: {"messages": each.sightings.count, "resumes": each.resumes}
            for each in crew.readers
        }
        result.hands = {name: dict(book.counts) for name, book in crew.hands.books.items()}
        reasons: dict[str, int] = {}
        for each in crew.readers:
            for reason, count in each.reasons.items() if isinstance(each, Follower) else ():
                reasons[reason] = reasons.get(reason, 0) + count
        result.reasons = reasons
        result.errors = dict(load.errors)
        asked = {f"{kind}: not granted": count for kind, count in faults.failed.items()}
        result.counts = dict(load.counts) | asked
