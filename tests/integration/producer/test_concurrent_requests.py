"""Many batches at once, and what is refused before anything is sent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream.errors import ConfigError
from tests.support.cancels import cancel_others
from tests.support.eventually import WITHIN_S
from tests.support.producers import MODES, append_all, append_singly, numbers

if TYPE_CHECKING:
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("mode", MODES)
async def test_concurrent_batches_all_delivered(place: Place, mode: str) -> None:
    """The original asks for all of them; here they are in order, too."""
    options: dict[str, Any] = {"mode": mode, "max_batch_messages": 1, "max_in_flight": 5}
    async with await place.open(**options) as producer:
        append_all(producer, numbers(20))
        await producer.flush()
        # An exclusive producer's batches in flight are one run.
        assert producer.next_seq == (20 if mode == "shared" else 4)
    assert await place.data() == numbers(20)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_concurrent_json_batches_all_delivered(place: Place, mode: str) -> None:
    options: dict[str, Any] = {"mode": mode, "max_batch_messages": 1, "encoding": "json"}
    async with await place.open(**options) as producer:
        waits = [asyncio.create_task(producer.append_wait({"n": n})) for n in range(20)]
        stored = [await each for each in waits]
    assert [each.duplicate for each in stored] == [False] * 20
    assert await place.data() == [b'{"n":%d}' % n for n in range(20)]


async def test_producer_with_stream_seq(place: Place) -> None:
    """The application's own number of a message is a header like any other."""
    async with await place.open(epoch=0) as producer:
        for number in range(3):
            await producer.append_wait(b"%d" % number, headers={"Stream-Seq": f"{number:03}"})
    messages = await place.messages()
    assert [message.headers["Stream-Seq"] for message in messages] == ["000", "001", "002"]


async def test_duplicate_json_different_payload(place: Place) -> None:
    async with await place.open(epoch=0, encoding="json") as first:
        await first.append_wait({"a": 1})
    async with await place.open(epoch=0, encoding="json") as again:
        assert (await again.append_wait({"a": 2})).duplicate
    assert await place.data() == [b'{"a":1}']


async def test_batch_retry_deduplication(place: Place) -> None:
    """A whole run of batches comes again, as after a crash of their producer."""
    for is_again in (False, True):
        async with await place.open(epoch=0) as producer:
            assert await append_singly(producer, numbers(5)) == [is_again] * 5
    assert await place.data() == numbers(5)


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    "headers",
    [
        {"Nats-Batch-Id": "x"},
        {"nats-batch-sequence": "1"},
        {"Nats-Expected-Last-Sequence": "0"},
        {"Nats-Msg-Id": "x"},
    ],
)
async def test_partial_headers_rejected(place: Place, headers: dict[str, str]) -> None:
    """The headers of a batch belong together, so none of them is taken from outside."""
    async with await place.open() as producer:
        with pytest.raises(ValueError, match="belongs to the producer"):
            producer.append(b"never", headers=headers)
    assert await place.data() == []


@pytest.mark.sampled_variants
@pytest.mark.parametrize("epoch", [-1, 1.5, "1", "abc", True, 2**53])
async def test_invalid_integer_formats_rejected(place: Place, epoch: Any) -> None:
    with pytest.raises(ValueError, match="epoch") as caught:
        await place.open(epoch=epoch)
    assert isinstance(caught.value, ConfigError)


async def test_async_on_error_is_rejected(place: Place) -> None:
    """It would never be awaited."""
    with pytest.raises(ConfigError, match=r"on_error is .* which is async"):
        await place.open(on_error=asyncio.sleep)


async def test_empty_producer_id_rejected(place: Place) -> None:
    with pytest.raises(ValueError, match="producer_id"):
        await place.open("")


@pytest.mark.parametrize("mode", MODES)
async def test_producer_goes_on_when_all_tasks_but_one_are_cancelled(
    place: Place, mode: str
) -> None:
    """A request in flight may have been stored."""
    async with await place.open(mode=mode, max_batch_messages=1) as producer:
        append_all(producer, numbers(20))
        await asyncio.wait(cancel_others(), timeout=1)
        append_all(producer, [b"20"])
        await producer.flush()
        await asyncio.wait(cancel_others(), timeout=1)
    assert await place.data() == numbers(21)


@pytest.mark.parametrize("mode", MODES)
async def test_append_wait_goes_on_when_all_other_tasks_are_cancelled(
    place: Place, mode: str
) -> None:
    async with await place.open(mode=mode) as producer:
        await producer.append_wait(b"0")
        waits = [asyncio.create_task(producer.append_wait(b"%d" % n)) for n in (1, 2)]
        await asyncio.sleep(0)  # They wait.
        await asyncio.wait(cancel_others(*waits), timeout=1)
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*waits)
    assert await place.data() == numbers(3)


async def test_append_wait_that_is_cancelled_with_all_other_tasks_leaves_none_behind(
    place: Place,
) -> None:
    """As asyncio.run() does it at its end."""

    def is_running() -> bool:
        return any("Session._run" in repr(each) for each in asyncio.all_tasks())

    producer = await place.open()
    wait = asyncio.create_task(producer.append_wait(b"0"))
    await asyncio.sleep(0)  # It waits.
    assert is_running()
    await asyncio.wait(cancel_others(), timeout=1)
    assert wait.cancelled()
    assert not is_running()
    await producer.detach()


@pytest.mark.parametrize("mode", MODES)
async def test_close_stores_what_waits_after_all_other_tasks_were_cancelled(
    place: Place, mode: str
) -> None:
    producer = await place.open(mode=mode, max_batch_messages=1)
    append_all(producer, numbers(20))
    await asyncio.wait(cancel_others(), timeout=1)
    async with asyncio.timeout(WITHIN_S):
        await producer.close()
    assert await place.data() == numbers(20)
