"""One run of the views' crew: what it proves, and what it tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from natsstream import JetStream
from scripts.chaos_runs.crew_run import CrewRun
from scripts.chaos_runs.ledger import Content
from scripts.chaos_runs.load import Load
from scripts.chaos_runs.plan import Plan, carry_out
from scripts.chaos_runs.result import Result
from scripts.chaos_runs.views.bucket_book import End
from scripts.chaos_runs.views.crew import STREAMS, Crew
from scripts.chaos_runs.views.judges import judge_buckets, judge_lock, judge_store
from scripts.chaos_runs.views.worker import STEP_S, SWEEP_S


async def run(plan: Plan, tell: Callable[[str], None]) -> Result:
    """Run a plan.

    Args:
        plan: What is run.
        tell: Gets lines about what happens.
    """

    async def work(result: Result, load: Load) -> None:
        await _ViewsRun(plan, tell, result, Crew(load)).run()

    # The books of letters are for the other crew.
    return await carry_out(
        plan,
        tell,
        lambda result, findings: work(
            result, Load(plan.seed, plan.replicas, Content(1, findings), findings)
        ),
    )


class _ViewsRun(CrewRun):
    """The parts of one run."""

    # Nobody stands still whose call may still be under way; the longest is a sweep.
    still_s: float = SWEEP_S + STEP_S

    def __init__(self, plan: Plan, tell: Callable[[str], None], result: Result, crew: Crew) -> None:
        super().__init__(plan, tell, result, crew.load, crew, STREAMS)
        self._views = crew

    async def end_work(self, js: JetStream) -> None:
        """Let all come to its end, and prove it."""
        crew, load = self._views, self.load
        await crew.end_writing()
        self.tell("reading all again")
        await judge_buckets(js, crew, load)
        await crew.end_reading()
        await judge_lock(js, crew, load)
        await judge_store(js, crew, load)

    def note_kill(self) -> None:
        """Take down that a server is killed now."""
        super().note_kill()
        if self.plan.replicas == 1:
            for bucket in self._views.buckets:
                bucket.book.note_kill()

    def note_work(self) -> None:
        """Write into the result what the workers did."""
        result, crew = self.result, self._views
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


def _told(counts: Mapping[End, int]) -> dict[str, int]:
    ended = ("acked", "refused", "unknown")
    return {each: counts.get(each, 0) for each in ended}
