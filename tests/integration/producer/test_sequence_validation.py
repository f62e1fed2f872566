"""Batches by their numbers: stored in order, and told as duplicates where they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import SequenceGapError
from tests.support.producers import append_singly, numbers

if TYPE_CHECKING:
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio


async def test_first_append_accepted(place: Place) -> None:
    async with await place.open(epoch=0) as producer:
        stored = await producer.append_wait(b"a")
        assert (stored.duplicate, stored.last_seq, producer.next_seq) == (False, 0, 1)
    assert await place.data() == [b"a"]


async def test_sequential_sequences(place: Place) -> None:
    async with await place.open(epoch=0) as producer:
        stored = [await producer.append_wait(payload) for payload in numbers(3)]
    assert [(each.duplicate, each.last_seq) for each in stored] == [
        (False, 0),
        (False, 1),
        (False, 2),
    ]
    assert await place.data() == numbers(3)


async def test_sequence_gap_rejected(place: Place) -> None:
    """A record that was restored knows of fewer batches than the producer has stored."""
    producer = await place.open(epoch=0)
    await producer.append_wait(b"0")
    old, _ = await place.state()
    await producer.append_wait(b"1")
    await place.put_back(old)
    with pytest.raises(SequenceGapError):
        await producer.append_wait(b"2")
    await producer.detach(ignore_errors=True)
    assert await place.data() == numbers(2)


async def test_new_producer_seq_not_zero(place: Place) -> None:
    """The state is gone, so the stream takes this producer for a new one."""
    producer = await place.open(epoch=0)
    await producer.append_wait(b"0")
    stream = await place.js.streams.get(place.name)
    await stream.purge(subject=await place.state_subject())
    with pytest.raises(SequenceGapError):
        await producer.append_wait(b"1")
    await producer.detach(ignore_errors=True)
    assert await place.data() == [b"0"]


async def test_duplicate_returns_204(place: Place) -> None:
    async with await place.open(epoch=0) as first:
        assert await append_singly(first, [b"a"]) == [False]
    async with await place.open(epoch=0) as again:
        assert await append_singly(again, [b"a"]) == [True]
    assert await place.data() == [b"a"]


async def test_duplicate_seq_zero_preserves_state(place: Place) -> None:
    async with await place.open(epoch=0) as first:
        assert await append_singly(first, [b"0"]) == [False]
    async with await place.open(epoch=0) as again:
        assert await append_singly(again, [b"0", b"1"]) == [True, False]
    assert await place.data() == numbers(2)


async def test_duplicate_ignores_different_data(place: Place) -> None:
    async with await place.open(epoch=0) as first:
        await first.append_wait(b"kept")
    async with await place.open(epoch=0) as again:
        assert await append_singly(again, [b"other"]) == [True]
    assert await place.data() == [b"kept"]


async def test_duplicate_old_sequence(place: Place) -> None:
    async with await place.open(epoch=0) as first:
        assert not any(await append_singly(first, numbers(6)))
    for _ in range(2):  # Each begins at 0: numbers behind which newer ones are stored.
        async with await place.open(epoch=0) as again:
            assert await append_singly(again, numbers(2)) == [True, True]
    async with await place.open(epoch=0) as last:
        assert await append_singly(last, numbers(7)) == [True] * 6 + [False]
    assert await place.data() == numbers(7)


@pytest.mark.sampled_variants
async def test_ordering_preserved_in_stream(place: Place) -> None:
    async with await place.open(epoch=0) as producer:
        await append_singly(producer, numbers(30))
    messages = await place.messages()
    assert [message.data for message in messages] == numbers(30)
