"""The end of a stream as a batch: stored once, answered again, and final for everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import StaleEpochError, StreamClosedError
from tests.support.producers import append_singly, numbers

if TYPE_CHECKING:
    from natsstream.producer.producer import CloseResult
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio


async def closed_with(place: Place, final: bytes | None) -> CloseResult:
    """Store batch 0 in epoch 4 and close with batch 1."""
    producer = await place.open(epoch=4)
    await producer.append_wait(b"0")
    return await (producer.close() if final is None else producer.close(final))


async def test_idempotent_close_with_append(place: Place) -> None:
    """The final message stands directly before the end."""
    closed = await closed_with(place, b"final")
    messages = await place.messages()
    assert [message.data for message in messages] == [b"0", b"final"]
    assert messages[-1].sequence == closed.final_offset


async def test_idempotent_close_only_with_producer_headers(place: Place) -> None:
    """The close is a batch of its own in the producer's state."""
    await closed_with(place, None)
    record, _ = await place.state()
    assert (record.seq, record.is_closed, record.count) == (1, True, 1)
    assert await place.data() == [b"0"]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("final", [b"final", None])
async def test_idempotent_close_duplicate_returns_204(place: Place, final: bytes | None) -> None:
    """A new process with the same batches; its other body changes nothing."""
    closed = await closed_with(place, final)
    again = await place.open(epoch=4)
    assert await append_singly(again, [b"0"]) == [True]
    assert await again.close(b"another body") == closed
    assert await place.data() == ([b"0"] if final is None else [b"0", final])


async def test_idempotent_close_different_tuple_returns_409(place: Place) -> None:
    """Another producer that was open before cannot close again."""
    other = await place.open("other", epoch=0)
    closed = await closed_with(place, b"final")
    with pytest.raises(StreamClosedError) as caught:
        await other.close(b"never")
    assert caught.value.final_offset == closed.final_offset
    await other.detach(ignore_errors=True)
    assert await place.data() == [b"0", b"final"]


async def test_idempotent_close_different_seq_returns_409(place: Place) -> None:
    """Closed by batch 1; batch 0 and batch 2 do not close."""
    await closed_with(place, b"final")
    early = await place.open(epoch=4)
    with pytest.raises(StreamClosedError):
        await early.close(b"never")
    late = await place.open(epoch=4)
    assert await append_singly(late, [b"0"]) == [True]
    with pytest.raises(StreamClosedError):
        await late.append_wait(b"never")
    for producer in (early, late):
        await producer.detach(ignore_errors=True)
    assert await place.data() == [b"0", b"final"]


async def test_producer_state_survives_close(place: Place) -> None:
    """An earlier epoch is told either that it is over or that the stream has ended."""
    zombie = await place.open(epoch=0)
    await zombie.append_wait(b"z")
    await closed_with(place, b"final")
    for attempt in (zombie.close(b"never"), place.open(epoch=0)):
        with pytest.raises((StaleEpochError, StreamClosedError)):
            await attempt
    await zombie.detach(ignore_errors=True)
    assert await place.data() == [b"z", b"0", b"final"]


async def test_409_includes_stream_offset(place: Place) -> None:
    late = await place.open("late")
    producer = await place.open()
    await append_singly(producer, numbers(3))
    closed = await producer.close(b"3")
    messages = await place.messages()
    for attempt in (late.append_wait(b"never"), place.open("later"), place.open()):
        with pytest.raises(StreamClosedError) as caught:
            await attempt
        assert caught.value.final_offset == closed.final_offset == messages[-1].sequence
    await late.detach(ignore_errors=True)
    assert await place.data() == numbers(4)
