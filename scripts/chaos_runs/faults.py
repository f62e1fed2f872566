"""Does the steps of a schedule to the servers of a site.

Law: every fault ends by itself at its time; what is left at the end of a round `Site.heal` ends.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, cast

from natsstream import JetStream, NatsStreamError
from scripts.chaos_runs.plan import Plan
from scripts.chaos_runs.schedule import Kind, Round, Step, make_round
from scripts.chaos_runs.site import Site

if TYPE_CHECKING:
    from natsstream.testing.proxy import Direction

_ADMIN_TIMEOUT_S = 3.0
_PULSE_PAUSED_S = 0.15
_PULSE_RUNNING_S = 0.25
_PULSES_MAX = 1_000


def nonsense(size: int) -> bytes:
    """Return bytes that are no NATS, whatever they stand in the middle of.

    The line end at their begin ends a line that has begun. Within a payload they move its end to
    where no line ends, as there is none among them, so that no reader can take it for whole.
    """
    return b"\r\n" + b"?! no NATS " * (size // 11 + 1)


class Faults:
    """Carries out rounds.

    Args:
        plan: The plan of the run.
        site: The servers.
        streams: The streams whose leaders and consumers are disturbed.
        js: A connection past all proxies, for what is asked of JetStream.
        admin: The same for the system account.
        tell: Gets a line about each step that was done.
        note_kill: Called just before and just after a node is killed.
        spared: Begin of the names of consumers that no fault deletes; a step down is theirs too.

    Attributes:
        done: Steps that were done, by kind.
        failed: Of these, what was asked of JetStream and not granted, as while it has no leader.
    """

    def __init__(
        self,
        plan: Plan,
        site: Site,
        streams: Sequence[str],
        js: JetStream,
        admin: JetStream,
        tell: Callable[[str], None],
        *,
        note_kill: Callable[[], None] = lambda: None,
        spared: str = "-",
    ) -> None:
        self._plan = plan
        self._site = site
        self._streams = streams
        self._js = js
        self._admin = admin
        self._tell = tell
        self._note_kill = note_kill
        self._spared = spared
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._undo: dict[Step, Callable[[], object]] = {}

    def describe(self, number: int) -> str:
        """Return the steps of a round, as lines."""
        return str(self._round(number))

    async def run(self, number: int) -> None:
        """Do the steps of a round, each at its time; ends when the round is over."""
        of = self._round(number)
        loop = asyncio.get_running_loop()
        start = loop.time()
        events = [(step.at_s, 0, step) for step in of.steps]
        events += [(step.end_s, 1, step) for step in of.steps if step.seconds]
        for at_s, is_end, step in sorted(events, key=lambda event: event[:2]):
            await asyncio.sleep(start + at_s - loop.time())
            if is_end:
                await self._site.call(self._undo.pop(step))
                continue
            self._tell(f"{loop.time() - start:6.2f} s  {str(step).split('s  ', 1)[1]}")
            self._undo[step] = await self._begin(step)
            self.done[step.kind] += 1
        await asyncio.sleep(start + of.seconds - loop.time())

    async def end(self) -> None:
        """End the faults of a round that was left before its end."""
        undo, self._undo = self._undo, {}
        for each in undo.values():
            await self._site.call(each)

    def _round(self, number: int) -> Round:
        return make_round(self._plan.seed, number, self._plan.replicas)

    async def _begin(self, step: Step) -> Callable[[], object]:
        """Do a step; returns what ends it."""
        match step.kind:
            case "kill" | "pause" | "pulse" | "restart":
                return await self._site.call(lambda: self._begin_at_node(step))
            case "partition" | "isolate":
                return await self._site.call(lambda: self._cut_off(step))
            case "step down" | "meta step down" | "delete consumers":
                try:
                    await self._ask(step.kind)
                except NatsStreamError:
                    self.failed[step.kind] += 1
                return lambda: None
            case _:
                return self._begin_at_link(step)

    def _begin_at_node(self, step: Step) -> Callable[[], object]:
        node = self._site.nodes[step.target]
        if step.kind == "kill":
            self._note_kill()
            node.kill()
            self._note_kill()
            return lambda: self._site.start_node(step.target)
        if step.kind == "restart":
            node.stop(keep_store=True)
            self._site.start_node(step.target)
            return lambda: None
        if step.kind == "pause":
            node.pause()
            return node.resume
        pulses = node.pulse(
            paused_s=_PULSE_PAUSED_S,
            running_s=_PULSE_RUNNING_S,
            count=_PULSES_MAX,
            seed=int(step.at_s * 100),
        )
        pulses.__enter__()
        return pulses.stop

    def _cut_off(self, step: Step) -> Callable[[], object]:
        cluster = self._site.cluster
        assert cluster is not None  # noqa: S101 - The schedule of one server has none of these.
        node = cluster.node(step.target)
        mode = cast("Literal['cut', 'stall']", step.mode)
        has_clients = step.kind == "isolate"
        cluster.isolate(node, peers=True, clients=has_clients, mode=mode)

        def join() -> None:
            for other in cluster.servers:
                if other is not node:
                    cluster.link(node, other).heal()
            if has_clients:
                node.client_proxy.heal()

        return join

    def _begin_at_link(self, step: Step) -> Callable[[], object]:
        proxy = self._site.links[step.target]
        direction = cast("Direction", step.mode)
        match step.kind:
            case "cut":
                proxy.cut()
            case "stall":
                proxy.stall(direction=direction)
            case "delay":
                proxy.delay(step.amount, direction=direction)
            case "slow":
                proxy.limit_rate(int(step.amount), direction=direction)
            case "truncate":
                proxy.truncate(int(step.amount), direction=direction)
            case "nonsense":
                proxy.inject(nonsense(int(step.amount)))
                return lambda: None
            case _:
                proxy.reset()
        return proxy.heal

    async def _ask(self, kind: Kind) -> None:
        """Ask JetStream for what it disturbs by itself."""
        if kind == "meta step down":
            await self._request(self._admin, "META.LEADER.STEPDOWN")
            return
        for stream in self._streams:
            if kind == "step down":
                await self._step_down(stream)
            else:
                for name in await self._consumers(stream):
                    if not name.startswith(self._spared):
                        await self._request(self._js, f"CONSUMER.DELETE.{stream}.{name}")

    async def _step_down(self, stream: str) -> None:
        await self._request(self._js, f"STREAM.LEADER.STEPDOWN.{stream}")
        for name in await self._consumers(stream):
            if name.startswith(self._spared):
                # One that has no leader now does not answer: the others do.
                subject = f"$JS.API.CONSUMER.LEADER.STEPDOWN.{stream}.{name}"
                await self._js.core.publish(subject, b"")

    async def _consumers(self, stream: str) -> list[str]:
        answer = await self._request(self._js, f"CONSUMER.NAMES.{stream}")
        return cast("list[str] | None", answer.get("consumers")) or []

    async def _request(self, js: JetStream, subject: str) -> dict[str, object]:
        message = await js.core.request(f"$JS.API.{subject}", timeout=_ADMIN_TIMEOUT_S)
        return cast("dict[str, object]", json.loads(message.data))
