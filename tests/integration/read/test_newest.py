"""The newest messages of a stream: as many as asked for, as of the beginning of the read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import blocking
from natsstream.errors import ConfigError, SequenceRangeError, StreamNotFoundError
from natsstream.read.counts import MatchCounts
from tests.support.eventually import eventually_async
from tests.support.streams import consumer_count, delete_message, fill

if TYPE_CHECKING:
    from natsstream import JetStream, Stream
    from natsstream.read.counts import Count
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

ASK = MatchCounts.count_from


async def sequences(stream: Stream, **which: Any) -> list[int]:
    """Return the sequences of a read."""
    return [message.sequence async for message in stream.read(**which)]


async def fill_sparsely(js: JetStream, name: str, **fields: Any) -> list[int]:
    """Make a stream of 6,000 messages with holes; return the sequences of the subject `rare`.

    There are 40 of them at its beginning, none in its middle and 12 at its end.
    """
    stream = await js.streams.ensure(name, subjects=[f"{name}.>"], **fields)
    rare = {*range(100, 1_700, 40), *range(5_800, 6_000, 17)}
    async with js.publisher() as publisher:
        for number in range(1, 6_001):
            await publisher.send(f"{name}.{'rare' if number in rare else 'usual'}", b"%d" % number)
    for sequence in (140, 5_817, 5_990):
        await stream.delete_message(sequence)
        rare.discard(sequence)
    return sorted(rare)


@pytest.mark.smoke
@pytest.mark.parametrize("newest", [0, 1, 3, 10, 11, 10**30])
async def test_newest_are_the_last_in_ascending_order(
    js: JetStream, stream_name: str, newest: int
) -> None:
    stream = await fill(js, stream_name, 10)

    assert await sequences(stream, newest=newest) == list(range(1, 11))[max(0, 10 - newest) :]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("newest", [1, 5, 12, 13, 51, 52])
async def test_newest_of_a_filter_are_exactly_as_many(
    js: JetStream, stream_name: str, newest: int
) -> None:
    rare = await fill_sparsely(js, stream_name)
    stream = await js.streams.get(stream_name)

    found = await sequences(stream, newest=newest, filters=[f"{stream_name}.rare"])

    assert found == rare[-newest:]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("newest", [1, 2, 4_000])
async def test_deleted_messages_do_not_count(js: JetStream, stream_name: str, newest: int) -> None:
    stream = await fill(js, stream_name, 5_000)
    for sequence in (5_000, 4_998, 4_997, 4_000, 1_002):
        await delete_message(js, stream_name, sequence)
    held = sorted({*range(1, 5_001)} - {5_000, 4_998, 4_997, 4_000, 1_002})
    messages = stream.read(newest=newest)

    assert [message.sequence async for message in messages] == held[-newest:]
    assert messages.report.messages == newest
    assert messages.report.lost == 0


async def test_newest_count_back_from_a_last_sequence_and_an_end_time(
    js: JetStream, stream_name: str
) -> None:
    rare = await fill_sparsely(js, stream_name)
    stream = await js.streams.get(stream_name)
    filters = [f"{stream_name}.rare"]
    message = await stream.get(rare[30])
    assert message is not None

    assert await sequences(stream, newest=3, last_seq=rare[30], filters=filters) == rare[28:31]
    assert await sequences(stream, newest=3, end_time=message.time, filters=filters) == rare[27:30]
    assert await sequences(stream, newest=2, last_seq=700) == [699, 700]
    assert await sequences(stream, newest=2, last_seq=0) == []


async def test_messages_published_meanwhile_are_not_part(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 3_000)
    filters = [f"{stream_name}.1"]

    async def publish() -> None:
        while True:
            await js.publish(f"{stream_name}.1", b"later")

    publishing = asyncio.ensure_future(publish())
    rounds: list[tuple[int, list[int], int]] = []
    for _ in range(10):
        before = (await stream.info()).state.last_seq
        found = await sequences(stream, newest=5, filters=filters)
        rounds.append((before, found, (await stream.info()).state.last_seq))
    publishing.cancel()
    await asyncio.wait([publishing])

    everything = await sequences(stream, filters=filters)
    for before, found, after in rounds:
        assert found == [each for each in everything if each <= found[-1]][-5:]
        assert before - 1 <= found[-1] <= after
    assert rounds[-1][2] > 3_000
    assert await sequences(stream, newest=2, last_seq=3_000, filters=filters) == [2_996, 2_999]


async def test_messages_stored_between_two_counts_do_not_shorten_the_answer(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rare = await fill_sparsely(js, stream_name)
    stream = await js.streams.get(stream_name)

    async def count_from(self: MatchCounts, sequence: int) -> Count:
        for _ in range(20):
            await js.publish(f"{stream_name}.rare", b"later")
        return await ASK(self, sequence)

    monkeypatch.setattr(MatchCounts, "count_from", count_from)

    assert await sequences(stream, newest=9, filters=[f"{stream_name}.rare"]) == rare[-9:]


async def test_messages_deleted_after_they_were_counted_are_replaced_by_older_ones(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rare = await fill_sparsely(js, stream_name)
    stream = await js.streams.get(stream_name)
    is_done = False

    async def count_from(self: MatchCounts, sequence: int) -> Count:
        nonlocal is_done
        count = await ASK(self, sequence)
        if count.messages >= 9 and not is_done:
            is_done = True
            for doomed in rare[-8:-2]:
                await delete_message(js, stream_name, doomed)
        return count

    monkeypatch.setattr(MatchCounts, "count_from", count_from)

    found = await sequences(stream, newest=9, filters=[f"{stream_name}.rare"])

    assert is_done
    assert found == (rare[:-8] + rare[-2:])[-9:]


async def test_count_of_a_replica_that_lags_behind_is_put_right_by_the_read(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It still counts messages that are gone."""
    rare = await fill_sparsely(js, stream_name)
    stream = await js.streams.get(stream_name)

    async def count_from(self: MatchCounts, sequence: int) -> Count:
        count = await ASK(self, sequence)
        return count._replace(messages=count.messages + 7 * (sequence <= 6_000))

    monkeypatch.setattr(MatchCounts, "count_from", count_from)

    for newest in (1, 12, 40, 52):
        found = await sequences(stream, newest=newest, filters=[f"{stream_name}.rare"])
        assert found == rare[-newest:]


@pytest.mark.parametrize("other", [{"first_seq": 3}, {"start_time": 10**18}])
async def test_two_starts_are_refused(
    js: JetStream, stream_name: str, other: dict[str, Any]
) -> None:
    stream = await fill(js, stream_name, 3)

    with pytest.raises(ConfigError, match=r"newest and .* are two starts"):
        stream.read(newest=2, **other)
    with pytest.raises(ConfigError, match=r" and newest are two starts"):
        stream.ordered(newest=2, **other)


@pytest.mark.parametrize("newest", [-1, True, "3", 1.5])
async def test_a_count_that_is_none_is_refused(
    js: JetStream, stream_name: str, newest: Any
) -> None:
    stream = await fill(js, stream_name, 3)

    with pytest.raises(ConfigError, match="newest is"):
        stream.read(newest=newest)
    with pytest.raises(ConfigError, match="newest is"):
        stream.ordered(newest=newest)


async def test_stream_without_messages_has_no_newest(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 0)
    never = await sequences(stream, newest=3), await sequences(stream, newest=3, filters=["a"])
    await fill(js, stream_name, 9)
    await stream.purge()

    assert never == ([], [])
    assert await sequences(stream, newest=3) == []
    assert await sequences(stream, newest=3, filters=[f"{stream_name}.1"]) == []


async def test_errors_are_those_of_any_read(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 3)

    with pytest.raises(SequenceRangeError, match="holds 1 to 3: last_seq 9 is behind its end"):
        await sequences(stream, newest=2, last_seq=9)
    await stream.delete()
    with pytest.raises(StreamNotFoundError):
        await sequences(stream, newest=2)


async def test_columns_of_the_newest(js: JetStream, stream_name: str) -> None:
    rare = await fill_sparsely(js, stream_name)
    newest = (await js.streams.get(stream_name)).read(newest=5, filters=[f"{stream_name}.rare"])

    table = await newest.to_arrow(["sequence"])
    frame = await newest.to_pandas(["sequence"])
    batches = [batch.num_rows async for batch in newest.batches()]

    assert table.to_pydict() == {"sequence": rare[-5:]}
    assert list(frame["sequence"]) == rare[-5:]
    assert sum(batches) == 5


async def test_bounds_are_those_of_the_read(js: JetStream, stream_name: str) -> None:
    rare = await fill_sparsely(js, stream_name)
    stream = await js.streams.get(stream_name)

    assert await stream.read(newest=7, filters=[f"{stream_name}.rare"]).bounds() == (
        rare[-7],
        6_000,
    )
    assert await stream.read(first_seq=4, last_seq=8).bounds() == (4, 8)
    assert await stream.read(newest=0).bounds() == (6_001, 6_000)


async def test_search_leaves_no_consumer(js: JetStream, stream_name: str) -> None:
    await fill_sparsely(js, stream_name)
    stream = await js.streams.get(stream_name)

    await sequences(stream, newest=20, filters=[f"{stream_name}.rare"])

    async def has_none() -> bool:
        return await consumer_count(stream) == 0

    await eventually_async(has_none)


async def test_tail_begins_with_the_newest_and_goes_on(js: JetStream, stream_name: str) -> None:
    rare = await fill_sparsely(js, stream_name)
    stream = await js.streams.get(stream_name)
    filters = [f"{stream_name}.rare"]

    async with stream.ordered(newest=14, filters=filters) as tail:
        old = [message.sequence async for message in tail.initial()]
        ack = await js.publish(f"{stream_name}.rare", b"new")
        new = (await anext(tail)).sequence
    async with stream.ordered(newest=0) as tail:
        later = await js.publish(f"{stream_name}.usual", b"new")
        first = (await anext(tail)).sequence

    assert old == rare[-14:]
    assert (new, first) == (ack.sequence, later.sequence)


async def test_replicated_stream_has_the_newest_that_were_acknowledged(
    cluster_js: JetStream, stream_name: str
) -> None:
    rare = await fill_sparsely(cluster_js, stream_name, replicas=3)
    stream = await cluster_js.streams.get(stream_name)
    filters = [f"{stream_name}.rare"]

    for newest in (1, 12, 13, 51):
        assert await sequences(stream, newest=newest, filters=filters) == rare[-newest:]
    for number in range(20):
        ack = await cluster_js.publish(f"{stream_name}.rare", b"%d" % number)
        rare.append(ack.sequence)
        assert await sequences(stream, newest=3, filters=filters) == rare[-3:]
    assert await sequences(stream, newest=2) == rare[-2:]
    await stream.delete()


async def test_newest_without_async(server: NatsServer, js: JetStream, stream_name: str) -> None:
    await fill(js, stream_name, 30)

    def read() -> tuple[list[int], int]:
        with blocking.connect(server.url) as plain:
            stream = plain.streams.get(stream_name)
            found = stream.read(newest=2, filters=[f"{stream_name}.1"])
            with stream.ordered(newest=2) as tail:
                return [message.sequence for message in found], next(tail).sequence

    assert await asyncio.to_thread(read) == ([26, 29], 29)
