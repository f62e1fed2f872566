"""The plan of a run, and its result, whatever happens."""

from __future__ import annotations

import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from natsstream.testing import server_binary
from scripts.chaos_runs.ledger import Findings
from scripts.chaos_runs.leftovers import compare_belongings, count_belongings
from scripts.chaos_runs.result import Result
from scripts.chaos_runs.writers import LETTERS_PER_S

# After everything is healed: an election, the time to reconnect, a busy machine.
PROGRESS_S = 120.0
# Rounds are longer than their faults: healing takes some seconds.
_HEAL_S = 40.0
_ROUND_S_MAX = 14.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of a run.

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


async def carry_out(
    plan: Plan,
    tell: Callable[[str], None],
    work: Callable[[Result, Findings], Awaitable[None]],
) -> Result:
    """Do the work of a crew's run, and tell what was found and what is left of it here.

    Args:
        plan: The plan of the run.
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
