"""A short sample of `scripts/chaos --crew spark`: one kill on one server, of each kind in turn.

Besides the verdict itself, what makes it worth something: the kill came in the middle of a
micro-batch, and what was stored before and after it is all of the source.
"""

from __future__ import annotations

import pytest

from scripts.chaos_runs.plan import Plan
from scripts.chaos_runs.spark.run import run
from scripts.chaos_runs.spark.schedule import KINDS, Kind

pytestmark = [pytest.mark.asyncio, pytest.mark.spark, pytest.mark.sampled]


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("kind", KINDS)
async def test_spark_stores_each_message_once_through_a_kill(kind: Kind) -> None:
    """Nothing here hangs on the machine's speed: the run waits for the micro-batch, and until both
    queries have got on after the kill."""
    plan = Plan(seed=1, replicas=1, rounds=1, waits_for_orphans=False)
    result = await run(plan, print, [kind])
    assert result.is_good, str(result)
    assert result.faults[kind] == 1
    if kind == "driver":
        assert result.faults["driver: rows stored"] == 1
    source = result.counts["source"]
    assert source
    assert {row["messages"] for row in result.readers.values()} == {source}
