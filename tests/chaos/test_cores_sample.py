"""A short sample of `scripts/chaos --crew cores`: fixed seeds, one server and a cluster of three.

Besides the verdict itself, what makes it worth something: every worker did what it is there for.
"""

from __future__ import annotations

import pytest

from scripts.chaos_runs.cores.run import run
from scripts.chaos_runs.plan import Plan

pytestmark = [pytest.mark.asyncio, pytest.mark.spread]


@pytest.mark.timeout(420)
@pytest.mark.parametrize(
    ("replicas", "seed"), [pytest.param(1, 7319, marks=pytest.mark.sampled), (3, 731)]
)
async def test_core_streams_keep_every_promise_through_a_sample_of_faults(
    replicas: int, seed: int
) -> None:
    """Nothing here hangs on the machine's speed: the run waits until every worker has got on."""
    plan = Plan(seed=seed, replicas=replicas, rounds=1, waits_for_orphans=False)
    result = await run(plan, print)
    assert result.is_good, str(result)
    assert result.rounds == 1
    assert all(row["acked"] for row in result.writers.values())
    assert all(row["messages"] for row in result.readers.values())
    assert all(result.hands["done"].values())
