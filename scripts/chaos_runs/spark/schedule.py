"""Which process is killed when, drawn from a seed; pure rules.

Law: the same seed and round make the same kills, on every machine. Each round has every kind once.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["server", "executor", "driver"]
"""A process to kill: the server, or the leader of the source in a cluster; an executor while a
partition is read; the driver in the middle of a micro-batch."""

Query: TypeAlias = Literal["table", "copy"]

KINDS: tuple[Kind, ...] = get_args(Kind)
QUERIES: tuple[Query, ...] = get_args(Query)

_CALM_S = (0.2, 2.0)
_INTO_BATCH_S = (0.0, 0.3)
_AWAY_S = (0.3, 4.0)


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill.

    Attributes:
        kind: The process that is killed.
        calm_s: Seconds of work before it.
        query: The query in whose micro-batch it happens.
        into_batch_s: Seconds after that micro-batch was seen.
        away_s: Seconds until the server or the driver starts again; Spark replaces executors.
        has_children: The executor's Python processes die with it, as in a container.
    """

    kind: Kind
    calm_s: float
    query: Query
    into_batch_s: float
    away_s: float
    has_children: bool

    @property
    def is_late(self) -> bool:
        """True if rows of the micro-batch are stored before it: the next driver skips them."""
        return self.kind == "driver" and self.query == "copy"

    def __str__(self) -> str:
        words = [f"after {self.calm_s:.2f} s  {self.kind}", f"in a batch of the {self.query}"]
        if self.is_late:
            words.append("with rows stored")
        if self.kind == "executor":
            words.append("with its children" if self.has_children else "alone")
        else:
            words.append(f"for {self.away_s:.2f} s")
        return ", ".join(words)


def make_kills(seed: int, number: int, replicas: int) -> Sequence[Kill]:
    """Return the kills of a round.

    Args:
        seed: The run's.
        number: Which round, from 1.
        replicas: Servers.
    """
    draw = random.Random(f"spark/{seed}/{number}/{replicas}")  # noqa: S311 - To be repeated, no secret.
    return [
        Kill(
            kind=kind,
            calm_s=round(draw.uniform(*_CALM_S), 2),
            query=draw.choice(QUERIES),
            into_batch_s=round(draw.uniform(*_INTO_BATCH_S), 2),
            away_s=round(draw.uniform(*_AWAY_S), 2),
            has_children=draw.random() < 0.5,
        )
        for kind in draw.sample(KINDS, len(KINDS))
    ]


def describe_round(seed: int, number: int, replicas: int) -> str:
    """Return the kills of a round as lines."""
    kills = make_kills(seed, number, replicas)
    return "\n".join([f"round {number}", *(f"  {kill}" for kill in kills)])
