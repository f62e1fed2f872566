"""Control records of producers: each way to read leaves them out, and nothing else."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import nats
import pytest

from natsstream import Gap
from natsstream.api.control import CONTROL_KEY, Control, control_of
from natsstream.errors import ConfigError

if TYPE_CHECKING:
    from natsstream import IdempotentProducer, JetStream, Message, Stream, StreamRange
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

ROUNDS = 4
STEPS = 25


@pytest.fixture(params=[("js", 1), ("cluster_js", 3)], ids=["R1", "R3"])
def place(request: pytest.FixtureRequest) -> tuple[JetStream, int]:
    """A connection, and how many replicas the stream has."""
    fixture, replicas = request.param
    return request.getfixturevalue(fixture), replicas


async def opened(
    js: JetStream, name: str, producer_id: str = "p", **given: Any
) -> IdempotentProducer:
    """Return a producer into a stream, which is made if there is none."""
    if await js.streams.find(f"{name}.0") is None:
        await js.streams.create(name, subjects=[f"{name}.>"])
    options: dict[str, Any] = {"subject": f"{name}.0", "update_stream": True, **given}
    return await js.producer(name, producer_id, **options)


async def control_of_stream(stream: Stream) -> Control:
    """Return the control subjects of a stream that has some."""
    control = control_of((await stream.info()).config)
    assert control is not None
    return control


async def sequences(found: StreamRange) -> list[int]:
    """Return the sequences of a read."""
    return [message.sequence async for message in found]


async def caught_up(stream: Stream, **given: Any) -> list[Message]:
    """Return what an ordered consumer hands over of what exists."""
    async with stream.ordered(**given) as tail:
        return [message async for message in tail.initial()]


async def two_producers(js: JetStream, name: str, replicas: int = 1) -> Stream:
    """Return a stream with data of two producers and of another publisher, and their records."""
    if await js.streams.find(f"{name}.0") is None:
        await js.streams.create(name, subjects=[f"{name}.>"], replicas=replicas)
    for producer_id in "ab":
        async with await opened(js, name, producer_id) as producer:
            for number in range(6):
                producer.append(b"%d" % number, subject=f"{name}.{number % 3}")
                if number % 2:
                    await producer.flush()
    await js.publish(f"{name}.0", b"plain")
    return await js.streams.get(name)


@pytest.mark.sampled_variants
async def test_each_way_to_read_leaves_control_records_out(
    place: tuple[JetStream, int], stream_name: str
) -> None:
    js, replicas = place
    stream = await two_producers(js, stream_name, replicas)
    control = await control_of_stream(stream)
    stored = [message async for message in stream.read(control=True)]
    data = [message.sequence for message in stored if not control.has(message.subject)]
    assert len(data) == 13
    assert len(stored) == 15

    reading = stream.read()
    assert await sequences(reading) == data
    assert (reading.report.messages, reading.report.skipped, reading.report.lost) == (13, 2, 0)
    deleted = (await stream.info()).state.num_deleted
    assert reading.report.deleted >= deleted
    table = await stream.read().to_arrow(["sequence", "data"])
    assert table.column("sequence").to_pylist() == data
    assert [run async for run in stream.read().runs()]
    for count in (1, 2, 5, 13, 100):
        assert await sequences(stream.read(newest=count)) == data[-count:]
    assert [message.sequence for message in await caught_up(stream)] == data
    everything = await caught_up(stream, control=True)
    assert [message.sequence for message in everything] == [each.sequence for each in stored]
    for policy in ("last", "last_per_subject"):
        last = await caught_up(stream, deliver_policy=policy)
        assert last[-1].sequence == data[-1]
        assert not any(control.has(message.subject) for message in last)
    async with stream.latest() as latest:
        newest = [message.subject async for message in latest.initial()]
        assert sorted(newest) == [f"{stream_name}.{number}" for number in range(3)]
        assert await latest.is_current()
    async with stream.latest(control=True) as latest:
        assert len([message async for message in latest.initial()]) == 5


async def test_direct_read_of_the_newest_leaves_control_records_out(
    js: JetStream, stream_name: str
) -> None:
    early = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"], allow_direct=True)
    stream = await two_producers(js, stream_name)

    for opened_when in (early, stream):
        assert len(await opened_when.direct.latest()) == 3
        assert len(await opened_when.direct.latest(control=True)) == 5
    control = await control_of_stream(stream)
    assert len(await stream.direct.latest([control.filter])) == 2


async def test_filter_that_names_control_subjects_reads_them(
    js: JetStream, stream_name: str
) -> None:
    stream = await two_producers(js, stream_name)
    control = await control_of_stream(stream)

    for named in (control.filter, control.area, control.state("*")):
        assert len(await sequences(stream.read(filters=[named]))) == 2, named
        assert len(await caught_up(stream, filters=[named])) == 2, named
    wide = [f"{stream_name}.>", f"{stream_name}.*.*.*.*"]
    assert len(await sequences(stream.read(filters=wide[:1]))) == 13
    assert await sequences(stream.read(filters=wide[1:])) == []
    assert await caught_up(stream, filters=wide[1:]) == []


async def test_range_of_control_records_alone_is_empty(js: JetStream, stream_name: str) -> None:
    producer = await opened(js, stream_name)
    await producer.detach()
    stream = await js.streams.get(stream_name)

    reading = stream.read()
    assert await sequences(reading) == []
    assert (reading.report.messages, reading.report.skipped) == (0, 1)
    assert (await stream.read().to_arrow()).num_rows == 0
    assert await sequences(stream.read(newest=3)) == []
    assert await caught_up(stream, newest=3) == []
    assert await caught_up(stream, deliver_policy="last") == []
    async with stream.latest() as latest:
        assert await latest.is_current()


async def test_loss_is_found_between_control_records(js: JetStream, stream_name: str) -> None:
    stream = await two_producers(js, stream_name)
    data = await sequences(stream.read())
    await stream.delete_message(data[4])

    reading = stream.read()
    assert await sequences(reading) == [*data[:4], *data[5:]]
    assert reading.report.skipped == 2
    assert reading.report.lost == 0
    assert any(gap.first_seq <= data[4] <= gap.last_seq for gap in reading.report.gaps)


async def test_stream_that_gets_its_first_producer_while_it_is_followed(
    place: tuple[JetStream, int], stream_name: str
) -> None:
    js, replicas = place
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"], replicas=replicas)
    await stream.publish(f"{stream_name}.0", b"before")
    async with stream.ordered() as tail, stream.ordered(control=True) as all_of_it:
        async with await opened(js, stream_name) as producer:
            producer.append(b"1")
        await stream.publish(f"{stream_name}.0", b"after")

        found = [(await anext(tail)).data for _ in range(3)]
        seen = [(await anext(all_of_it)).data for _ in range(5)]

    assert found == [b"before", b"1", b"after"]
    assert tail.report.messages == 3
    # The claim may be replaced before it is delivered.
    assert tail.report.skipped + tail.report.deleted == 2
    assert [data for data in seen if not data.startswith(b"{")] == found


async def test_metadata_that_name_no_prefix_are_refused(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], metadata={CONTROL_KEY: "a.*"}
    )
    await stream.publish(f"{stream_name}.0", b"1")

    with pytest.raises(ConfigError, match="control=True"):
        await sequences(stream.read())
    with pytest.raises(ConfigError, match="control=True"):
        await caught_up(stream)
    assert await sequences(stream.read(control=True)) == [1]
    assert len(await caught_up(stream, control=True)) == 1


async def test_foreign_client_reads_all_and_the_documented_filter_hides_records(
    js: JetStream, nats_server: NatsServer, stream_name: str
) -> None:
    subjects = [f"{stream_name}.*", f"{stream_name}.$ctl.>"]
    await js.streams.create(stream_name, subjects=subjects)
    stream = await two_producers(js, stream_name)
    filters = await stream.data_filters()
    assert filters == [f"{stream_name}.*"]

    library: Any = nats  # Its options have no types.
    client = await library.connect(nats_server.url)
    try:
        context = client.jetstream()
        everything = await context.pull_subscribe(f"{stream_name}.>", stream=stream_name)
        assert len(await everything.fetch(100, timeout=1)) == 15
        data = await context.pull_subscribe(filters[0], stream=stream_name)
        assert len(await data.fetch(100, timeout=1)) == 13
    finally:
        await client.close()

    consumer = await stream.consumers.ensure("all")
    assert len(await consumer.fetch(15, timeout=2)) == 15
    consumer = await stream.consumers.ensure("data", filters=filters)
    assert len(await consumer.fetch(100, timeout=1)) == 13


async def test_filters_for_data_are_refused_where_there_are_none(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    assert await stream.data_filters() == [f"{stream_name}.>"]

    await (await opened(js, stream_name)).detach()

    with pytest.raises(ConfigError, match="matches both") as caught:
        await stream.data_filters()
    assert f"{stream_name}.$ctl.>" in caught.value.hint


class History:
    """A stream with a random history of producers, publishers and deletions."""

    def __init__(self, js: JetStream, name: str, seed: int) -> None:
        self.js = js
        self.name = name
        self.random = random.Random(seed)  # noqa: S311 - Reproducible, not secret.

    async def play(self) -> Stream:
        """Return the stream after some steps."""
        chosen = self.random
        # Without rollups a record stays for each batch.
        self.stream = await self.js.streams.create(
            self.name, subjects=[f"{self.name}.>"], deny_purge=chosen.random() < 0.5
        )
        modes = ["shared"] if chosen.random() < 0.7 else ["exclusive"]
        producers: dict[str, IdempotentProducer] = {}
        for _ in range(STEPS):
            step = chosen.choice(["append", "append", "append", "publish", "claim", "delete"])
            mine = chosen.choice("abc" if modes == ["shared"] else "a")
            if step == "publish":
                for _ in range(chosen.randint(1, 4)):
                    await self.stream.publish(self.subject(), b"plain")
            elif step == "delete" and (held := await self.held()):
                await self.stream.delete_message(chosen.choice(held))
            elif step == "claim" and mine in producers:
                await producers.pop(mine).detach()
            else:
                if mine not in producers:
                    mode = chosen.choice(modes)
                    producers[mine] = await opened(self.js, self.name, mine, mode=mode)
                for _ in range(chosen.randint(1, 5)):
                    producers[mine].append(b"%d" % chosen.randint(0, 99), subject=self.subject())
                await producers[mine].flush()
        for producer in producers.values():
            await producer.detach()
        return self.stream

    async def held(self) -> list[int]:
        """Return the sequences of data."""
        return await sequences(self.stream.read())

    def subject(self) -> str:
        """Return a subject of data."""
        return f"{self.name}.{self.random.randint(0, 2)}"


@pytest.mark.sampled_variants
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_random_histories_read_as_all_without_the_records(
    js: JetStream, stream_name: str, seed: int
) -> None:
    history = History(js, stream_name, seed)
    stream = await history.play()
    control = control_of((await stream.info()).config)
    everything = [message async for message in stream.read(control=True)]
    last = everything[-1].sequence

    def data(first: int, end: int, filters: tuple[str, ...] = ()) -> list[int]:
        return [
            message.sequence
            for message in everything
            if first <= message.sequence <= end
            and not (control is not None and control.has(message.subject))
            and (not filters or message.subject in filters)
        ]

    for _ in range(12):
        first = history.random.randint(1, last)
        end = history.random.randint(first, last)
        filters = history.random.choice([(), (f"{stream_name}.0",)])
        count = history.random.randint(0, 12)
        expected = data(first, end, filters)
        reading = stream.read(first_seq=first, last_seq=end, filters=filters)
        assert await sequences(reading) == expected
        assert reading.report.messages == len(expected)
        held = [message for message in everything if first <= message.sequence <= end]
        if not filters:
            assert reading.report.skipped == len(held) - len(expected)
            assert reading.report.deleted == end - first + 1 - len(held)
        batches = stream.read(first_seq=first, last_seq=end, filters=filters)
        assert (await batches.to_arrow(["sequence"])).column("sequence").to_pylist() == expected
        newest = stream.read(newest=count, last_seq=end, filters=filters)
        every = data(1, end, filters)
        assert await sequences(newest) == every[max(len(every) - count, 0) :]
        followed = await caught_up(stream, first_seq=first, filters=filters)
        assert [message.sequence for message in followed] == data(first, last, filters)


async def test_gap_at_the_edge_of_a_run_of_records_is_told(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"], deny_purge=True)
    async with await opened(js, stream_name) as producer:
        for number in range(4):
            await producer.append_wait(b"%d" % number)
    stored = [message async for message in stream.read(control=True)]
    assert [message.data.startswith(b"{") for message in stored] == [True, *[False, True] * 4]
    await stream.delete_message(4)

    reading = stream.read(first_seq=3)
    assert await sequences(reading) == [6, 8]
    assert reading.report.gaps == [Gap(4, 4, "deleted")]
    assert reading.report.skipped == 4


async def test_claim_alone_is_nothing_new(js: JetStream, stream_name: str) -> None:
    stream = await two_producers(js, stream_name)
    async with stream.latest() as latest:
        async for _ in latest.initial():
            pass
        await (await opened(js, stream_name, "c")).detach()

        assert await latest.is_current()

        await stream.publish(f"{stream_name}.9", b"new")
        assert not await latest.is_current()
        async with asyncio.timeout(10):
            assert (await anext(latest)).data == b"new"


async def test_producer_gives_back_control_subjects_that_an_update_took_away(
    js: JetStream, stream_name: str
) -> None:
    for number in range(2):
        await js.streams.ensure(stream_name, subjects=[f"{stream_name}.*"])
        async with await opened(js, stream_name) as producer:
            producer.append(b"%d" % number)

    stream = await js.streams.get(stream_name)
    assert [message.data async for message in stream.read()] == [b"0", b"1"]
    await js.streams.ensure(stream_name, subjects=[f"{stream_name}.*"])
    with pytest.raises(ConfigError, match="subjects"):
        await opened(js, stream_name, update_stream=False)
    # Records that are stored are hidden all the same.
    assert len(await sequences(stream.read())) == 2
