"""One run of the crew on streams: what it proves, and what it tells."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable

import natsstream as ns
from natsstream import JetStream
from scripts.chaos_runs.audit import StreamEnd, audit
from scripts.chaos_runs.crew import WRITERS, Crew
from scripts.chaos_runs.crew_run import CrewRun
from scripts.chaos_runs.hands_crew import PREFIX, wanted_of
from scripts.chaos_runs.ledger import Content, Findings, Sightings
from scripts.chaos_runs.letters import HEADER
from scripts.chaos_runs.load import STREAM, Load
from scripts.chaos_runs.plan import PROGRESS_S, Plan, carry_out
from scripts.chaos_runs.readers import Follower
from scripts.chaos_runs.result import Result
from scripts.chaos_runs.watch import describe_all_tasks

_TELL_S = 10.0
_LOOK_S = 0.25
_SAMPLES = 300


async def run(plan: Plan, tell: Callable[[str], None]) -> Result:
    """Run a plan.

    Args:
        plan: What is run.
        tell: Gets lines about what happens.
    """

    async def work(result: Result, findings: Findings) -> None:
        content = Content(plan.capacity * len(WRITERS), findings)
        load = Load(plan.seed, plan.replicas, content, findings)
        await _StreamsRun(plan, tell, result, load, content).run()

    return await carry_out(plan, tell, work)


class _StreamsRun(CrewRun):
    """The parts of one run."""

    def __init__(
        self,
        plan: Plan,
        tell: Callable[[str], None],
        result: Result,
        load: Load,
        content: Content,
    ) -> None:
        self._workers = Crew(load, plan.capacity)
        self._content = content
        super().__init__(plan, tell, result, load, self._workers, [STREAM], spared=PREFIX)

    def set_goals(self) -> Callable[[], list[str]]:
        """Return what tells which readers have not come to what is acknowledged now."""
        return self._workers.set_goals()

    async def end_work(self, js: JetStream) -> None:
        """Let all come to its end, and prove it."""
        crew = self._workers
        is_finished = await self._end_reading(js)
        await crew.hands.judge(js, wanted_of(crew.books) if is_finished else None)
        await crew.hands.delete(js)
        await self._check_content(js)

    async def _end_reading(self, js: JetStream) -> bool:
        """Let all end; returns False when a finding has kept it from waiting for the hands."""
        crew = self._workers
        await crew.end_writing()
        state = (await js.streams.get(STREAM)).cached.state

        async def late() -> list[str]:
            return [
                each.sightings.name
                for each in crew.readers
                if each.sightings.last < (crew.goal(each) if each.sightings.writers else last)
            ]

        last = state.last_seq
        await self.wait_until_done(late, "at the end")
        is_finished = await self._finish_hands(js)
        await crew.end_reading()
        return is_finished

    async def _finish_hands(self, js: JetStream) -> bool:
        """In the end nothing is pending, nothing out, and everything handled."""
        crew, loop = self._workers, asyncio.get_running_loop()
        wanted = wanted_of(crew.books)
        least, deadline, told_at = math.inf, 0.0, loop.time()
        while True:
            count, left = await crew.hands.left_to_do(js, wanted)
            if not left:
                return True
            if self.load.findings.count:
                return False
            # What becomes less does not stand still, however slowly: one by one and confirmed by
            # three servers, some hundred messages take minutes on a busy machine.
            if count < least or not deadline:
                least, deadline = count, loop.time() + PROGRESS_S
            if loop.time() >= told_at + _TELL_S:
                told_at = loop.time()
                self.tell(f"  left: {', '.join(left)}")
            if loop.time() >= deadline:
                text = f"nobody publishes, for {PROGRESS_S:g} s: {', '.join(left)}"
                self.load.findings.add("stands still", f"{text}\n{describe_all_tasks()}")
                return True
            await asyncio.sleep(_LOOK_S)

    async def _check_content(self, js: JetStream) -> None:
        """Read everything once more, with a new connection to a server without faults."""
        self.tell("reading all again")
        held: dict[int, int] = {}
        final = Sightings("final", self._content, self.load.findings)
        stream = await js.streams.get(STREAM)
        async for message in stream.read():
            mark = message.headers.get(HEADER)
            final.see(message.sequence, message.subject, mark, message.data)
            held[message.sequence] = self._content.identity(message.sequence)
        state = (await stream.info()).state
        await self._check_samples(stream, held, state.last_seq)
        for reader in self._workers.readers:
            reader.sightings.check_whole()
        final.check_whole(state.last_seq)
        end = StreamEnd(state.first_seq, state.last_seq, state.messages)
        audit(held, end, self._workers.books, self._content, self.load.findings)

    async def _check_samples(self, stream: ns.Stream, held: dict[int, int], last: int) -> None:
        """Compare some messages with what the leader gives one by one."""
        draw = random.Random(self.plan.seed)  # noqa: S311 - To be repeated, no secret.
        once = "one by one"
        for sequence in {draw.randint(1, last) for _ in range(_SAMPLES)} | {1, last}:
            message = await stream.get(sequence)
            if message is None:
                if sequence in held:
                    self.load.findings.add("content", f"{once}: {sequence} is not there")
                continue
            alone = Sightings(once, self._content, self.load.findings, first=sequence)
            mark = message.headers.get(HEADER)
            alone.see(message.sequence, message.subject, mark, message.data)

    def note_work(self) -> None:
        """Write into the result what the workers did."""
        result, crew = self.result, self._workers
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
