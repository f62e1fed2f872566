"""The bench of producers runs, with sizes that say nothing about speed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from scripts.benchmarks.producers import Sizes, producer

if TYPE_CHECKING:
    from natsstream.testing import NatsServer

SIZES = Sizes(stored=2_000, few=300, slow=50, waits=5)


@pytest.mark.sampled
@pytest.mark.asyncio
async def test_bench_of_producers_measures_every_figure(fresh_server: NatsServer) -> None:
    said: list[str] = []
    lines = await asyncio.to_thread(producer, fresh_server.url, 1, said.append, SIZES)

    assert len(said) == 9 + 3 + 3 + 3 + 5
    assert {
        "shared / nats-py publish_async (R1)",
        "exclusive / nats-py publish_async (R1)",
        "shared / nats-py publish_async (R3)",
        "shared / nats-py publish_async (20 ms link)",
        "exclusive append_wait p50 / publish (memory)",
    } <= {line.figure for line in lines}
    assert all(line.low <= line.median <= line.high for line in lines)
