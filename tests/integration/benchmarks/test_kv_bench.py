"""The bench of key-value buckets runs, with sizes that say nothing about speed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from scripts.benchmarks import tools
from scripts.benchmarks.buckets import Sizes, kv
from scripts.benchmarks.streams import KEYS, fill_bucket
from scripts.benchmarks.subjects.buckets import BUCKETS

if TYPE_CHECKING:
    from natsstream.testing import NatsServer

KEYS_LISTED = 150
UPDATES = 200
COUNTS = {"get": 20, "put": 20, "puts": 300, "watch": UPDATES, "keys": KEYS_LISTED}
SIZES = Sizes(updates=UPDATES, keys=KEYS_LISTED, revisions=10)


async def bucket_for(server: NatsServer, name: str) -> tuple[str, int]:
    """Fill a bucket for a deed, and return its name and how much is done on it."""
    deed = name.rpartition(" ")[2]
    if deed == "keys":
        await fill_bucket(server.url, "listed", keys=KEYS_LISTED)
        return "listed", COUNTS[deed]
    if deed == "watch":
        await fill_bucket(server.url, "watched", keys=UPDATES // 10, revisions=10)
        return "watched", COUNTS[deed]
    await fill_bucket(server.url, "calls", keys=KEYS)
    return "calls", COUNTS[deed]


@pytest.mark.sampled_variants
@pytest.mark.asyncio
@pytest.mark.parametrize("name", BUCKETS)
async def test_subject_does_all_of_its_deed(fresh_server: NatsServer, name: str) -> None:
    bucket, count = await bucket_for(fresh_server, name)
    figure = await BUCKETS[name](fresh_server.url, bucket, count)
    assert figure.messages == count
    assert figure.seconds > 0


@pytest.mark.sampled_variants
@pytest.mark.asyncio
@pytest.mark.parametrize("deed", COUNTS)
async def test_subject_of_nats_js_does_all_of_its_deed(fresh_server: NatsServer, deed: str) -> None:
    bucket, count = await bucket_for(fresh_server, deed)
    figure = await asyncio.to_thread(
        tools.nats_js, deed, fresh_server.url, bucket, count, program="nats_js_kv.mjs"
    )
    assert figure.messages == count


def test_bench_compares_ours_with_every_other_client(fresh_server: NatsServer) -> None:
    """Each subject in a process of its own, as in a run that counts."""
    told: list[str] = []
    lines = kv(fresh_server.url, 1, told.append, SIZES, ["keys"])
    assert [line.figure for line in lines] == [
        f"ours keys / {other} keys" for other in ("nats-py", "natsrpy", "nats.js")
    ]
    assert len(told) == 4
    assert all(line.median > 0 for line in lines)
