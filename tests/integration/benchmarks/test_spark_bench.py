"""The bench of neighbours runs, without Spark, with sizes that say nothing about speed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from scripts.benchmarks.spark import spark_neighbours
from scripts.benchmarks.subjects.neighbours import DIRECT, IDLE

if TYPE_CHECKING:
    from natsstream.testing import NatsServer


@pytest.mark.asyncio
async def test_bench_of_neighbours_measures_a_publisher_beside_each_reader(
    fresh_server: NatsServer,
) -> None:
    said: list[str] = []
    lines = await asyncio.to_thread(
        spark_neighbours, fresh_server.url, 1, said.append, 30_000, (IDLE, DIRECT)
    )

    assert len(said) == 2
    assert [line.figure for line in lines] == [
        f"{name}: publisher's {of} in ms" for name in (IDLE, DIRECT) for of in ("p50", "p99")
    ]
    assert all(0 < line.low <= line.median <= line.high for line in lines)
