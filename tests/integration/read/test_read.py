"""Integration tests of reading: what a bounded read hands over, against a real server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from natsstream import Gap, ServerError, connect
from natsstream.errors import (
    ConfigError,
    InvalidConfigError,
    SequenceRangeError,
    StreamNotFoundError,
    UsageError,
)
from tests.support.eventually import eventually, eventually_async
from tests.support.frames import NASTY
from tests.support.streams import connection_of, consumer_count, delete_message, fill, payload
from tests.support.streams import purge as purge_stream

if TYPE_CHECKING:
    from natsstream import JetStream, Stream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

MIB = 1 << 20


async def store(js: JetStream, name: str, *payloads: bytes) -> Stream:
    """Return a stream with these payloads."""
    stream = await js.streams.create(name, subjects=[name])
    for data in payloads:
        await stream.publish(name, data)
    return stream


async def sequences(stream: Stream, **which: object) -> list[int]:
    """Return the sequences of a read."""
    return [message.sequence async for message in stream.read(**which)]  # pyright: ignore[reportArgumentType]


async def test_read_hands_over_everything_once_and_in_order(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 10_000)

    found = [message async for message in stream.read()]

    assert [message.sequence for message in found] == list(range(1, 10_001))
    assert [message.data for message in found] == [payload(number) for number in range(10_000)]
    assert found[4].subject == f"{stream_name}.1"


@pytest.mark.parametrize(
    ("first", "last"), [(1, 1), (4, 7), (1, 10), (10, 10), (None, 3), (8, None), (5, 4)]
)
async def test_bounds_are_inclusive_on_both_sides(
    js: JetStream, stream_name: str, first: int | None, last: int | None
) -> None:
    stream = await fill(js, stream_name, 10)

    found = await sequences(stream, first_seq=first, last_seq=last)

    assert found == list(range(first or 1, (last or 10) + 1))


async def test_one_filter_reads_only_its_subject(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)

    assert await sequences(stream, filters=[f"{stream_name}.1"]) == [2, 5, 8]


async def test_several_filters_read_their_union_in_order(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)

    found = await sequences(stream, filters=[f"{stream_name}.0", f"{stream_name}.2"], last_seq=7)

    assert found == [1, 3, 4, 6, 7]


async def test_filter_that_matches_nothing_reads_nothing(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)

    assert await sequences(stream, filters=[f"{stream_name}.none"]) == []


async def test_start_time_is_included_and_end_time_is_not(js: JetStream, stream_name: str) -> None:
    stream = await store(js, stream_name, b"a", b"b", b"c", b"d", b"e")
    times = [message.time_ns async for message in stream.read()]

    assert await sequences(stream, start_time=times[1], end_time=times[3]) == [2, 3]
    assert await sequences(stream, start_time=times[4] + 1) == []
    assert await sequences(stream, end_time=times[0]) == []
    assert await sequences(stream, start_time=times[1], end_time=times[1]) == []
    with pytest.raises(ConfigError, match=r"^start_time .* is after end_time ") as refused:
        stream.read(start_time=times[3], end_time=times[1])
    assert refused.value.hint.startswith("swap them")


@pytest.mark.parametrize("year", [2263, 9999])
@pytest.mark.parametrize("name", ["start_time", "end_time"])
async def test_moments_behind_what_servers_hold_are_behind_all_messages(
    js: JetStream, stream_name: str, year: int, name: str
) -> None:
    """A server of 64 bits would take them for moments of the past."""
    stream = await js.streams.ensure(stream_name)
    for _ in range(3):
        await stream.publish(stream_name, b"x")
    late, early = datetime(year, 12, 31, tzinfo=UTC), datetime(1600, 1, 1, tzinfo=UTC)

    if name == "end_time":
        assert await sequences(stream, end_time=late) == [1, 2, 3]
        assert await sequences(stream, newest=2, end_time=late) == [2, 3]
        assert await sequences(stream, end_time=early) == []
    else:
        assert await sequences(stream, start_time=late) == []
        assert await sequences(stream, start_time=early) == [1, 2, 3]
        consumer = await stream.consumers.ensure("late", start_time=late)
        assert consumer.cached.num_pending == 0
        again = await stream.consumers.ensure("late", start_time=late)
        assert again.change.action == "unchanged"


async def test_headers_alone_are_read_without_payloads(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name])
    for number in range(3):
        await stream.publish(stream_name, b"x" * number, headers={"a": f"{number}"})

    found = [message async for message in stream.read(headers_only=True, last_seq=2)]

    assert [(each.sequence, each.data, each.stored_bytes) for each in found] == [
        (1, b"", 0),
        (2, b"", 1),
    ]
    assert [each.headers["a"] for each in found] == ["0", "1"]


async def test_deleted_messages_are_told_as_gaps(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)
    for sequence in (3, 6, 7, 10):
        await delete_message(js, stream_name, sequence)
    messages = stream.read(first_seq=1, last_seq=10)

    found = [message.sequence async for message in messages]

    assert found == [1, 2, 4, 5, 8, 9]
    assert messages.report.gaps == [
        Gap(3, 3, "deleted"),
        Gap(6, 7, "deleted"),
        Gap(10, 10, "deleted"),
    ]
    assert (messages.report.messages, messages.report.deleted, messages.report.lost) == (6, 4, 0)


async def test_batches_tell_the_same_gaps(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)
    for sequence in (3, 6, 7):
        await delete_message(js, stream_name, sequence)
    messages = stream.read()

    await messages.to_arrow(["sequence"])

    assert messages.report.gaps == [Gap(3, 3, "deleted"), Gap(6, 7, "deleted")]


async def test_purged_beginning_is_told_as_deleted(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)
    await purge_stream(js, stream_name, seq=6)
    messages = stream.read(first_seq=1)

    found = [message.sequence async for message in messages]

    assert found == [6, 7, 8, 9, 10]
    assert messages.report.gaps == [Gap(1, 5, "deleted")]


async def test_empty_stream_reads_nothing(js: JetStream, stream_name: str) -> None:
    stream = await store(js, stream_name)

    assert await sequences(stream) == []
    assert (await stream.read().to_arrow()).num_rows == 0


async def test_purged_stream_reads_nothing(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)
    await purge_stream(js, stream_name)

    assert await sequences(stream) == []


async def test_read_from_behind_the_last_message_reads_nothing(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 10)

    assert await sequences(stream, first_seq=11) == []


@pytest.mark.parametrize(
    ("first", "last", "told"),
    [
        (0, None, "first_seq is 0: sequences begin at 1"),
        (12, None, "first_seq 12 is behind its end"),
        (1, 11, "last_seq 11 is behind its end"),
        (7, 5, "first_seq 7 is after last_seq 5"),
    ],
)
async def test_range_that_the_stream_does_not_hold_is_refused(
    js: JetStream, stream_name: str, first: int, last: int | None, told: str
) -> None:
    stream = await fill(js, stream_name, 10)

    with pytest.raises(SequenceRangeError, match=f"which holds 1 to 10: {told}") as caught:
        await sequences(stream, first_seq=first, last_seq=last)

    assert (caught.value.first_seq, caught.value.last_seq) == (1, 10)


async def test_read_of_a_deleted_stream_fails(js: JetStream, stream_name: str) -> None:
    stream = await store(js, stream_name, b"a")
    await js.streams.delete(stream_name)

    with pytest.raises(StreamNotFoundError):
        await sequences(stream)


async def test_work_queue_refuses_a_read_with_a_typed_error(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 3, retention="workqueue")

    with pytest.raises(ServerError) as caught:
        await sequences(stream)

    assert caught.value.err_code == 10084
    await stream.purge()
    with pytest.raises(InvalidConfigError, match="a work queue delivers each message to one"):
        await sequences(stream)


async def test_an_async_range_is_no_arrow_stream_and_says_so(
    js: JetStream, stream_name: str
) -> None:
    stream = await store(js, stream_name)
    with pytest.raises(UsageError, match="async range") as caught:
        pa.table(stream.read())
    assert "to_arrow" in str(caught.value.hint)


@pytest.mark.finding(23)
async def test_header_values_come_back_in_order(js: JetStream, stream_name: str) -> None:
    stream = await store(js, stream_name)
    await stream.publish(stream_name, b"x", headers={"A": ["1", "two", ""], "B": "3"})

    [message] = [each async for each in stream.read()]
    table = await stream.read().to_arrow(["headers"])

    assert message.headers.all("A") == ("1", "two", "")
    assert message.headers["B"] == "3"
    pairs = [(pair["key"], pair["value"]) for pair in table.to_pylist()[0]["headers"]]
    assert [pair for pair in pairs if not pair[0].startswith("Nats-")] == [
        ("A", "1"),
        ("A", "two"),
        ("A", ""),
        ("B", "3"),
    ]


async def test_payloads_with_protocol_text_come_back_whole(js: JetStream, stream_name: str) -> None:
    stream = await store(js, stream_name, *NASTY)

    found = [message.data async for message in stream.read()]
    table = await stream.read().to_arrow(["data"])

    assert found == list(NASTY)
    assert [row["data"] for row in table.to_pylist()] == list(NASTY)


@pytest.mark.sampled_variants
async def test_sizes_from_nothing_to_8_mib_mix_in_one_stream(
    js: JetStream, stream_name: str
) -> None:
    sizes = [0, 1, 8 * MIB, 2, 65_536, 3 * MIB, *range(1, 3_000, 7), 8 * MIB, 1]
    stream = await js.streams.create(stream_name, subjects=[stream_name])
    async with js.publisher() as publisher:
        for number, size in enumerate(sizes):
            await publisher.send(stream_name, bytes([number % 251]) * size)

    by_message = [message.data async for message in stream.read()]
    by_column = (await stream.read().to_arrow(["data"])).column("data").to_pylist()

    assert [len(data) for data in by_message] == sizes
    assert by_message == [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    assert by_column == by_message


@pytest.mark.sampled_variants
async def test_messages_batches_and_table_say_the_same(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 20_000, size=100)
    names = ["subject", "sequence", "data"]
    messages = stream.read(first_seq=17, last_seq=19_000)

    by_message = [(each.subject, each.sequence, each.data) async for each in messages]
    by_batch = [tuple(row.values()) async for b in messages.batches(names) for row in b.to_pylist()]
    by_table = [tuple(row.values()) for row in (await messages.to_arrow(names)).to_pylist()]

    assert by_batch == by_message
    assert by_table == by_message


async def test_data_frame_has_a_row_for_each_message(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 100)

    frame = await stream.read(first_seq=11).to_pandas(["sequence", "data"])

    assert list(frame["sequence"]) == list(range(11, 101))
    assert frame["data"][0] == payload(10)


async def test_leaving_early_leaves_nothing_behind(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 5_000)
    tasks = asyncio.all_tasks()

    async for message in stream.read():
        if message.sequence == 10:
            break
    async with aclosing(stream.read().batches(["sequence"])) as batches:
        async for _ in batches:
            break

    async def is_clean() -> bool:
        return await consumer_count(stream) == 0 and asyncio.all_tasks() <= tasks

    await eventually_async(is_clean)


async def test_finished_read_leaves_no_consumer(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)

    await sequences(stream)

    async def is_clean() -> bool:
        return await consumer_count(stream) == 0

    await eventually_async(is_clean)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("small", [0, 30_000], ids=["even_sizes", "large_after_small"])
async def test_slow_reader_is_not_cut_off(
    nats_server: NatsServer, stream_name: str, small: int
) -> None:
    """The reader stops reading its socket until the server can send no more, then goes on.

    Not in a container: Docker's proxy takes what the reader does not, and the server never stops.
    """
    looks: list[int] = []

    def is_stuffed() -> bool:
        looks.append(connection_of(nats_server, stream_name)["pending_bytes"])
        return len(looks) > 2 and looks[-1] > 0 and looks[-3:] == 3 * looks[-1:]

    async with connect(nats_server.url, name=stream_name) as js:
        await fill(js, stream_name, small)
        stream = await fill(js, stream_name, 90, size=MIB, start=small)
        messages = stream.read()
        count = large = 0
        async for message in messages:
            count += 1
            large += len(message.data) == MIB
            if large == 1 and len(message.data) == MIB:
                # Nothing is awaited here: the event loop stands still.
                eventually(is_stuffed)

        assert count == small + 90
        assert messages.report.resumes == 0


@pytest.mark.sampled_variants
async def test_two_reads_of_one_connection_do_not_mix(js: JetStream, stream_name: str) -> None:
    first = await fill(js, f"{stream_name}_a", 20_000)
    second = await fill(js, f"{stream_name}_b", 15_000)

    found = await asyncio.gather(sequences(first), sequences(second, first_seq=100))

    assert found == [list(range(1, 20_001)), list(range(100, 15_001))]
