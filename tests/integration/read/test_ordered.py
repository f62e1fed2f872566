"""Integration tests of ordered consumers: where they begin, what they hand over, how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import natsstream.blocking
from natsstream import Gap, GapFound, connect
from natsstream.errors import MessagesLostError
from natsstream.read import session
from natsstream.read.missing import MissingSequences
from natsstream.testing import NatsServer
from tests.support.ordered import publish, take, take_sequences
from tests.support.streams import delete_message, fill, payload, purge

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

COUNT = 3_000


@pytest.mark.smoke
async def test_tail_hands_over_what_is_stored_and_what_comes(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, COUNT)

    async with stream.ordered() as tail:
        messages = await take(tail, COUNT)
        await fill(js, stream_name, 100, start=COUNT)
        messages += await take(tail, 100)

    assert [each.sequence for each in messages] == list(range(1, COUNT + 101))
    assert [each.data for each in messages] == [payload(number) for number in range(COUNT + 100)]
    assert tail.report.messages == COUNT + 100
    assert tail.report.gaps == []
    assert tail.report.resumes == 0


@pytest.mark.proves("1c", "ordered: many filters")
async def test_filters_are_applied_by_the_server(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 30)

    async with stream.ordered(filters=[f"{stream_name}.0", f"{stream_name}.2"]) as tail:
        sequences = [message.sequence async for message in tail.initial()]

    assert sequences == [each for each in range(1, 31) if each % 3 != 2]


@pytest.mark.parametrize("first", [1, 10, 30, 31])
async def test_tail_begins_at_a_sequence(js: JetStream, stream_name: str, first: int) -> None:
    stream = await fill(js, stream_name, 30)

    async with stream.ordered(first_seq=first) as tail:
        await publish(js, f"{stream_name}.0", b"new")
        assert await take_sequences(tail, 32 - first) == list(range(first, 32))


async def test_sequence_that_the_stream_has_not_come_to_is_waited_for(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The server itself begins with the next message, whatever its sequence."""
    stream = await fill(js, stream_name, 3)
    async with stream.ordered(first_seq=4):
        assert not caplog.records

    async with stream.ordered(first_seq=10) as tail:
        assert "begins at sequence 10 and the stream ends at 3" in caplog.text
        assert tail.is_caught_up
        await fill(js, stream_name, 10, start=3)
        assert await take_sequences(tail, 4) == [10, 11, 12, 13]


async def test_tail_begins_at_a_moment(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 30)
    middle = await stream.get(12)
    assert middle is not None

    async with stream.ordered(start_time=middle.time_ns) as tail:
        assert await take_sequences(tail, 19) == list(range(12, 31))


async def test_moment_to_come_is_waited_for(js: JetStream, stream_name: str) -> None:
    """The server itself begins with the next message, whatever its time."""
    stream = await fill(js, stream_name, 3)

    # A machine that stands still while the tail opens may come too late for a near moment.
    for wait_s in (0.3, 3, 20):
        start_time = datetime.now(UTC) + timedelta(seconds=wait_s)
        async with stream.ordered(start_time=start_time) as tail:
            opened_at = (await stream.info()).state.last_seq
            following = asyncio.ensure_future(anext(tail))
            while not following.done():
                await publish(js, f"{stream_name}.0", b"x")
            message = await following
        before = await stream.get(message.sequence - 1)
        assert before is not None
        assert before.time < start_time <= message.time
        if before.sequence > opened_at:
            return
    pytest.fail("no message was stored between the opening and the moment")


async def test_new_messages_alone(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 30)

    async with stream.ordered(deliver_policy="new") as tail:
        assert tail.is_caught_up
        await publish(js, f"{stream_name}.0", b"new")
        assert await take_sequences(tail, 1) == [31]


async def test_last_message_of_the_filters_then_new_ones(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 30)
    filters = [f"{stream_name}.0", f"{stream_name}.1"]

    async with stream.ordered(filters=filters, deliver_policy="last") as tail:
        await publish(js, f"{stream_name}.2", b"other")
        await publish(js, f"{stream_name}.0", b"new")
        assert await take_sequences(tail, 2) == [29, 32]


async def test_last_of_a_stream_whose_end_was_deleted(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 5)
    await delete_message(js, stream_name, 5)

    async with stream.ordered(deliver_policy="last") as tail:
        assert await take_sequences(tail, 1) == [4]


@pytest.mark.parametrize("has_filters", [True, False])
async def test_last_message_of_each_subject_then_new_ones(
    js: JetStream, stream_name: str, *, has_filters: bool
) -> None:
    stream = await fill(js, stream_name, 30)
    await publish(js, f"{stream_name}.0", b"31")
    filters = [f"{stream_name}.*"] if has_filters else []

    async with stream.ordered(filters=filters, deliver_policy="last_per_subject") as tail:
        initial = [message.sequence async for message in tail.initial()]
        await publish(js, f"{stream_name}.1", b"32", b"33")
        assert await take_sequences(tail, 2) == [32, 33]

    assert initial == [29, 30, 31]


async def test_headers_without_payloads(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name)
    await js.publish(stream_name, b"12345", headers={"A": "b"})

    async with stream.ordered(headers_only=True) as tail:
        (message,) = await take(tail, 1)

    assert message.data == b""
    assert message.headers["A"] == "b"
    assert message.headers["Nats-Msg-Size"] == "5"


# Catching up.


@pytest.mark.sampled_variants
@pytest.mark.parametrize("count", [0, 1, COUNT])
@pytest.mark.parametrize("deliver_policy", ["all", "last_per_subject"])
async def test_initial_messages_end_when_there_are_no_more(
    js: JetStream, stream_name: str, count: int, deliver_policy: str
) -> None:
    stream = await fill(js, stream_name, count)

    async with stream.ordered(deliver_policy=deliver_policy) as tail:  # pyright: ignore[reportArgumentType]
        initial = [message.sequence async for message in tail.initial()]
        assert tail.is_caught_up
        await publish(js, f"{stream_name}.0", b"new")
        assert await take_sequences(tail, 1) == [count + 1]

    is_last = deliver_policy == "last_per_subject"
    assert initial == list(range(max(count - 2, 1) if is_last else 1, count + 1))


async def test_initial_messages_end_where_new_ones_begin(js: JetStream, stream_name: str) -> None:
    """The new ones arrive together with the old ones."""
    stream = await fill(js, stream_name, 10)

    async with stream.ordered() as tail:
        await fill(js, stream_name, 10, start=10)
        initial = [message.sequence async for message in tail.initial()]
        later = await take_sequences(tail, 10)

    assert initial == list(range(1, 11))
    assert later == list(range(11, 21))


@pytest.mark.proves("1c", "ordered: single filter")
async def test_initial_messages_that_a_filter_hides_end_at_once(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 10)

    async with stream.ordered(filters=[f"{stream_name}.none"]) as tail:
        assert [message async for message in tail.initial()] == []
        await publish(js, f"{stream_name}.none", b"x")
        assert await take_sequences(tail, 1) == [11]


@pytest.mark.proves("1c", "ordered: single filter")
async def test_tail_is_caught_up_with_the_last_old_message(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)

    async with stream.ordered(filters=[f"{stream_name}.0"]) as tail:
        facts = [tail.is_caught_up async for _ in tail.initial()]

    assert facts == [False, False, False, True]


@pytest.mark.sampled_variants
async def test_initial_messages_that_are_purged_meanwhile_end(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 64 MiB of them most are still on the server; a heartbeat tells that none come."""
    monkeypatch.setattr(session, "HEARTBEAT_S", 0.25)
    stream = await fill(js, stream_name, 640, size=100 << 10)

    async with stream.ordered() as tail:
        before = await take_sequences(tail, 1)
        await purge(js, stream_name)
        after = [message.sequence async for message in tail.initial()]
        await publish(js, f"{stream_name}.0", b"new")
        assert await take_sequences(tail, 1) == [641]

    assert before + after == list(range(1, len(after) + 2))
    assert tail.report.deleted == 640 - len(after) - 1
    assert tail.report.resumes == 0


# Batches.


async def test_batches_hand_over_everything_once(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, COUNT)
    found: list[int] = []

    async with stream.ordered() as tail:
        async for batch in tail.batches(until_caught_up=True):
            assert batch
            found += [message.sequence for message in batch]

    assert found == list(range(1, COUNT + 1))


async def test_ways_of_reading_follow_each_other(js: JetStream, stream_name: str) -> None:
    """A loop that is left keeps what it did not take for the next one."""
    stream = await fill(js, stream_name, COUNT)
    found: list[int] = []

    async with stream.ordered() as tail:
        async for message in tail:
            found.append(message.sequence)
            if message.sequence == 10:
                break
        assert tail.next_seq == 11
        async with aclosing(tail.initial()) as initial:
            async for message in initial:
                found.append(message.sequence)
                if message.sequence == 20:
                    break
        async with aclosing(tail.batches()) as batches:
            async for batch in batches:
                found += [message.sequence for message in batch]
                if found[-1] == COUNT:
                    break

    assert found == list(range(1, COUNT + 1))


# Gaps.


async def test_deleted_messages_are_counted_and_told(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)
    for sequence in (3, 4, 8):
        await delete_message(js, stream_name, sequence)

    async with stream.ordered() as tail:
        found = [message.sequence async for message in tail.initial()]
        async with aclosing(tail.events()) as events:
            first = await anext(events)

    assert found == [1, 2, 5, 6, 7, 9, 10]
    assert tail.report.gaps == [Gap(3, 4, "deleted"), Gap(8, 8, "deleted")]
    assert isinstance(first, GapFound)
    assert first.gap == Gap(3, 4, "deleted")


async def test_evicted_start_is_counted(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 100, max_msgs=10)

    async with stream.ordered(first_seq=1) as tail:
        found = [message.sequence async for message in tail.initial()]

    assert found == list(range(91, 101))
    assert tail.report.gaps == [Gap(1, 90, "deleted")]


@pytest.mark.finding(1)
async def test_ack_subjects_of_version_2_are_read() -> None:
    config = "feature_flags { js_ack_fc_v2: true }"
    with NatsServer(config=config) as server:
        async with connect(server.url) as js:
            stream = await fill(js, "S", COUNT)
            async with stream.ordered() as tail:
                found = await take_sequences(tail, COUNT)
                await publish(js, "S.0", b"new")
                found += await take_sequences(tail, 1)

    assert found == list(range(1, COUNT + 2))


async def test_lost_messages_end_the_read_before_they_would_be_passed(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader is made to forget that it deleted two messages: they count as lost."""
    learn = MissingSequences.learn

    def forget(
        holes: MissingSequences,
        *,
        first_held: int = 0,
        deleted: Collection[int] | None = None,
        lost: Collection[int] = (),
    ) -> None:
        learn(holes, first_held=first_held, deleted=None if deleted is None else (), lost=lost)

    monkeypatch.setattr(MissingSequences, "learn", forget)
    stream = await fill(js, stream_name, 10)
    await delete_message(js, stream_name, 4)
    await delete_message(js, stream_name, 5)

    async with stream.ordered() as tail:
        assert await take_sequences(tail, 3) == [1, 2, 3]
        with pytest.raises(MessagesLostError) as lost:
            await anext(tail)
        with pytest.raises(MessagesLostError):
            await anext(tail)
    async with stream.ordered(on_loss="report") as tail:
        found = [message.sequence async for message in tail.initial()]

    assert (lost.value.first_seq, lost.value.last_seq) == (4, 5)
    assert found == [1, 2, 3, 6, 7, 8, 9, 10]
    assert tail.report.lost == 2


# Without async.


async def test_tail_reads_without_async(server: NatsServer, stream_name: str) -> None:
    def follow() -> list[int]:
        with natsstream.blocking.connect(server.url) as js:
            stream = js.streams.ensure(stream_name)
            for _ in range(5):
                js.publish(stream_name, b"x")
            with stream.ordered() as tail:
                found = [message.sequence for message in tail.initial()]
                js.publish(stream_name, b"x")
                for message in tail:
                    found.append(message.sequence)
                    if message.sequence == 6:
                        break
        return found

    assert await asyncio.to_thread(follow) == [1, 2, 3, 4, 5, 6]
