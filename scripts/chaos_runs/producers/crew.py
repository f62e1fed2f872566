"""All producers of a run: who they are, on which streams and connections, and the proof."""

from __future__ import annotations

from collections.abc import Sequence

from natsstream import JetStream
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.producers.book import LIFE_HEADER, Held, ProducerBook
from scripts.chaos_runs.producers.lossy import LossyWay
from scripts.chaos_runs.producers.programs import Programs
from scripts.chaos_runs.producers.sources import Mode, Post, Source
from scripts.chaos_runs.site import Site
from scripts.chaos_runs.workers import Workers

CLIENTS = ("producers-steady", "producers-turns-1", "producers-turns-2")
_LOSSY_CLIENT = "producers-lossy"
_TURNS = ("turns-1", "turns-2")


class Crew(Workers):
    """All producers of a run.

    Args:
        load: The state that they share.
        modes: The modes in which they work.
        nodes: How many servers there are.

    Attributes:
        streams: The streams.
        lossy: The way that loses frames.
    """

    def __init__(self, load: Load, modes: Sequence[Mode], nodes: int) -> None:
        super().__init__(load)
        self._modes = modes
        self._urls: Sequence[str] = ()
        self._nodes = nodes
        self.streams: dict[str, int] = {}
        for mode in modes:
            # Exclusive producers have a stream each; the last one has one replica in a cluster too.
            whos = ("all",) if mode == "shared" else ("steady", "lives", "turns", "program")
            self.streams |= {f"P-{mode}-{who}": nodes for who in whos}
            if nodes > 1:
                self.streams[f"P-{mode}-single"] = 1
        self.lossy: LossyWay | None = None

    async def create(self, js: JetStream) -> None:
        """Make the streams, with all that producers need."""
        for name, replicas in self.streams.items():
            await insist(
                lambda name=name, replicas=replicas: js.streams.ensure(
                    name, subjects=[f"{_prefix(name)}.>"], replicas=replicas
                )
            )
            first = await insist(
                lambda name=name: js.producer(
                    name, "first", mode=_mode_of(name), update_stream=True
                )
            )
            await first.detach()

    async def connect(self, site: Site) -> list[JetStream]:
        """Open the connections; one of them goes through the way that loses frames."""
        stream = next(iter(self.streams))
        self._urls = site.urls(0)
        opened = await self.connect_all(CLIENTS, site, stream)
        self.lossy = LossyWay(site.urls(1), self.load.draw("lossy"))
        await self.lossy.open()
        self.clients.push_async_callback(self.lossy.close)
        return [*opened, await self.connect_one(_LOSSY_CLIENT, [self.lossy.url], stream)]

    def begin(self, clients: Sequence[JetStream]) -> None:
        """Start all of them."""
        self.watch()
        steady, *turns, lossy = clients
        for mode in self._modes:
            self._source(steady, mode, "steady", is_steady=True)
            self._source(lossy, mode, "lives")
            for name, js in zip(_TURNS, turns, strict=True):
                self._source(js, mode, name, has_turns=True)
            name = f"{mode}-program"
            book = ProducerBook(name, self.load.findings)
            post = self._post(mode, "program", name, f"program {name}")
            self.start(Programs(self.load, self._urls, post, book))
            if self._nodes > 1:
                self._source(steady, mode, "single")

    def _source(
        self,
        js: JetStream,
        mode: Mode,
        who: str,
        *,
        is_steady: bool = False,
        has_turns: bool = False,
    ) -> None:
        name = f"{mode}-{who}"
        book = ProducerBook(name, self.load.findings, has_turns=has_turns)
        place = "turns" if has_turns else who
        post = self._post(mode, place, name, f"id of {mode} {place}")
        source = Source(self.load, js, post, book, is_steady=is_steady, has_turns=has_turns)
        self.start(source)

    def _post(self, mode: Mode, place: str, name: str, producer_id: str) -> Post:
        is_own = mode == "exclusive" or place == "single"
        stream = f"P-{mode}-{place if is_own else 'all'}"
        return Post(
            stream=stream, subject=f"{_prefix(stream)}.{name}", mode=mode, producer_id=producer_id
        )

    @property
    def producers(self) -> Sequence[Source | Programs]:
        """All of them."""
        return [each for each in self.tasks if isinstance(each, Source | Programs)]

    async def judge(self, js: JetStream) -> None:
        """Compare what they appended with what the streams hold."""
        for each in self.producers:
            # First of all: an instance that opens deletes what a killed server has kept in part.
            found: tuple[object, int] | None = None
            if not (isinstance(each, Source) and each.has_turns):
                heir = await insist(
                    lambda each=each: each.post.open(js, delivery_timeout=60.0, batch=1)
                )
                state = heir.recovered
                found = (None, 0) if state is None else (state.checkpoint, state.count)
                await heir.detach()
            stream = await insist(lambda each=each: js.streams.get(each.post.stream))
            held = [
                Held(m.sequence, int(m.headers[LIFE_HEADER]), m.data)
                async for m in stream.read(first_seq=1, filters=[each.post.subject])
            ]
            checkpoint, count = found or (len(held), len(held))
            each.book.judge(held, checkpoint, count)


def _prefix(stream: str) -> str:
    return stream.lower().replace("-", ".")


def _mode_of(stream: str) -> Mode:
    return "shared" if stream.startswith("P-shared-") else "exclusive"
