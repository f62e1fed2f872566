"""A short sample of `scripts/chaos`: fixed seeds, one server and a cluster of three."""

from __future__ import annotations

import pytest

from scripts.chaos_runs.run import Plan, run

pytestmark = pytest.mark.asyncio


@pytest.mark.timeout(420)
@pytest.mark.parametrize(("replicas", "seed", "rounds"), [(1, 9, 2), (3, 9, 2)])
async def test_every_promise_holds_through_a_sample_of_faults(
    replicas: int, seed: int, rounds: int
) -> None:
    """Consumers whose deletion was lost need a minute to go: only the long run waits for that."""
    plan = Plan(seed=seed, replicas=replicas, rounds=rounds, waits_for_orphans=False)
    result = await run(plan, print)
    assert result.is_good, str(result)
    assert result.rounds == rounds
    assert all(row["acked"] for row in result.writers.values())
    assert all(row["messages"] for row in result.readers.values())
