"""Flow control: the server waits for the reader, and what happens without it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import SlowReaderError
from tests.support.eventually import eventually_async
from tests.support.pushing import fill_push, make_push, numbers, take_push

if TYPE_CHECKING:
    from natsstream import JetStream, PushMessages, Stream
    from natsstream._wire.parser import Frame
    from natsstream.consume.delivery.delivered import DeliveredMessage

pytestmark = pytest.mark.asyncio

SIZE = 10_000
# The server's window begins at 2 MiB and doubles with each answer.
FIRST_WINDOW = 3 << 20


async def settled(messages: PushMessages, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many messages wait for the reader once no more come.

    The server says so itself: a heartbeat comes when nothing else does, and tells that it waits.
    """
    has_stopped = asyncio.Event()
    inlet = messages._sink  # pyright: ignore[reportPrivateUsage] - what it hears.
    accept = inlet.accept

    def watch(frames: list[Frame]) -> None:
        accept(frames)
        if any(b"Nats-Consumer-Stalled" in frame[2] for frame in frames):
            has_stopped.set()

    with monkeypatch.context() as patches:
        patches.setattr(inlet, "accept", watch)
        await has_stopped.wait()
    return messages.pending_count


async def have_been_dropped(messages: PushMessages, count: int) -> bool:
    """Tell whether so many messages found no room."""
    return messages.dropped >= count


@pytest.mark.proves("1c", "push legacy, flow control, queue")
@pytest.mark.finding(4)
async def test_server_waits_for_a_reader_that_stands_still(
    js: JetStream, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = await make_push(stream, ack_policy="none")
    await fill_push(js, stream, 3_000, size=SIZE)

    async with consumer.subscribe() as messages:
        first = await settled(messages, monkeypatch)
        assert 0 < first * SIZE < FIRST_WINDOW
        # Still nothing: heartbeats ask again and again and are not answered either.
        assert await settled(messages, monkeypatch) == first
        found = await take_push(messages, 3_000, ack=False)

    assert numbers(found) == list(range(1, 3_001))
    assert (messages.dropped, messages.missed) == (0, 0)


@pytest.mark.proves("1c", "push legacy, flow control, queue")
@pytest.mark.finding(4)
async def test_request_is_answered_when_the_messages_before_it_were_taken(
    js: JetStream, other: JetStream, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another connection watches the answers."""
    consumer = await make_push(stream, ack_policy="none")
    await fill_push(js, stream, 1_000, size=SIZE)
    answers: list[Frame] = []
    client = other._client  # pyright: ignore[reportPrivateUsage] - its subjects are the server's.
    await client.subscribe(f"$JS.FC.{stream.name}.>", answers.extend)
    await client.flush(30)

    async with consumer.subscribe() as messages:
        count = await settled(messages, monkeypatch)
        await client.flush(30)
        assert answers == []
        await take_push(messages, count - 1, ack=False)
        await client.flush(30)
        taken_early = len(answers)
        await take_push(messages, 1, ack=False)

        async def is_answered() -> bool:
            return bool(answers)

        await eventually_async(is_answered)

    assert taken_early <= 1  # The request may stand before the last message.


async def test_server_that_waits_for_a_reader_that_is_gone_is_answered(
    js: JetStream, stream: Stream
) -> None:
    """The request was lost with the first reader; only the heartbeats tell of it."""
    consumer = await make_push(stream, ack_policy="none")
    await fill_push(js, stream, 1_000, size=SIZE)
    client = js._client  # pyright: ignore[reportPrivateUsage] - a reader that never answers.
    frames: list[Frame] = []
    subscription = await client.subscribe(f"deliver.{stream.name}", frames.extend)

    async def is_stalled() -> bool:
        return any(b"Nats-Consumer-Stalled" in frame[2] for frame in frames)

    await eventually_async(is_stalled)
    subscription.close()
    await client.flush(30)
    taken = sum(frame[1].startswith(b"$JS.ACK.") for frame in frames)

    async def is_free() -> bool:
        return not (await consumer.info()).is_push_bound

    await eventually_async(is_free)
    async with asyncio.timeout(40), consumer.subscribe() as messages:
        found = await take_push(messages, 1_000 - taken, ack=False)

    assert numbers(found) == list(range(taken + 1, 1_001))


async def test_without_flow_control_what_does_not_fit_is_told_and_comes_again(
    js: JetStream, stream: Stream
) -> None:
    consumer = await make_push(stream, flow_control=None, ack_wait=60)
    await fill_push(js, stream, 40)

    async with consumer.subscribe(max_pending=10) as messages:
        await eventually_async(lambda: have_been_dropped(messages, 30))
        kept = await take_push(messages, 10)
        with pytest.raises(SlowReaderError) as caught:
            await anext(messages)
        # Not before: what comes again meanwhile would be dropped, and counted, once more.
        await stream.consumers.update("push", ack_wait=0.5)
        rest: set[int] = set()
        while len(rest) < 30:
            try:
                rest |= set(numbers(await take_push(messages, 1)))
            except SlowReaderError:
                continue

    assert numbers(kept) == list(range(1, 11))
    assert caught.value.dropped == 30
    assert "flow_control" in caught.value.hint
    assert rest == set(range(11, 41))


async def test_slow_reader_without_flow_control_holds_no_more_than_it_may_and_is_told(
    js: JetStream, stream: Stream
) -> None:
    """Messages come for as long as it reads: each is taken, or counted in an error."""
    consumer = await make_push(stream, flow_control=None, ack_policy="none")
    taken: list[DeliveredMessage] = []
    told = [0]
    held = 0

    async with asyncio.timeout(50), consumer.subscribe(max_pending=20) as messages:
        filling = asyncio.ensure_future(fill_push(js, stream, 3_000))
        await eventually_async(lambda: have_been_dropped(messages, 100))
        while len(taken) + told[-1] < 3_000:
            held = max(held, messages.pending_count)
            try:
                taken.append(await anext(messages))
            except SlowReaderError as error:
                told.append(error.dropped)
        await filling

    assert 0 < held <= 20
    assert told == sorted(set(told))
    assert (messages.dropped, messages.missed) == (told[-1], 0)
    assert numbers(taken) == sorted(set(numbers(taken)))


async def test_bytes_are_a_limit_too(js: JetStream, stream: Stream) -> None:
    consumer = await make_push(stream, flow_control=None, ack_policy="none")
    await fill_push(js, stream, 20, size=1_000)

    async with consumer.subscribe(max_pending_bytes=5_500) as messages:
        await eventually_async(lambda: have_been_dropped(messages, 15))
        assert messages.pending_count == 5
        await take_push(messages, 5, ack=False)
        with pytest.raises(SlowReaderError, match="lost"):
            await anext(messages)
