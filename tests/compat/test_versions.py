"""Every server version: what natsstream does works there, or says which version it needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from natsstream import Expect
from natsstream.errors import UnsupportedServerError, WrongLastSequenceError
from tests.support.eventually import eventually_async
from tests.support.streams import consumer_count, fill, payload

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsServer

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_versions]

LEVELS = {(2, 10): 0, (2, 11): 1, (2, 12): 3, (2, 14): 4, (2, 15): 5}


@pytest.mark.proves("1a", "account info (limits, tiers, API level)")
async def test_account_tells_the_level_of_its_server(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    before = (await js.account()).usage.streams
    await js.streams.create(stream_name)

    account = await js.account()

    assert account.api_level == LEVELS[line]
    assert account.usage.streams == before + 1
    assert account.usage.limits.max_streams == -1
    assert account.usage.reserved_memory == 0
    assert account.api_requests > 0


@pytest.mark.proves("1a", "delete")
async def test_streams_are_made_changed_found_and_deleted(js: JetStream, stream_name: str) -> None:
    subject = f"{stream_name}.a"
    await js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], compression="s2", metadata={"a": "1"}
    )
    await js.streams.update(stream_name, max_age=60, duplicate_window=10)
    stream = await js.streams.ensure(stream_name, max_msgs=5, metadata={"b": "2"})

    config = (await stream.info()).config
    listed = [info.name async for info in js.streams.list(subject=subject)]
    found = await js.streams.find(subject)
    await js.streams.delete(stream_name)

    assert (config.max_age, config.duplicate_window, config.max_msgs) == (60, 10, 5)
    assert (config.compression, (config.metadata or {})["b"]) == ("s2", "2")
    assert (listed, found) == ([stream_name], stream_name)
    assert stream_name not in [name async for name in js.streams.names()]


async def test_publishing_keeps_ids_and_expectations(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name)
    first = await stream.publish(stream_name, b"1", msg_id="a")
    again = await js.publish(stream_name, b"1", msg_id="a")

    expect = Expect(stream=stream_name, last_seq=1, last_subject_seq=1, last_msg_id="a")
    second = await js.publish(stream_name, b"2", headers={"k": "v"}, expect=expect)

    assert (first.sequence, again.sequence, again.duplicate, second.sequence) == (1, 1, True, 2)
    with pytest.raises(WrongLastSequenceError):
        await stream.publish(stream_name, b"3", expect=Expect(last_seq=1))
    message = await stream.get(2)
    assert message is not None
    assert (message.data, message.headers["k"]) == (b"2", "v")


async def test_message_lives_for_a_time_or_the_server_is_too_old(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    """A server of 2.10 stores a message with a time to live for ever."""
    is_supported = line >= (2, 11)
    stream = await js.streams.create(stream_name, allow_msg_ttl=is_supported)
    async with js.publisher() as publisher:
        if is_supported:
            await js.publish(stream_name, b"1", ttl=3600)
            future = await publisher.send(stream_name, b"2", ttl=3600)
            assert (await future).sequence == 2
            message = await stream.get(1)
            assert message is not None
            assert message.headers["Nats-TTL"] == "3600"
            return
        with pytest.raises(UnsupportedServerError, match=r"since nats-server 2\.11"):
            await js.publish(stream_name, b"1", ttl=3600)
        with pytest.raises(UnsupportedServerError):
            await publisher.send(stream_name, b"1", ttl=3600)
    assert (await stream.info()).state.messages == 0


async def test_expectation_of_another_subject_or_the_server_is_too_old(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    """A server of 2.10 compares with the message's own subject instead."""
    key, log = f"{stream_name}.key", f"{stream_name}.log"
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    await stream.publish(key, b"1")
    expect = Expect(subject=key, last_subject_seq=1)

    if line >= (2, 11):
        assert (await stream.publish(log, b"2", expect=expect)).sequence == 2
        stale = Expect(subject=key, last_subject_seq=0)
        with pytest.raises(WrongLastSequenceError):
            await stream.publish(log, b"3", expect=stale)
        return
    with pytest.raises(UnsupportedServerError):
        await stream.publish(log, b"2", expect=expect)
    assert (await stream.info()).state.messages == 1


async def test_publisher_that_retries_keeps_the_order(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name)
    async with js.publisher(retry_for=20, max_pending=1) as publisher:
        for number in range(500):
            await publisher.send(stream_name, payload(number))

    read = [message.data async for message in stream.read()]

    assert read == [payload(number) for number in range(500)]


async def test_ordered_consumer_reads_what_is_stored_and_what_comes(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 20)
    found: list[int] = []

    async with stream.ordered(
        filters=[f"{stream_name}.0", f"{stream_name}.1"], first_seq=4
    ) as tail:
        async for message in tail:
            found.append(message.sequence)
            if message.sequence == 20:
                await stream.publish(f"{stream_name}.0", b"new")
            if message.sequence == 21:
                break

    assert found == [4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 21]


async def test_ordered_consumer_begins_at_a_moment_and_with_the_last_of_each_subject(
    js: JetStream, stream_name: str
) -> None:
    """A consumer could always begin at a moment, unlike a question for one message."""
    stream = await fill(js, stream_name, 9)
    seventh = await stream.get(7)
    assert seventh is not None

    async with stream.ordered(start_time=seventh.time_ns) as by_time:
        first = await anext(aiter(by_time))
    async with stream.ordered(deliver_policy="last_per_subject") as newest:
        messages = aiter(newest)
        last = [(await anext(messages)).sequence for _ in range(3)]

    assert (first.sequence, last) == (7, [7, 8, 9])


async def test_pipelined_messages_are_all_read_as_messages_and_columns(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 3_000)
    several = [f"{stream_name}.0", f"{stream_name}.2"]

    messages = [message async for message in stream.read()]
    table = await stream.read(first_seq=11, last_seq=20).to_arrow()
    some = [message.sequence async for message in stream.read(filters=several, last_seq=9)]

    assert [message.data for message in messages] == [payload(number) for number in range(3_000)]
    assert [message.sequence for message in messages] == list(range(1, 3_001))
    assert table.column("sequence").to_pylist() == list(range(11, 21))
    assert some == [1, 3, 4, 6, 7, 9]

    async def is_clean() -> bool:
        return await consumer_count(stream) == 0

    await eventually_async(is_clean)


async def test_deleted_messages_are_no_loss(js: JetStream, stream_name: str) -> None:
    """The server's list of deleted sequences is what tells a deletion from a loss."""
    stream = await fill(js, stream_name, 10, max_msgs_per_subject=1)

    assert [message.sequence async for message in stream.read(first_seq=1)] == [8, 9, 10]


@pytest.mark.proves("1a", "get msg by seq / last-by-subject")
@pytest.mark.proves("1a", "next-by-subject from seq; by start_time")
async def test_one_message_is_found_by_sequence_and_subject(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 6)

    by_sequence = await stream.get(2)
    newest = await stream.get(last_by_subject=f"{stream_name}.0")
    later = await stream.get(2, next_by_subject=f"{stream_name}.0")

    found = [each.sequence if each else None for each in (by_sequence, newest, later)]
    assert found == [2, 4, 4]
    assert await stream.get(99) is None


@pytest.mark.proves("1a", "next-by-subject from seq; by start_time")
async def test_time_finds_messages_or_the_server_is_too_old(
    js: JetStream, versioned: NatsServer, line: tuple[int, int], stream_name: str
) -> None:
    """A server of 2.10 answers a question about a time with the first message of all."""
    stream = await fill(js, stream_name, 5)
    third = await stream.get(3)
    assert third is not None
    future = datetime.now(UTC) + timedelta(hours=1)

    if line >= (2, 11):
        found = await stream.get(start_time=third.time_ns)
        assert found is not None
        assert found.sequence == 3
        assert await stream.get(start_time=future) is None
        later = [message.sequence async for message in stream.read(start_time=third.time_ns)]
        assert later == [3, 4, 5]
        return
    with pytest.raises(UnsupportedServerError) as caught:
        await stream.get(start_time=third.time_ns)
    assert (caught.value.needs, caught.value.version) == ("2.11", versioned.version)
    for read in (stream.read(start_time=future), stream.read(end_time=future)):
        with pytest.raises(UnsupportedServerError):
            await anext(aiter(read))
