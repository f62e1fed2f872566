"""A short sample of `scripts/chaos --crew producers`: fixed seeds, one server and three.

Besides the verdict itself, what makes it worth something: a server was killed, every producer has
stored, and instances were replaced while they had work.
"""

from __future__ import annotations

import pytest

from scripts.chaos_runs.plan import Plan
from scripts.chaos_runs.producers.run import run

pytestmark = [pytest.mark.asyncio, pytest.mark.spread]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("replicas", "seed"), [pytest.param(1, 458, marks=pytest.mark.sampled), (3, 201)]
)
async def test_producers_keep_every_promise_through_a_sample_of_faults(
    replicas: int, seed: int
) -> None:
    """Of 1,500 seeds these have the most kinds of faults in a short first round, seven each, and
    among them a kill; in the cluster the leaders step down as well.

    Nothing here hangs on the machine's speed: the run itself waits until every producer has got on.
    """
    plan = Plan(seed=seed, replicas=replicas, rounds=1, waits_for_orphans=False)
    result = await run(plan, print)
    assert result.is_good, str(result)
    assert result.faults["kill"]
    assert all(row["acked"] for row in result.writers.values())
    assert sum(row.get("programs: kill", 0) for row in result.writers.values())
