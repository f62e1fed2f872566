"""JSON: one value is one message, and only the array of `append_many` is taken apart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.producers import append_all, numbers

if TYPE_CHECKING:
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio


async def stored_values(place: Place) -> list[object]:
    """Return the values of the stream."""
    return [json.loads(data) for data in await place.data()]


async def test_json_batch_single_item(place: Place) -> None:
    async with await place.open(encoding="json") as producer:
        producer.append({"id": 1})
    assert await place.data() == [b'{"id":1}']


async def test_json_batch_multiple_items(place: Place) -> None:
    items = [{"id": number} for number in range(5)]
    async with await place.open(encoding="json") as producer:
        producer.append_many(items[:3])
        for item in items[3:]:
            producer.append(item)
        await producer.flush()
        assert producer.next_seq == 1
    assert await stored_values(place) == items


async def test_json_batch_nested_arrays(place: Place) -> None:
    """One level: the elements of an appended array stay together."""
    async with await place.open(encoding="json") as producer:
        producer.append([1, 2])
        producer.append_many([[3, [4]], []])
    assert await stored_values(place) == [[1, 2], [3, [4]], []]


async def test_json_batch_mixed_types(place: Place) -> None:
    values: list[Any] = [{"a": 1}, [1, [2, 3]], "text", None, 1.5, -7, True, False, "", {}]
    async with await place.open(encoding="json") as producer:
        for value in values:
            producer.append(value)
    assert await stored_values(place) == values


async def test_bytes_batch_concatenates(place: Place) -> None:
    """A reader of bytes joins them; the boundaries are kept."""
    async with await place.open() as producer:
        append_all(producer, numbers(12))
        await producer.flush()
        assert producer.next_seq == 1
    assert await place.data() == numbers(12)
