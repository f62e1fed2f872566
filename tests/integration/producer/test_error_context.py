"""Errors say what the stream has, in attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import SequenceGapError, StaleEpochError

if TYPE_CHECKING:
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio


async def test_sequence_conflict_returns_expected_seq(place: Place) -> None:
    """The record of batch 0 is back, and batch 2 comes."""
    producer = await place.open(epoch=0)
    await producer.append_wait(b"0")
    old, _ = await place.state()
    await producer.append_wait(b"1")
    await place.put_back(old)
    with pytest.raises(SequenceGapError) as caught:
        await producer.append_wait(b"2")
    assert (caught.value.expected_seq, caught.value.received_seq) == (1, 2)
    await producer.detach(ignore_errors=True)


async def test_stale_epoch_returns_current_epoch(place: Place) -> None:
    zombie = await place.open(epoch=0)
    await zombie.append_wait(b"0")
    async with await place.open(epoch=1) as heir:
        await heir.append_wait(b"1")
    with pytest.raises(StaleEpochError) as caught:
        await zombie.append_wait(b"stale")
    assert caught.value.current_epoch == 1
    assert "epoch 0" in caught.value.message
    await zombie.detach(ignore_errors=True)
