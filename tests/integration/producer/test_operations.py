"""What a duplicate answers, and which bodies and streams there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import ConfigError, StreamNotFoundError
from tests.support.producers import append_singly, numbers

if TYPE_CHECKING:
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio


async def test_duplicate_response_should_return_highest_accepted_seq_not_request_seq(
    place: Place,
) -> None:
    async with await place.open(epoch=0) as first:
        await append_singly(first, numbers(3))
    async with await place.open(epoch=0) as again:
        stored = [await again.append_wait(payload) for payload in numbers(4)]
    assert [each.duplicate for each in stored] == [True, True, True, False]
    assert [each.last_seq for each in stored] == [2, 2, 2, 3]


async def test_producer_duplicate_should_return_204_even_with_stream_seq_header(
    place: Place,
) -> None:
    """The batch's number decides, whatever the application's own number says."""
    for sequence in ("b", "a"):
        async with await place.open(epoch=0) as producer:
            stored = await producer.append_wait(b"0", headers={"Stream-Seq": sequence})
            assert stored.duplicate == (sequence == "a")
    messages = await place.messages()
    assert [message.headers["Stream-Seq"] for message in messages] == ["b"]


async def test_json_duplicate_should_not_corrupt_data(place: Place) -> None:
    for _ in range(2):
        async with await place.open(epoch=0, encoding="json") as producer:
            await producer.append_wait({"n": 0})
            await producer.append_wait([1, 2])
    assert await place.data() == [b'{"n":0}', b"[1,2]"]


async def test_should_return_404_for_non_existent_stream(place: Place) -> None:
    with pytest.raises(StreamNotFoundError):
        await place.js.producer(f"{place.name}-none", "p", update_stream=True)


async def test_should_return_400_for_empty_body(place: Place) -> None:
    """A message may be empty here: what has no message at all is refused."""
    async with await place.open() as producer:
        with pytest.raises(ConfigError, match="0 messages"):
            producer.append_many([])
        assert not (await producer.append_wait(b"")).duplicate
    assert await place.data() == [b""]


async def test_should_reject_invalid_json_with_producer_headers(place: Place) -> None:
    async with await place.open(encoding="json") as producer:
        for wrong in (float("nan"), float("inf"), object(), b"bytes", {1, 2}, {"a": object()}):
            with pytest.raises(ValueError, match="not a JSON value"):
                producer.append(wrong)
        assert producer.pending_count == 0
    assert await place.data() == []


async def test_should_reject_empty_json_array_with_producer_headers(place: Place) -> None:
    async with await place.open(encoding="json") as producer:
        with pytest.raises(ConfigError):
            producer.append_many([])
    assert await place.data() == []
