"""Several producers of a stream, one id on several streams, and ids of all kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import StaleEpochError
from tests.support.producers import MODES, append_all, append_singly, numbers

if TYPE_CHECKING:
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio

HOSTILE = (
    "x" * 150,
    ".",
    "..",
    " ",
    "*",
    ">",
    "a.>.*",
    "/",
    "../..",
    "\n",
    "\r\nPUB INJECTED 0\r\n",
    "\N{FOX FACE}",
    "\0",
    "$ctl",
    "a\u0301",  # Another id than the next one, though it looks the same.
    "\xe1",
    "\xe9" * 300,  # 600 bytes.
)


async def test_multiple_producers_independent(place: Place) -> None:
    producers = [await place.open(each, epoch=n) for n, each in enumerate("abc")]
    for payload in numbers(3):
        for n, producer in enumerate(producers):
            stored = await producer.append_wait(payload, subject=f"{place.name}.{n}")
            assert (stored.duplicate, stored.last_seq) == (False, int(payload))
    for n, producer in enumerate(producers):
        await producer.detach()
        assert await place.data(str(n)) == numbers(3)


async def test_interleaved_producers_ordering(place: Place) -> None:
    """Their batches are in flight at the same time."""
    names = ("a", "b", "c")
    producers = [await place.open(each, max_batch_messages=7) for each in names]
    for number in range(60):
        for name, producer in zip(names, producers, strict=True):
            producer.append(b"%s %d" % (name.encode(), number))
    for producer in producers:
        await producer.detach()
    stored = await place.data()
    assert len(stored) == 3 * 60
    for name in names:
        mine = [data for data in stored if data.startswith(name.encode())]
        assert mine == [b"%s %d" % (name.encode(), number) for number in range(60)]


async def test_producer_scope_per_stream(place: Place) -> None:
    places = [place, replace(place, name=f"{place.name}-b")]
    for each in places:
        await each.make()
        async with await each.open(epoch=0) as producer:
            assert await append_singly(producer, numbers(2)) == [False, False]
    for each in places:
        assert await each.data() == numbers(2)


async def test_producer_epoch_per_stream(place: Place) -> None:
    other = replace(place, name=f"{place.name}-b")
    await other.make()
    for each, epoch in ((place, 7), (other, 2)):
        async with await each.open(epoch=epoch) as producer:
            await producer.append_wait(b"x")
    with pytest.raises(StaleEpochError) as caught:
        await place.open(epoch=2)
    assert caught.value.current_epoch == 7
    async with await other.open(epoch=2) as producer:
        assert await append_singly(producer, [b"x", b"y"]) == [True, False]
    assert [await each.data() for each in (place, other)] == [[b"x"], [b"x", b"y"]]


async def test_producer_id_long(place: Place) -> None:
    with pytest.raises(ValueError, match="601 bytes"):
        await place.open("x" * 601)
    for name in ("x" * 599, "x" * 600):
        async with await place.open(name) as producer:
            assert (producer.epoch, producer.recovered) == (0, None)
            await producer.append_wait(name.encode())
    assert await place.data() == [b"x" * 599, b"x" * 600]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_producer_id_with_special_chars(place: Place, mode: str) -> None:
    """All of them at once: none is another one's, and the next instance of each finds its state."""
    producers = [
        await place.open(each, mode=mode, subject=f"{place.name}.{n}")
        for n, each in enumerate(HOSTILE)
    ]
    for producer in producers:
        append_all(producer, numbers(20))
    for producer in producers:
        await producer.detach()
    for n, each in enumerate(HOSTILE):
        assert await place.data(str(n)) == numbers(20), each
        async with await place.open(each, mode=mode) as heir:
            assert heir.recovered is not None
            assert (heir.epoch, heir.recovered.count) == (1, 20)
