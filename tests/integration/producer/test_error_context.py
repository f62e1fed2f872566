"""Errors say what the stream has, in attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import ConfigError, SequenceGapError, StaleEpochError, SubjectError
from tests.support.producers import MODES

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


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_update_that_takes_the_records_subject_away_ends_the_producer(
    place: Place, mode: str
) -> None:
    """As `ensure` does in another program, which names the subjects of data alone.

    An exclusive producer writes a record now and then, and at the end.
    """
    data = [f"{place.name}.d"]
    await place.js.streams.update(place.name, subjects=data)
    producer = await place.open(mode=mode)
    await producer.append_wait(b"0")
    await place.js.streams.ensure(place.name, subjects=data, replicas=place.replicas)
    with pytest.raises(ConfigError, match=r"does not capture .* any more") as caught:
        await (producer.append_wait(b"1") if mode == "shared" else producer.close())
    assert "streams.ensure()" in caught.value.hint
    await producer.detach(ignore_errors=True)
    async with await place.open(mode=mode) as heir:
        await heir.append_wait(b"1")
    assert await place.data() == [b"0", b"1"]


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    ("subject", "message"), [("{}.", "empty token"), ("{}.*", "wildcard"), ("{}.a b", "a b")]
)
async def test_illegal_subject_of_a_producer_is_refused_when_it_opens(
    place: Place, subject: str, message: str
) -> None:
    with pytest.raises(SubjectError, match=message):
        await place.open(subject=subject.format(place.name))
