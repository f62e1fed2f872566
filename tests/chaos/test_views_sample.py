"""A short sample of `scripts/chaos --crew views`: fixed seeds, one server and a cluster of three.

Besides the verdict itself, what makes it worth something: every worker did what it is there for.
"""

from __future__ import annotations

import pytest

from scripts.chaos_runs.plan import Plan
from scripts.chaos_runs.views.run import run

pytestmark = [pytest.mark.asyncio, pytest.mark.spread]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("replicas", "seed"), [pytest.param(1, 7319, marks=pytest.mark.sampled), (3, 731)]
)
async def test_views_keep_every_promise_through_a_sample_of_faults(
    replicas: int, seed: int
) -> None:
    """Of 20,000 seeds these have the most kinds of faults early, eight each within 7 seconds,
    and among them bytes that are no NATS.

    Nothing here hangs on the machine's speed: the run itself waits, some minutes at most, until
    every worker has got on, the lock's holder has written, and markers were swept.
    """
    plan = Plan(seed=seed, replicas=replicas, rounds=1, waits_for_orphans=False)
    result = await run(plan, print)
    assert result.is_good, str(result)
    assert result.rounds == 1
    assert all(row["acked"] for row in result.writers.values())
    assert all(result.hands["done"].values())
    assert result.hands["lock"]["guarded writes"]
    assert result.counts["markers swept"]
