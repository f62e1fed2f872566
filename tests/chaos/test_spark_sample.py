"""A short sample of `scripts/chaos --crew spark`: one kill of each kind on one server."""

from __future__ import annotations

import pytest

from scripts.chaos_runs.plan import Plan
from scripts.chaos_runs.spark.run import run
from scripts.chaos_runs.spark.schedule import KINDS

pytestmark = [pytest.mark.asyncio, pytest.mark.spread]


@pytest.mark.timeout(600)
async def test_spark_stores_each_message_once_through_a_kill_of_each_kind() -> None:
    """The kills are in the middle of a micro-batch: the run waits for it, however slow it is."""
    result = await run(Plan(seed=1, replicas=1, rounds=1), print)
    assert result.is_good, str(result)
    assert {kind: result.faults[kind] for kind in KINDS} == dict.fromkeys(KINDS, 1)
    assert result.faults["driver: batch open"]
    source = result.counts["source"]
    assert source
    assert {row["messages"] for row in result.readers.values()} == {source}
