"""One run of the crew on core streams: what it compares and proves, and what it tells."""

from __future__ import annotations

from collections.abc import Callable

from natsstream import JetStream
from scripts.chaos_runs.cores.core_book import Told, brief
from scripts.chaos_runs.cores.crew import LOG, MAP, STREAMS, Crew
from scripts.chaos_runs.cores.workers import BIG_BYTES
from scripts.chaos_runs.crew_run import CrewRun
from scripts.chaos_runs.ledger import Content, Findings
from scripts.chaos_runs.leftovers import GROWTH_BYTES_MAX
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.plan import Plan, carry_out
from scripts.chaos_runs.result import Result


async def run(plan: Plan, tell: Callable[[str], None]) -> Result:
    """Run a plan.

    Args:
        plan: What is run.
        tell: Gets lines about what happens.
    """

    async def work(result: Result, findings: Findings) -> None:
        # The books of letters are for another crew.
        load = Load(plan.seed, plan.replicas, Content(1, findings), findings)
        await _CoresRun(plan, tell, result, load, Crew(load)).run()

    return await carry_out(plan, tell, work)


class _CoresRun(CrewRun):
    """The parts of one run."""

    # Each of the clients holds what is stored: some big values, as bytes and as texts.
    growth_bytes_max: int = GROWTH_BYTES_MAX + 30 * 2 * BIG_BYTES

    def __init__(
        self, plan: Plan, tell: Callable[[str], None], result: Result, load: Load, crew: Crew
    ) -> None:
        super().__init__(plan, tell, result, load, crew, STREAMS)
        self._cores = crew

    async def compare(self, js: JetStream, when: str) -> None:
        """While nobody writes, all clients come to what the server holds."""
        crew = self._cores
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

        await self.wait_until_done(different, when)
        for book, core in zip(crew.books, crew.cores, strict=True):
            book.compare([each.seq for each in core.raw])
        crew.gate.open()

    async def end_work(self, js: JetStream) -> None:
        """Let all come to its end, prove it, and close everything."""
        crew = self._cores
        await crew.end()
        await self.compare(js, "at the end")
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
        await crew.abandon()
        await crew.close()

    async def _compare_layers(self, js: JetStream) -> None:
        """Compare all maps and logs with new ones, which load what the server holds."""
        crew = self._cores
        async with await js.dkv(MAP) as dkv, await js.dstream(LOG) as log:
            wanted, values = dkv.get_all(), log.get_all()

            async def late() -> list[str]:
                pairs = [(each.get_all(), wanted) for each in crew.maps]
                pairs += [(each.get_all(), values) for each in crew.logs]
                return [f"client {at}" for at, (mine, held) in enumerate(pairs) if mine != held]

            await self.wait_until_done(late, "map and log at the end")
            crew.map_book.compare("a new client", wanted)
            crew.log_book.compare("a new client", values, is_told=False)
        for book, dkv, log in zip(crew.books, crew.maps, crew.logs, strict=True):
            crew.map_book.compare(book.name, dkv.get_all())
            crew.log_book.compare(book.name, log.get_all())

    def note_work(self) -> None:
        """Write into the result what the writers and the clients did."""
        crew = self._cores
        books = {"core": crew.book, "map": crew.map_book, "log": crew.log_book}
        self.result.writers = {
            name: {"acked": 0} | dict(each.counts) for name, each in books.items()
        }
        self.result.readers = {
            each.name: {"messages": each.count, "conflated": each.conflated, "resumes": 0}
            for each in crew.books
        }
        self.result.hands = {"done": crew.progress()}
