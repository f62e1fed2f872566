"""The bench of core streams runs, with sizes that say nothing about speed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from scripts.benchmarks.core_streams import Sizes, core_streams

if TYPE_CHECKING:
    from natsstream.testing import NatsServer

SIZES = Sizes(loaded=2_000, dicts=200, written=300, changes=20, streams=5)


@pytest.mark.sampled
@pytest.mark.asyncio
async def test_bench_of_core_streams_measures_every_figure(fresh_server: NatsServer) -> None:
    said: list[str] = []
    lines = await asyncio.to_thread(core_streams, fresh_server.url, 1, said.append, SIZES)

    assert len(said) == 11
    assert {
        "open / read",
        "open keyed / read keyed",
        "publish_many / publisher",
        "change p50 / request",
    } <= {line.figure for line in lines}
    assert all(line.low <= line.median <= line.high for line in lines)
