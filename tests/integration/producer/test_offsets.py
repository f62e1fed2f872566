"""`last_offset`, and what waits for the first claim."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import StaleEpochError, StreamClosedError
from tests.support.dropping import dropping
from tests.support.producers import MODES, append_all, is_ack, numbers

if TYPE_CHECKING:
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("mode", MODES)
async def test_tracks_the_last_successful_append_offset(place: Place, mode: str) -> None:
    async with await place.open(mode=mode) as producer:
        assert producer.last_offset is None
        for payload in numbers(3):
            stored = await producer.append_wait(payload)
            assert stored.offset == producer.last_offset
            message = (await place.messages())[-1]
            assert (message.sequence, message.data) == (stored.offset, payload)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_does_not_clear_the_last_successful_offset_on_duplicate_writes(
    place: Place, mode: str
) -> None:
    """The ack of a batch is lost: it is found to be stored, and where."""
    async with dropping(place.port) as relay, connect(relay.url, request_timeout=1.0) as js:
        options = {"subject": f"{place.name}.d", "update_stream": True, "mode": mode}
        async with await js.producer(place.name, "p", **options) as producer:  # pyright: ignore[reportArgumentType]
            first = await producer.append_wait(b"0")
            relay.drop(is_ack)
            second = await producer.append_wait(b"1")
            assert len(relay.dropped) == 1
            assert (first.duplicate, second.duplicate) == (False, True)
            assert second.offset == producer.last_offset
    messages = await place.messages()
    assert [message.data for message in messages] == numbers(2)
    assert second.offset == messages[-1].sequence


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_does_not_move_the_last_successful_offset_backward_when_writes_complete_out_of_order(
    place: Place, mode: str
) -> None:
    """Here they complete in order, so each offset is above the one before."""
    async with await place.open(mode=mode, max_batch_messages=3) as producer:
        seen: list[int | None] = []

        async def append(payload: bytes) -> int | None:
            offset = (await producer.append_wait(payload)).offset
            seen.append(producer.last_offset)
            return offset

        offsets = await asyncio.gather(*map(append, numbers(50)))
    told = [offset for offset in offsets if offset is not None]
    assert told == sorted(set(told))
    assert len(told) == 50
    known = [offset for offset in seen if offset is not None]
    assert known == sorted(known)
    assert known[-1] == told[-1]


async def test_waits_for_the_first_auto_claiming_batch_before_sending_later_batches(
    place: Place,
) -> None:
    other = await place.open(epoch=3)
    await other.append_wait(b"other")
    async with await place.open(epoch=0, auto_claim=True, max_batch_messages=1) as producer:
        append_all(producer, numbers(5))
        assert producer.in_flight_count <= 1
        await producer.flush()
        assert (producer.epoch, producer.next_seq) == (4, 5)
    with pytest.raises(StaleEpochError):
        await other.append_wait(b"never")
    await other.detach(ignore_errors=True)
    assert await place.data() == [b"other", *numbers(5)]


@pytest.mark.parametrize("mode", MODES)
async def test_tracks_the_final_close_offset(place: Place, mode: str) -> None:
    producer = await place.open(mode=mode)
    append_all(producer, numbers(3))
    closed = await producer.close(b"final")
    assert closed.final_offset == producer.last_offset
    message = (await place.messages())[-1]
    assert (message.sequence, message.data) == (closed.final_offset, b"final")


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_end_without_a_message_names_the_last_one(place: Place, mode: str) -> None:
    """Records stand between the two, and gaps where others were replaced."""
    producer = await place.open(mode=mode)
    append_all(producer, numbers(3))
    for number in range(60):
        producer.checkpoint(number)
    closed = await producer.close()
    assert closed.final_offset == producer.last_offset
    with pytest.raises(StreamClosedError) as caught:
        await place.open(mode=mode)
    assert caught.value.final_offset == closed.final_offset
    last = await (await place.js.streams.get(place.name)).get(closed.final_offset)
    assert last is not None
    assert last.data == b"2"
