"""Atomic batches on one server: what is stored, what is refused, and what is left behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import Expect, connect
from natsstream.errors import (
    BatchDisabledError,
    BatchDuplicateError,
    BatchExpiredError,
    BatchIncompleteError,
    BatchTooLargeError,
    ConfigError,
    NoRespondersError,
    PayloadTooLargeError,
    TooManyBatchesError,
    UsageError,
    WrongLastSequenceError,
    WrongStreamError,
)
from natsstream.testing import NatsServer
from natsstream.testing.versions import server_binary

if TYPE_CHECKING:
    from natsstream import AtomicBatch, JetStream, Stream

pytestmark = pytest.mark.asyncio


async def payloads(stream: Stream) -> list[bytes]:
    info = await stream.info()
    return (
        [message.data async for message in stream.read(first_seq=1)] if info.state.messages else []
    )


@pytest.mark.proves("1b", "atomic batch (ADR-50)")
async def test_a_batch_is_stored_as_a_whole_at_the_commit(stream: Stream) -> None:
    async with stream.batch() as tx:
        numbers = [await tx.add(f"{stream.name}.{n}", b"%d" % n) for n in range(5)]
        before = (await stream.info()).state.messages
        ack = await tx.commit()

    assert numbers == [1, 2, 3, 4, 5]
    assert before == 0
    assert (ack.stream, ack.first_seq, ack.sequence, ack.count) == (stream.name, 1, 5, 5)
    assert await payloads(stream) == [b"0", b"1", b"2", b"3", b"4"]
    assert await tx.outcome() == ack


async def test_commit_takes_a_last_message(stream: Stream) -> None:
    async with stream.batch() as tx:
        await tx.add(f"{stream.name}.a", b"a", headers={"Tag": "x"}, msg_id="1")
        ack = await tx.commit(f"{stream.name}.b", b"b", msg_id="2")

    message = await stream.get(1)
    assert message is not None
    assert (ack.sequence, ack.count, message.headers["Tag"]) == (2, 2, "x")


async def test_a_batch_of_one_needs_nothing_but_the_commit(stream: Stream) -> None:
    async with stream.batch() as tx:
        ack = await tx.commit(f"{stream.name}.a", b"alone")

    assert (ack.sequence, ack.count) == (1, 1)


async def test_the_largest_batch_is_stored_and_one_more_is_refused_before(stream: Stream) -> None:
    async with stream.batch() as tx:
        for _ in range(1_000):
            await tx.add(f"{stream.name}.a", b"x")
        with pytest.raises(BatchTooLargeError):
            await tx.add(f"{stream.name}.a", b"x")
        ack = await tx.commit()

    assert ack.count == 1_000


async def test_the_server_refuses_a_batch_that_is_too_large_for_it(stream: Stream) -> None:
    async with stream.batch(max_messages=2_000) as tx:
        for _ in range(1_000):
            await tx.add(f"{stream.name}.a", b"x")
        with pytest.raises(BatchTooLargeError) as caught:
            await tx.commit(f"{stream.name}.a", b"x")

    assert caught.value.err_code == 10199
    assert await payloads(stream) == []


async def test_leaving_without_commit_stores_nothing_and_frees_the_place(stream: Stream) -> None:
    # The server keeps 50 open batches a stream: each of these would keep its place for 10 s.
    for _ in range(60):
        tx = stream.batch()
        async with tx:
            await tx.add(f"{stream.name}.a", b"x")

    tx = stream.batch()
    async with tx:
        await tx.add(f"{stream.name}.a", b"x")
    assert await payloads(stream) == []
    with pytest.raises(UsageError, match="over"):
        await tx.commit()
    assert await tx.outcome() is None


async def test_block_that_ends_without_commit_is_logged(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    async with stream.batch() as tx:
        for _ in range(2):
            await tx.add(f"{stream.name}.a", b"x")
    async with stream.batch():
        pass
    async with stream.batch() as tx:
        await tx.add(f"{stream.name}.a", b"x")
        await tx.abandon()
    with pytest.raises(ZeroDivisionError):
        await fail_in_block(stream)

    (record,) = [each for each in caplog.records if each.name == "natsstream.publisher"]
    assert record.levelname == "WARNING"
    assert stream.name in record.message
    assert "2 messages" in record.message
    assert "call tx.commit()" in record.message


async def fail_in_block(stream: Stream) -> None:
    async with stream.batch() as tx:
        await tx.add(f"{stream.name}.a", b"x")
        raise ZeroDivisionError


async def test_an_error_in_the_block_gives_the_batch_up(stream: Stream) -> None:
    with pytest.raises(ZeroDivisionError):
        await fail_in_block(stream)

    assert await payloads(stream) == []


async def test_the_51st_open_batch_is_refused_and_says_that_it_may_be_tried_again(
    stream: Stream,
) -> None:
    async with asyncio.TaskGroup() as group:
        opened = [stream.batch() for _ in range(50)]
        for each in opened:
            group.create_task(begin(each, stream))

    async with stream.batch() as tx:
        with pytest.raises(TooManyBatchesError) as caught:
            await tx.add(f"{stream.name}.a", b"x")

    assert caught.value.retryable
    for each in opened:
        await each.abandon()
    async with stream.batch() as tx:
        await tx.add(f"{stream.name}.a", b"x")
        assert (await tx.commit()).count == 1


async def begin(tx: AtomicBatch, stream: Stream) -> None:
    await tx.__aenter__()
    await tx.add(f"{stream.name}.a", b"x")


@pytest.mark.proves("1b", "atomic batch (ADR-50)")
async def test_an_expectation_that_fails_refuses_the_whole_batch(stream: Stream) -> None:
    await stream.publish(f"{stream.name}.guard", b"1")
    async with stream.batch() as tx:
        await tx.add(f"{stream.name}.a", b"x")
        await tx.add(f"{stream.name}.guard", b"2", expect=Expect(last_subject_seq=7))
        with pytest.raises(WrongLastSequenceError) as caught:
            await tx.commit()

    assert caught.value.last_seq == 1
    assert await payloads(stream) == [b"1"]
    assert await tx.outcome() is None


async def test_expectations_that_hold_are_of_the_time_before_the_batch(stream: Stream) -> None:
    await stream.publish(f"{stream.name}.a", b"1")
    async with stream.batch() as tx:
        await tx.add(f"{stream.name}.b", b"2", expect=Expect(last_seq=1))
        other = Expect(last_subject_seq=1, subject=f"{stream.name}.a")
        await tx.add(f"{stream.name}.c", b"3", expect=other)
        ack = await tx.commit()

    assert (ack.first_seq, ack.sequence) == (2, 3)


@pytest.mark.parametrize(
    "expect",
    [
        pytest.param(Expect(last_msg_id="m"), id="the-last-message-id"),
        pytest.param(Expect(last_seq=1), id="the-last-sequence-at-a-later-message"),
        pytest.param(Expect(last_subject_seq=0), id="a-subject-that-the-batch-has-written"),
    ],
)
async def test_what_can_not_be_expected_in_a_batch_is_refused_before(
    stream: Stream, expect: Expect
) -> None:
    async with stream.batch() as tx:
        await tx.add(f"{stream.name}.a", b"1")
        with pytest.raises(ConfigError):
            await tx.add(f"{stream.name}.a", b"2", expect=expect)
        ack = await tx.commit()

    assert ack.count == 1


async def test_headers_of_the_batch_can_not_be_given(stream: Stream) -> None:
    async with stream.batch() as tx:
        with pytest.raises(ConfigError, match="Nats-Batch-Sequence"):
            await tx.add(f"{stream.name}.a", headers={"Nats-Batch-Sequence": "7"})


async def test_message_ids_that_are_stored_refuse_the_batch(stream: Stream) -> None:
    await stream.publish(f"{stream.name}.a", b"1", msg_id="known")
    async with stream.batch() as tx:
        await tx.add(f"{stream.name}.a", b"2", msg_id="new")
        with pytest.raises(BatchDuplicateError):
            await tx.add(f"{stream.name}.a", b"2", msg_id="new")
        await tx.add(f"{stream.name}.a", b"3", msg_id="known")
        with pytest.raises(BatchDuplicateError) as caught:
            await tx.commit()

    assert caught.value.err_code == 10201
    assert await payloads(stream) == [b"1"]


async def test_a_subject_of_no_stream_ends_the_batch(stream: Stream) -> None:
    async with stream.batch() as tx:
        with pytest.raises(NoRespondersError):
            await tx.add("nobody.has.this", b"x")
        with pytest.raises(UsageError, match="no stream"):
            await tx.commit()


async def test_a_message_that_the_stream_does_not_capture_is_named_at_the_commit(
    stream: Stream,
) -> None:
    async with stream.batch() as tx:
        await tx.add(f"{stream.name}.a", b"1")
        await tx.add("nobody.has.this", b"2")
        with pytest.raises(BatchIncompleteError, match=r"nobody\.has\.this"):
            await tx.commit()

    assert await payloads(stream) == []


async def test_a_batch_that_goes_to_another_stream_is_refused(
    js: JetStream, stream: Stream
) -> None:
    name = f"{stream.name}_other"
    other = await js.streams.ensure(name, subjects=[f"{name}.>"], allow_atomic=True)
    async with stream.batch() as tx:
        await tx.add(f"{stream.name}.a", b"x")
        with pytest.raises(WrongStreamError, match="nothing was sent"):
            await tx.add(f"{name}.a", b"x")
        with pytest.raises(WrongStreamError, match="nothing was sent"):
            await tx.commit(f"{name}.a", b"x")
        ack = await tx.commit()

    assert (ack.count, (await other.info()).state.messages) == (1, 0)


async def test_a_batch_whose_subjects_were_taken_over_says_where_it_is(
    js: JetStream, stream: Stream
) -> None:
    """Nothing in the messages says which stream they are for; the ack says which one has them."""
    subject = f"{stream.name}.a"
    await js.streams.update(stream.name, subjects=[f"{stream.name}.other"])
    other = await js.streams.ensure(f"{stream.name}_b", subjects=[subject], allow_atomic=True)
    async with stream.batch() as tx:
        await tx.add(subject, b"1")
        await tx.add(subject, b"2")
        with pytest.raises(WrongStreamError, match=f"stream {other.name} has stored"):
            await tx.commit()

    outcome = await tx.outcome()
    assert outcome is not None
    assert (outcome.stream, outcome.count) == (other.name, 2)


async def test_an_empty_batch_can_not_be_committed(stream: Stream) -> None:
    async with stream.batch() as tx:
        with pytest.raises(UsageError, match="empty"):
            await tx.commit()
        with pytest.raises(ConfigError, match="subject"):
            await tx.commit(data=b"x")
    with pytest.raises(UsageError, match="not open"):
        await stream.batch().add(f"{stream.name}.a")
    with pytest.raises(UsageError, match="opened before"):
        async with tx:
            pass


async def test_wrong_types_are_refused_and_the_batch_goes_on(stream: Stream) -> None:
    wrong: list[dict[str, object]] = [{"headers": "x"}, {"expect": {"last_seq": 1}}, {"ttl": "x"}]
    async with stream.batch() as tx:
        for each in wrong:
            with pytest.raises(UsageError):
                # The wrong types are the test.
                await tx.add(f"{stream.name}.a", **each)  # pyright: ignore[reportArgumentType]
        await tx.add(f"{stream.name}.a", b"x")
        assert (await tx.commit()).count == 1


async def test_a_message_that_is_too_large_leaves_the_batch_as_it_was(stream: Stream) -> None:
    largest = stream._api.client.max_payload_bytes  # pyright: ignore[reportPrivateUsage]
    async with stream.batch() as tx:
        await tx.add(f"{stream.name}.a", b"x")
        with pytest.raises(PayloadTooLargeError):
            await tx.add(f"{stream.name}.a", bytes(largest))
        assert (await tx.commit()).count == 1


async def test_idling_is_told_before_anything_is_sent(stream: Stream) -> None:
    async with stream.batch(idle_timeout=1e-9) as tx:
        await tx.add(f"{stream.name}.a", b"x")
        with pytest.raises(BatchExpiredError):
            await tx.commit()

    assert await payloads(stream) == []


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({}, BatchDisabledError, "allow_atomic=True"),
        ({"no_ack": True, "allow_atomic": True}, ConfigError, "no_ack"),
        ({"persist_mode": "async"}, ConfigError, "persist_mode"),
    ],
)
async def test_streams_that_take_no_batches_are_refused_with_what_to_change(
    js: JetStream,
    stream_name: str,
    fields: dict[str, object],
    error: type[Exception],
    words: str,
) -> None:
    stream = await js.streams.ensure(stream_name, **fields)  # pyright: ignore[reportArgumentType]

    with pytest.raises(error, match=words):
        async with stream.batch():
            pass


async def test_a_mirror_is_refused(js: JetStream, stream: Stream) -> None:
    mirror = await js.streams.ensure(f"{stream.name}_m", mirror={"name": stream.name})

    with pytest.raises(ConfigError, match="mirror"):
        async with mirror.batch():
            pass
    with pytest.raises(ConfigError, match="mirror"):
        async with mirror.ingest():
            pass


async def test_a_stream_that_was_allowed_meanwhile_is_looked_at_again(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.ensure(stream_name)
    await js.streams.update(stream_name, allow_atomic=True)

    async with stream.batch() as tx:
        assert (await tx.commit(stream_name, b"x")).count == 1


async def test_counters_count_in_a_batch(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(
        stream_name, subjects=[f"{stream_name}.>"], allow_atomic=True, allow_msg_counter=True
    )
    async with stream.batch() as tx:
        await tx.add(f"{stream_name}.hits", headers={"Nats-Incr": "+2"})
        await tx.add(f"{stream_name}.hits", headers={"Nats-Incr": "+3"})
        await tx.commit()

    assert await payloads(stream) == [b'{"val":"2"}', b'{"val":"5"}']


async def test_tasks_may_add_at_the_same_time(stream: Stream) -> None:
    async with stream.batch() as tx:
        async with asyncio.TaskGroup() as group:
            for n in range(50):
                group.create_task(tx.add(f"{stream.name}.a", b"%d" % n))
        ack = await tx.commit()

    assert ack.count == 50
    assert sorted(map(int, await payloads(stream))) == list(range(50))


@pytest.mark.needs_versions
async def test_servers_before_2_14_commit_with_the_last_message(stream_name: str) -> None:
    with NatsServer(binary=server_binary("2.12")) as server:
        async with connect(server.url) as js:
            stream = await js.streams.ensure(
                stream_name, subjects=[f"{stream_name}.>"], allow_atomic=True
            )
            async with stream.batch() as tx:
                for n in range(3):
                    await tx.add(f"{stream_name}.{n}", b"%d" % n)
                ack = await tx.commit()
            async with stream.batch() as tx:
                await tx.add(f"{stream_name}.a", b"3")
                second = await tx.commit(f"{stream_name}.b", b"4")
            async with stream.batch() as tx:
                await tx.add(f"{stream_name}.a", b"given up")
                await tx.add(f"{stream_name}.a", b"given up")

            assert (ack.count, ack.sequence, second.count, second.sequence) == (3, 3, 2, 5)
            assert await payloads(stream) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("place", [1, 2])
async def test_message_that_the_stream_drops_without_a_word_is_named(
    js: JetStream, stream: Stream, place: int
) -> None:
    stream = await js.streams.update(stream.name, max_msg_size=1_000)
    async with stream.batch() as tx:
        for number in range(3):
            await tx.add(f"{stream.name}.{number}", bytes(5_000 if number == place else 1))
        with pytest.raises(BatchIncompleteError) as caught:
            await tx.commit()
    assert "max_msg_size, which is 1000 bytes" in caught.value.hint
    assert f"{stream.name}.{place} has 5" in caught.value.hint
