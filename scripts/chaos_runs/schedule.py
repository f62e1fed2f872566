"""Which faults happen when, drawn from a seed; pure rules.

Law: the same seed, round and number of nodes make the same steps, on every machine. At the end of
each round everything heals, so that whoever waits can go on.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Kind: TypeAlias = Literal[
    "kill",
    "pause",
    "pulse",
    "restart",
    "cut",
    "stall",
    "delay",
    "slow",
    "truncate",
    "reset",
    "nonsense",
    "partition",
    "isolate",
    "step down",
    "meta step down",
    "delete consumers",
]
"""What a step does.

"kill": SIGKILL, and a start after a while. "pause": SIGSTOP. "pulse": short SIGSTOPs one after the
other. "restart": an end in good order and a start. "cut", "stall", "delay", "slow", "truncate",
"reset" and "nonsense" are faults of the proxy between clients and a server; the last puts bytes
that are no NATS in the middle of what clients receive. "partition" cuts a node off from its
peers, "isolate" from its clients as well. "step down": the stream's leader gives up leading, "meta
step down": the cluster's. "delete consumers": all consumers of the stream are deleted by hand.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)
LINKS = 3
"""Ways from clients to servers: in a cluster one a node, otherwise all to the one server."""

_ROUND_S = (6.0, 14.0)
_STEPS = (3, 8)
# Faults begin in the first part of a round, so that they have some time in it.
_BEGIN_PART = 0.75
# In one round of so many, more nodes than a minority may be away at the same time.
_MAJORITY_LOST_PART = 0.2

_WEIGHTS: dict[Kind, int] = {
    "kill": 5,
    "pause": 3,
    "pulse": 2,
    "restart": 1,
    "cut": 2,
    "stall": 2,
    "delay": 2,
    "slow": 1,
    "truncate": 3,
    "reset": 3,
    "nonsense": 2,
    "partition": 3,
    "isolate": 2,
    "step down": 3,
    "meta step down": 1,
    "delete consumers": 3,
}
_NODE_KINDS = frozenset({"kill", "pause", "pulse", "restart"})
_ROUTE_KINDS = frozenset({"partition", "isolate"})
_CLUSTER_KINDS = frozenset({"partition", "isolate", "step down", "meta step down"})
_MOMENTS = frozenset(
    {"restart", "truncate", "reset", "nonsense", "step down", "meta step down", "delete consumers"}
)
_DIRECTED_KINDS = frozenset({"stall", "delay", "slow", "truncate"})
_AWAY_KINDS = frozenset({"kill", "pause", "partition", "isolate"})


@dataclass(frozen=True, slots=True)
class Step:
    """One fault.

    Attributes:
        at_s: When it begins, in seconds from the begin of its round.
        kind: What happens.
        target: `n1`, `n2`, ... for a node, `link1`, ... for a way of clients; empty for the stream.
        seconds: How long it lasts; 0 for what is done in a moment.
        mode: How: a direction, or "cut" or "stall".
        amount: How much: seconds of delay, bytes, or bytes a second.
    """

    at_s: float
    kind: Kind
    target: str = ""
    seconds: float = 0.0
    mode: str = ""
    amount: float = 0.0

    @property
    def end_s(self) -> float:
        """When it ends, in seconds from the begin of its round."""
        return self.at_s + self.seconds

    def __str__(self) -> str:
        words = [f"{self.at_s:6.2f} s  {self.kind}"]
        words += [word for word in (self.target, self.mode) if word]
        if self.amount:
            words.append(f"{self.amount:g}")
        if self.seconds:
            words.append(f"for {self.seconds:.2f} s")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Round:
    """Some faults that overlap, and then none.

    Attributes:
        number: Counts up from 1.
        seconds: When everything heals, from its begin.
        steps: What happens, by the time of its begin.
    """

    number: int
    seconds: float
    steps: Sequence[Step]

    def __str__(self) -> str:
        lines = [f"round {self.number}", *(f"  {step}" for step in self.steps)]
        return "\n".join([*lines, f"  {self.seconds:6.2f} s  heal all"])


def make_round(seed: int, number: int, nodes: int) -> Round:
    """Return a round of a run.

    Args:
        seed: The run's.
        number: Which round, from 1.
        nodes: Servers: 1, or those of a cluster.
    """
    draw = random.Random(f"{seed}/{number}/{nodes}")  # noqa: S311 - To be repeated, no secret.
    seconds = round(draw.uniform(*_ROUND_S), 2)
    loses_majority = draw.random() < _MAJORITY_LOST_PART
    away_max = nodes if nodes == 1 or loses_majority else (nodes - 1) // 2
    steps: list[Step] = []
    moments = sorted(draw.uniform(0, _BEGIN_PART * seconds) for _ in range(draw.randint(*_STEPS)))
    for at_s in moments:
        step = _draw_step(draw, round(at_s, 2), seconds, nodes)
        if _fits(step, steps, away_max):
            steps.append(step)
    return Round(number, seconds, tuple(steps))


def _draw_step(draw: random.Random, at_s: float, round_s: float, nodes: int) -> Step:
    kinds: list[Kind] = [kind for kind in KINDS if nodes > 1 or kind not in _CLUSTER_KINDS]
    (kind,) = draw.choices(kinds, [_WEIGHTS[each] for each in kinds])
    node, link = f"n{draw.randint(1, nodes)}", f"link{draw.randint(1, LINKS)}"
    is_link = kind not in _NODE_KINDS | _CLUSTER_KINDS | {"delete consumers"}
    target = link if is_link else node if kind in _NODE_KINDS | _ROUTE_KINDS else ""
    wish_s = draw.uniform(0.3, 8.0)
    seconds = 0.0 if kind in _MOMENTS else round(min(wish_s, round_s - at_s), 2)
    mode = ""
    if kind in _DIRECTED_KINDS:
        mode = draw.choice(("to_server", "to_client", "both"))
    elif kind in _ROUTE_KINDS:
        mode = draw.choice(("cut", "stall"))
    amounts: dict[Kind, float] = {
        "delay": round(draw.uniform(0.005, 0.4), 3),
        "slow": draw.randint(2_000, 60_000),
        "truncate": draw.randint(1, 20_000),
        "nonsense": draw.randint(50, 40_000),
    }
    return Step(at_s, kind, target, seconds, mode, amounts.get(kind, 0.0))


def _fits(step: Step, steps: Sequence[Step], away_max: int) -> bool:
    """Tell whether a step touches nothing that an earlier one holds, and leaves enough nodes."""
    overlapping = [each for each in steps if each.end_s >= step.at_s]
    if any(_held(each) & _held(step) for each in overlapping):
        return False
    if step.kind not in _AWAY_KINDS:
        return True
    return sum(each.kind in _AWAY_KINDS for each in overlapping) < away_max


def _held(step: Step) -> frozenset[str]:
    """Return what a step holds, which no other may touch meanwhile.

    Ending a fault of a proxy ends all of its faults, and two nodes share the proxy between them.
    """
    held = {step.target} - {""}
    if step.kind in _ROUTE_KINDS:
        held.add("routes")
    if step.kind == "isolate":
        held.add(step.target.replace("n", "link"))
    return frozenset(held)
