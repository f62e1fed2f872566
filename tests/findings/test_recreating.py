"""Finding 34: how long a reader stands still when somebody deletes its consumer.

nats-py 2.16 notices by missed heartbeats, after 10 to 20 seconds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.ordered import delete_consumers, publish, take_sequences
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

# What our reads ask for, and the least after which silence could tell anything.
HEARTBEAT_S = 2.0
ROUNDS = 5


@pytest.mark.finding(34)
async def test_deleted_consumer_is_replaced_before_a_heartbeat_is_due(
    js: JetStream, stream_name: str
) -> None:
    """Reader and heartbeat run a race, five times; nats-py would lose it by five heartbeats."""
    stream = await fill(js, stream_name, 1)
    won = 0

    async with stream.ordered() as tail:
        found = await take_sequences(tail, 1)
        for _ in range(ROUNDS):
            reading = asyncio.ensure_future(take_sequences(tail, 1))
            await stream.info()
            await delete_consumers(js, stream_name)
            await publish(js, f"{stream_name}.0", b"new")
            in_time, _ = await asyncio.wait([reading], timeout=HEARTBEAT_S)
            won += len(in_time)
            found += await reading

    assert found == list(range(1, ROUNDS + 2))
    assert tail.report.reasons == {"consumer_deleted": ROUNDS}
    # A machine that stands still for two seconds is no fault of the reader's.
    assert won > ROUNDS // 2
