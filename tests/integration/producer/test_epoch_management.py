"""Epochs: a later one stops all earlier ones, and begins with batch 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import SequenceGapError, StaleEpochError
from natsstream.producer.records import Instance
from tests.support.producers import append_all, append_singly, numbers

if TYPE_CHECKING:
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio


async def store(place: Place, epoch: int, *payloads: bytes) -> None:
    """Store payloads in an epoch, each in a batch of its own."""
    async with await place.open(epoch=epoch) as producer:
        assert not any(await append_singly(producer, payloads))
        assert producer.next_seq == len(payloads)


async def test_epoch_upgrade_accepted(place: Place) -> None:
    await store(place, 0, b"0", b"1")
    await store(place, 1, b"2")
    assert await place.data() == numbers(3)


async def test_sequence_resets_on_epoch_upgrade(place: Place) -> None:
    await store(place, 0, b"0", b"1", b"2")
    await store(place, 1, b"3", b"4")
    assert await place.data() == numbers(5)


async def test_stale_epoch_rejected(place: Place) -> None:
    zombie = await place.open(epoch=0)
    await zombie.append_wait(b"0")
    await store(place, 1, b"1")
    with pytest.raises(StaleEpochError):
        await zombie.append_wait(b"never")
    await zombie.detach(ignore_errors=True)
    assert await place.data() == numbers(2)


async def test_epoch_rollback_rejected(place: Place) -> None:
    await store(place, 2, b"0")
    with pytest.raises(StaleEpochError):
        await place.open(epoch=1)
    assert await place.data() == [b"0"]


async def test_epoch_zero_after_higher_epoch(place: Place) -> None:
    await store(place, 5, b"0")
    with pytest.raises(StaleEpochError) as caught:
        await place.open(epoch=0)
    assert caught.value.current_epoch == 5


async def test_split_brain_fencing(place: Place) -> None:
    """Two instances that both take themselves for the only one; the later epoch wins."""
    first = await place.open(epoch=0)
    await first.append_wait(b"0")
    second = await place.open(epoch=1)
    await second.append_wait(b"1")
    for _ in range(2):
        with pytest.raises(StaleEpochError) as caught:
            await first.append_wait(b"never")
        assert caught.value.current_epoch == 1
    await second.append_wait(b"2")
    await first.detach(ignore_errors=True)
    await second.detach()
    assert await place.data() == numbers(3)


async def test_epoch_increase_requires_seq_zero(place: Place) -> None:
    """A restored record of the epoch before: what comes next has number 1 of a new epoch."""
    producer = await place.open(epoch=1)
    await producer.append_wait(b"0")
    record, _ = await place.state()
    older = record.followed_by(Instance(0, "older", 4))
    await place.put_back(older)
    with pytest.raises(SequenceGapError) as caught:
        await producer.append_wait(b"never")
    assert (caught.value.expected_seq, caught.value.received_seq) == (0, 1)
    await producer.detach(ignore_errors=True)
    assert await place.data() == [b"0"]


async def test_epoch_gap_allowed(place: Place) -> None:
    await store(place, 0, b"0")
    await store(place, 10, b"1")
    with pytest.raises(StaleEpochError) as caught:
        await place.open(epoch=5)
    assert caught.value.current_epoch == 10
    assert await place.data() == numbers(2)


async def test_large_epoch_numbers(place: Place) -> None:
    for epoch in (2_147_483_640, 2**53 - 1):
        await store(place, epoch, b"%d" % epoch)
        with pytest.raises(StaleEpochError) as caught:
            await place.open(epoch=epoch - 1)
        assert caught.value.current_epoch == epoch
    assert await place.data() == [b"2147483640", b"%d" % (2**53 - 1)]


async def test_autoclaim_recovers_from_stale_epoch(place: Place) -> None:
    await store(place, 5, b"0")
    async with await place.open(epoch=0, auto_claim=True) as producer:
        await producer.append_wait(b"1")
        assert producer.epoch == 6
    assert await place.data() == numbers(2)


async def test_autoclaim_recovers_from_403(place: Place) -> None:
    """Another instance claims while this one is at work."""
    async with await place.open(epoch=0, auto_claim=True) as producer:
        await producer.append_wait(b"0")
        await store(place, 1, b"1")
        stored = await producer.append_wait(b"2")
        assert (producer.epoch, stored.last_seq, stored.duplicate) == (2, 0, False)
    assert await place.data() == numbers(3)


async def test_autoclaim_batch_recovers_from_403(place: Place) -> None:
    async with await place.open(epoch=0, auto_claim=True, max_batch_messages=2) as producer:
        append_all(producer, numbers(4))
        await producer.flush()
        await store(place, 1, b"other")
        append_all(producer, numbers(6, 4))
        await producer.flush()
        assert producer.epoch == 2
    assert await place.data() == [*numbers(4), b"other", *numbers(6, 4)]
