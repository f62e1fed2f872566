"""Reads of the newest message of each subject, on which views stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import ConfigError, StreamRecreatedError, SubjectError, UsageError
from natsstream.read import session
from tests.support.eventually import eventually_async
from tests.support.ordered import delete_consumers, publish, take_sequences
from tests.support.streams import consumer_count, fill

if TYPE_CHECKING:
    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio


async def newest(js: JetStream, name: str, count: int) -> Stream:
    """Return a stream that keeps one message of each of its subjects, `<name>.0` and so on."""
    stream = await js.streams.ensure(
        name, subjects=[f"{name}.>"], max_msgs_per_subject=1, storage="memory"
    )
    for number in range(count):
        await js.publish(f"{name}.{number}", b"old")
    return stream


@pytest.mark.smoke
async def test_newest_come_first_then_what_is_stored(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 30)

    async with stream.latest() as tail:
        assert [message.sequence async for message in tail.initial()] == [28, 29, 30]
        await fill(js, stream_name, 2, start=30)
        assert await take_sequences(tail, 2) == [31, 32]
        assert tail.is_caught_up
    async with stream.latest(include_history=True) as tail:
        assert len([message async for message in tail.initial()]) == 32
    async with stream.latest(updates_only=True) as tail:
        assert [message async for message in tail.initial()] == []
        await fill(js, stream_name, 1, start=32)
        assert await take_sequences(tail, 1) == [33]

    async def is_clean() -> bool:
        return await consumer_count(stream) == 0

    await eventually_async(is_clean)


async def test_overlapping_filters_bring_each_message_once(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 30)
    filters = [f"{stream_name}.1", f"{stream_name}.*", f"{stream_name}.1", f"{stream_name}.>"]

    async with stream.latest(filters=filters) as tail:
        assert [message.sequence async for message in tail.initial()] == [28, 29, 30]


async def test_headers_tell_the_size_of_what_is_left_out(js: JetStream, stream_name: str) -> None:
    stream = await newest(js, stream_name, 0)
    await publish(js, f"{stream_name}.a", b"x" * 300, b"")

    async with stream.latest(headers_only=True, include_history=True) as tail:
        await js.publish(f"{stream_name}.b", b"y" * 70_000)
        found = await tail.__anext__(), await tail.__anext__()
    async with stream.latest() as tail:
        whole = [message async for message in tail.initial()]

    assert [(each.data, each.stored_bytes) for each in found] == [(b"", 0), (b"", 70_000)]
    assert [each.stored_bytes for each in whole] == [0, 70_000]


async def test_messages_tell_what_is_pending_behind_them(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 5)

    async with stream.latest(include_history=True) as tail:
        assert [message.pending async for message in tail.initial()] == [4, 3, 2, 1, 0]
    alone = await stream.get(3)

    assert alone is not None
    assert alone.pending == 0


@pytest.mark.parametrize("breaks", [False, True])
async def test_subject_that_is_written_before_its_turn_is_among_the_initial_ones(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch, *, breaks: bool
) -> None:
    """Two messages are under way at most, also where the consumer is lost in the middle."""
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 2)
    stream = await newest(js, stream_name, 10)

    async with stream.latest() as tail:
        found = await take_sequences(tail, 2)
        await js.publish(f"{stream_name}.9", b"new")
        await js.publish(f"{stream_name}.8", b"new")
        if breaks:
            await delete_consumers(js, stream_name)
        found += [message.sequence async for message in tail.initial()]

    assert found == [*range(1, 9), 11, 12]


async def test_ordered_reads_end_at_their_beginning_as_before(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 2)
    stream = await newest(js, stream_name, 10)

    async with stream.ordered(deliver_policy="last_per_subject") as tail:
        found = await take_sequences(tail, 2)
        await js.publish(f"{stream_name}.9", b"new")
        found += [message.sequence async for message in tail.initial()]
        later = await take_sequences(tail, 1)

    assert found == list(range(1, 10))
    assert later == [11]


async def test_place_is_where_another_one_goes_on(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 30)

    async with stream.latest() as tail:
        found = await take_sequences(tail, 1)
        first, created_ns = tail.next_seq, tail.created_ns
    async with stream.latest(first_seq=first, created_ns=created_ns) as tail:
        found += [message.sequence async for message in tail.initial()]
        assert tail.next_seq == 31
    async with stream.latest(first_seq=31) as tail:
        assert [message async for message in tail.initial()] == []

    assert found == [28, 29, 30]


async def test_place_that_the_stream_has_not_come_to_is_refused(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 3)

    with pytest.raises(StreamRecreatedError, match="ends at 3, before 4"):
        async with stream.latest(first_seq=5):
            pass
    with pytest.raises(StreamRecreatedError):
        async with stream.latest(first_seq=2, created_ns=1):
            pass
    assert await consumer_count(stream) == 0


async def test_unopened_reader_names_the_call_that_made_it(js: JetStream, stream_name: str) -> None:
    tail = (await js.streams.ensure(stream_name)).latest()

    with pytest.raises(UsageError, match="the reader of latest messages is not open") as caught:
        await anext(tail)
    async with tail:
        pass

    assert caught.value.hint == "async with stream.latest() as tail: async for message in tail"
    with pytest.raises(UsageError, match="opens once") as caught:
        async with tail:
            pass
    assert caught.value.hint == "call stream.latest() again"


async def test_wrong_arguments_are_refused(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 3)

    with pytest.raises(ConfigError, match="two starts"):
        stream.latest(first_seq=1, include_history=True)
    with pytest.raises(SubjectError):
        stream.latest(filters=["a..b"])
