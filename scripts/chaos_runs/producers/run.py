"""One run of the crew of producers: what it proves, and what it tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from natsstream import JetStream
from scripts.chaos_runs.crew_run import CrewRun
from scripts.chaos_runs.ledger import Content, Findings
from scripts.chaos_runs.load import Load
from scripts.chaos_runs.plan import Plan, carry_out
from scripts.chaos_runs.producers.crew import Crew
from scripts.chaos_runs.producers.programs import OPEN_S
from scripts.chaos_runs.producers.sources import MODES, Mode
from scripts.chaos_runs.result import Result

# The first releases that have atomic batches.
_SHARED_SINCE = (2, 12)


async def run(plan: Plan, tell: Callable[[str], None]) -> Result:
    """Run a plan.

    Args:
        plan: What is run; older servers get no shared producers, which need atomic batches.
        tell: Gets lines about what happens.
    """

    async def work(result: Result, findings: Findings) -> None:
        # The books of letters are for another crew.
        load = Load(plan.seed, plan.replicas, Content(1, findings), findings)
        crew = Crew(load, _modes(plan.version), plan.replicas)
        await _ProducersRun(plan, tell, result, crew).run()

    return await carry_out(plan, tell, work)


def _modes(version: str) -> Sequence[Mode]:
    """Return the modes that servers of a release or line take; empty is the installed one."""
    if version and tuple(map(int, version.split(".")[:2])) < _SHARED_SINCE:
        return ["exclusive"]
    return MODES


class _ProducersRun(CrewRun):
    """The parts of one run."""

    # Nobody stands still whose call may still be under way; the longest is the start of a program.
    still_s: float = OPEN_S

    def __init__(self, plan: Plan, tell: Callable[[str], None], result: Result, crew: Crew) -> None:
        super().__init__(plan, tell, result, crew.load, crew, [*crew.streams])
        self._producers = crew

    async def end_work(self, js: JetStream) -> None:
        """Let all come to their end, and prove it."""
        crew = self._producers
        if crew.lossy is not None:
            crew.lossy.is_lossy = False
        await crew.end_writing()
        await crew.end_reading()
        self.tell("reading all again")
        await crew.judge(js)

    def note_work(self) -> None:
        """Write into the result what the producers did."""
        crew = self._producers
        self.result.writers = {
            each.book.name: dict(each.book.counts)
            | {"acked": each.book.counts["held"], "instances": each.book.lives}
            for each in crew.producers
        }
        if crew.lossy is not None:
            lost = {f"{what} lost": count for what, count in crew.lossy.counts.items()}
            crew.load.counts.update(lost)
