"""What only a JetStream has: its limits, its elections, and other producers' commits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from natsstream.errors import (
    ConfigError,
    ProducerFailedError,
    RequestTimeoutError,
    SequenceGapError,
    StreamClosedError,
    WrongStreamError,
)
from natsstream.producer.batches import Found, Stored, Write
from natsstream.producer.shared_writer import SharedWriter
from tests.support.clusters import step_down
from tests.support.eventually import eventually_async
from tests.support.producers import (
    MODES,
    CommitHold,
    Refusals,
    append_all,
    append_singly,
    numbers,
)

if TYPE_CHECKING:
    from natsstream.testing import NatsCluster
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio

# The server's own limit of batches that are open in one stream.
OPEN_BATCHES_MAX = 50
CHANGING_IN_FLIGHT = 10_164
TOO_MANY_BATCHES = 10_210
BATCH_INCOMPLETE = 10_176
ROUNDS_MAX = 100


async def test_close_racing_appends_of_another_producer(place: Place) -> None:
    """Nothing is stored behind the end, and nothing before it is missing."""
    busy = await place.open("busy", max_batch_messages=20)
    closer = await place.open("closer")
    append_all(busy, numbers(2_000))
    while busy.last_offset is None:
        await asyncio.sleep(0)
    closed = await closer.close(b"end")
    with pytest.raises(StreamClosedError, match=f"^stream {place.name} was ended after"):
        await busy.flush()
    await busy.detach(ignore_errors=True)
    messages = await place.messages()
    data = [message.data for message in messages]
    assert data == [*numbers(len(data) - 1), b"end"]
    assert messages[-1].sequence == closed.final_offset


@pytest.mark.sampled_variants
async def test_10164_storm_of_busy_producers(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight producers commit at once; on three replicas a commit finds others on their way."""
    refusals = Refusals(monkeypatch)
    producers = [
        await place.open(f"p{n}", subject=f"{place.name}.{n}", max_batch_messages=5)
        for n in range(8)
    ]
    count = 0
    while count < 500 or (place.replicas > 1 and not refusals.has(CHANGING_IN_FLIGHT)):
        assert count < ROUNDS_MAX * 100, "no commit has met another one"
        for producer in producers:
            append_all(producer, numbers(100, count))
        count += 100
        for producer in producers:
            await producer.flush()
    for n, producer in enumerate(producers):
        await producer.detach()
        assert await place.data(str(n)) == numbers(count)


async def test_batch_limit_10210(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody holds all batches that the stream may have open: the producer waits for one."""
    refusals = Refusals(monkeypatch)
    producer = await place.open()
    for number in range(OPEN_BATCHES_MAX):
        headers = {"Nats-Batch-Id": f"held-{number}", "Nats-Batch-Sequence": "1"}
        await place.js.core.request(f"{place.name}.f", b"held", headers=headers)
    waiting = asyncio.create_task(producer.append_wait(b"0"))

    async def is_refused() -> bool:
        return refusals.has(TOO_MANY_BATCHES)

    await eventually_async(is_refused)
    headers = {
        "Nats-Batch-Id": "held-7",
        "Nats-Batch-Sequence": "2",
        "Nats-Batch-Commit": "1",
    }
    await place.js.core.request(f"{place.name}.f", b"free", headers=headers)
    assert not (await waiting).duplicate
    await producer.detach()
    assert await place.data() == [b"0"]


async def test_leader_step_down_with_staged_batches(
    place: Place, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old leader has the messages, the new one gets the commit.

    One server loses no leader: there the batch is dropped by a commit that none has.
    """
    producer = await place.open(max_batch_messages=10)
    refusals = Refusals(monkeypatch)
    hold = CommitHold(monkeypatch)
    append_all(producer, numbers(30))
    async with asyncio.timeout(30):
        await hold.is_staged.wait()
    if place.replicas > 1:
        cluster = cast("NatsCluster", request.getfixturevalue("nats_cluster"))
        await step_down(place.js, cluster, place.name)
        # Until the new leader answers, the commit may get no answer instead of a refusal.
        async with place.js.publisher(retry_for=30) as publisher:
            await publisher.send_many([(f"{place.name}.f", b"foreign")])
    else:
        headers = {
            "Nats-Batch-Id": hold.batch_id,
            "Nats-Batch-Sequence": "11",
            "Nats-Batch-Commit": "never",
        }
        await place.js.core.publish(f"{place.name}.d", b"", headers=headers)
    hold.is_free.set()
    await producer.flush()
    await producer.detach()
    assert refusals.has(BATCH_INCOMPLETE)
    assert await place.data() == numbers(30)


async def test_max_msgs_evicts_the_state(place: Place) -> None:
    await place.make(max_msgs=5)
    producer = await place.open(delivery_timeout=5.0)
    for number in range(20):
        await place.js.publish(f"{place.name}.f", b"%d" % number)
    with pytest.raises(SequenceGapError) as caught:
        await producer.append_wait(b"never")
    assert (caught.value.expected_seq, caught.value.received_seq) == (0, 0)
    await producer.detach(ignore_errors=True)
    assert await place.data() == []


async def test_old_answers_of_a_leader_that_was_cut_off_end_no_producer(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single server is the leader: what it has lost is gone."""
    await place.make()
    producer = await place.open()
    await producer.append_wait(b"0")
    failed: list[Write] = []
    told: list[Found] = []
    store, read = SharedWriter.write, SharedWriter.read

    async def write_later(self: SharedWriter, write: Write) -> Stored:
        if not failed:
            failed.append(write)
            raise RequestTimeoutError("no answer", retryable=True)
        return await store(self, write)

    async def read_old(self: SharedWriter) -> Found:
        if len(told) < 2:
            told.append(Found())
            return told[-1]
        return await read(self)

    monkeypatch.setattr(SharedWriter, "write", write_later)
    monkeypatch.setattr(SharedWriter, "read", read_old)
    if place.replicas == 1:
        with pytest.raises(SequenceGapError):
            await producer.append_wait(b"1")
    else:
        await producer.append_wait(b"1")
    await producer.detach(ignore_errors=True)

    assert await place.data() == numbers(min(place.replicas, 2))
    assert len(told) == min(place.replicas, 2)


async def test_producer_that_limits_made_forgotten_is_told(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """The stream cannot tell it from a producer that has never written."""
    await place.make(max_msgs=5)
    async with await place.open() as producer:
        await producer.append_wait(b"0", checkpoint=1)
    assert not caplog.messages
    for number in range(5):
        await place.js.publish(f"{place.name}.f", b"%d" % number)

    async with await place.open() as producer:
        assert producer.recovered is None

    assert f"producer p finds no state in stream {place.name}" in caplog.text
    assert "stored twice" in caplog.text


async def test_stream_of_a_bucket_is_refused_and_left_as_it_is(place: Place) -> None:
    kv = await place.js.kv.create(place.name)
    before = (await kv.stream.info()).config

    with pytest.raises(ConfigError, match="it holds a bucket") as refused:
        await place.js.producer(
            f"KV_{place.name}", "p", subject=f"$KV.{place.name}.k", update_stream=True
        )

    assert "js.kv" in refused.value.hint
    assert (await kv.stream.info()).config == before


async def test_subject_of_another_stream_is_refused_before_the_stream_is_changed(
    place: Place,
) -> None:
    stream = await place.make()
    before = (await stream.info()).config

    with pytest.raises(WrongStreamError, match="does not capture elsewhere"):
        await place.open(subject="elsewhere")

    assert (await stream.info()).config == before


@pytest.mark.parametrize("mode", MODES)
async def test_sealed(place: Place, mode: str) -> None:
    producer = await place.open(mode=mode)
    await producer.append_wait(b"0")
    await (await place.js.streams.get(place.name)).seal()
    with pytest.raises(StreamClosedError, match=f"^stream {place.name} is sealed"):
        await producer.append_wait(b"never")
    await producer.detach(ignore_errors=True)
    with pytest.raises(StreamClosedError, match="sealed"):
        await place.open("q", mode=mode)
    assert await place.data() == [b"0"]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_checkpoint_atomic_with_data(place: Place, mode: str) -> None:
    """At each moment a new instance would begin exactly behind what is stored."""
    producer = await place.open(mode=mode, max_batch_messages=7)
    for number in range(400):
        producer.append(b"%d" % number, checkpoint=number + 1)
    looks = 0
    while producer.buffered_bytes and mode == "shared":
        record, sequence = await place.state()
        stored = await place.messages(last_seq=sequence)
        assert (record.checkpoint or 0) == record.count == len(stored)
        looks += 1
    await producer.flush()
    assert looks or mode == "exclusive"
    await place.js.streams.update(place.name, max_msg_size=1_000)
    producer.append(bytes(2_000), checkpoint="never")
    producer.append(b"never", checkpoint="never")
    with pytest.raises(ProducerFailedError):
        await producer.flush()
    await producer.detach(ignore_errors=True)
    async with await place.open(mode=mode) as heir:
        assert heir.recovered is not None
        assert (heir.recovered.checkpoint, heir.recovered.count) == (400, 400)
    assert await place.data() == numbers(400)


async def test_checkpoint_of_a_killed_instance_is_where_its_data_ends(place: Place) -> None:
    """Its commit is on its way when it dies: both are stored, or none."""
    for life in range(6):
        start = 0
        producer = await place.open(max_batch_messages=5)
        if producer.recovered is not None:
            start = cast("int", producer.recovered.checkpoint or 0)
        for number in range(start, start + 40):
            producer.append(b"%d" % number, checkpoint=number + 1)
        while producer.last_offset is None:
            await asyncio.sleep(0)
        for _ in range(life):
            await asyncio.sleep(0)
        with pytest.raises(ZeroDivisionError):
            async with producer:
                raise ZeroDivisionError
    async with await place.open() as last:
        assert last.recovered is not None
        count = last.recovered.count
        assert last.recovered.checkpoint == count > 0
    assert await place.data() == numbers(count)


async def test_next_batches_of_one_producer_are_not_lost_by_another_ones_commit(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole batch of another producer is stored between the messages of one and its commit."""
    producer = await place.open("slow")
    other = await place.open("other", subject=f"{place.name}.o")
    hold = CommitHold(monkeypatch)
    append_all(producer, numbers(10))
    async with asyncio.timeout(30):
        await hold.is_staged.wait()
    monkeypatch.undo()
    assert await append_singly(other, numbers(5)) == [False] * 5
    hold.is_free.set()
    await producer.flush()
    for each in (producer, other):
        await each.detach()
    assert await place.data() == numbers(10)
    assert await place.data("o") == numbers(5)


@pytest.mark.parametrize("mode", MODES)
async def test_none_keeps_the_last_checkpoint(place: Place, mode: str) -> None:
    async with await place.open(mode=mode) as producer:
        assert producer.recovered is None
    async with await place.open(mode=mode) as producer:  # The first has stored its epoch alone.
        assert producer.recovered is None or producer.recovered.checkpoint is None
        for number in range(1, 6):
            producer.append(b"x", checkpoint=number if number % 2 == 0 else None)
        producer.append_many([b"y"], checkpoint=None)
        await producer.append_wait(b"z", checkpoint=None)
        with pytest.raises(ConfigError, match="the checkpoint is None"):
            producer.checkpoint(None)
    async with await place.open(mode=mode) as producer:
        assert producer.recovered is not None
        assert (producer.recovered.checkpoint, producer.recovered.count) == (4, 7)
