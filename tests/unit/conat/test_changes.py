from __future__ import annotations

import asyncio
import gc

import pytest

from natsstream.conat import changes
from natsstream.conat.changes import Changes
from natsstream.errors import NatsStreamError, SlowReaderError

pytestmark = pytest.mark.asyncio


def readers(found: Changes[int]) -> int:
    """Return how many readers an object has, after unused ones are collected."""
    gc.collect()
    return len(found._readers)  # pyright: ignore[reportPrivateUsage]


async def test_a_reader_that_was_never_read_is_forgotten() -> None:
    found: Changes[int] = Changes()
    for _ in range(3):
        found.read()
    held = found.read()
    found.emit(1)
    assert readers(found) == 1
    assert await anext(held) == 1


async def test_a_loop_that_was_left_is_forgotten() -> None:
    found: Changes[int] = Changes()

    async def first() -> int:
        async for each in found.read():
            return each
        raise AssertionError

    reading = asyncio.ensure_future(first())
    await asyncio.sleep(0)
    found.emit(1)
    assert await reading == 1
    assert readers(found) == 0


async def test_a_reader_that_was_closed_keeps_nothing() -> None:
    found: Changes[int] = Changes()
    reader = found.read()
    found.emit(1)
    await reader.aclose()
    found.emit(2)
    assert [each async for each in reader] == []


async def test_an_error_ends_all_readers_behind_what_they_have_now_and_later() -> None:
    found: Changes[int] = Changes()
    reader = found.read()
    found.emit(1)
    error = NatsStreamError("broken")
    found.close(error)
    found.close()
    assert await anext(reader) == 1
    for each in (reader, found.read()):
        for _ in range(2):
            with pytest.raises(NatsStreamError) as caught:
                await anext(each)
            assert caught.value is error


async def test_a_reader_resumes_behind_what_it_was_too_slow_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "CHANGES_KEPT_MAX", 2)
    found: Changes[int] = Changes()
    reader = found.read()
    for number in range(5):
        found.emit(number)
    assert [await anext(reader), await anext(reader)] == [0, 1]
    with pytest.raises(SlowReaderError) as caught:
        await anext(reader)
    assert caught.value.dropped == 3
    found.emit(5)
    assert await anext(reader) == 5
