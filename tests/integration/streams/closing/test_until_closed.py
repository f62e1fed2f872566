"""Reads that end when a producer closes the stream: exactly there, whatever comes behind."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import EndFound, connect
from natsstream.errors import (
    ConfigError,
    SequenceRangeError,
    StreamNotFoundError,
    StreamRecreatedError,
)
from natsstream.read import follower
from natsstream.testing import FaultProxy
from tests.support.eventually import eventually_async
from tests.support.streams import consumer_count

if TYPE_CHECKING:
    from natsstream import IdempotentProducer, JetStream, Stream, StreamRange
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

WAY = pytest.mark.parametrize("way", ["messages", "runs", "arrow", "ordered"])


@pytest.fixture(params=[("js", 1), ("cluster_js", 3)], ids=["R1", "R3"])
def place(request: pytest.FixtureRequest) -> tuple[JetStream, int]:
    """A connection, and how many replicas the stream has."""
    fixture, replicas = request.param
    return request.getfixturevalue(fixture), replicas


async def open_stream(js: JetStream, name: str, replicas: int = 1) -> Stream:
    """Return a stream that a producer has prepared."""
    await js.streams.create(name, subjects=[f"{name}.>"], replicas=replicas)
    await (await opened(js, name, "first")).detach()
    return await js.streams.get(name)


async def opened(js: JetStream, name: str, producer_id: str = "p") -> IdempotentProducer:
    """Return a producer into the stream."""
    return await js.producer(name, producer_id, subject=f"{name}.d", update_stream=True)


async def read(stream: Stream, way: str, **given: Any) -> list[bytes]:
    """Return the payloads of a read until the stream is closed."""
    if way == "ordered":
        async with stream.ordered(until_closed=True, **given) as tail:
            return [message.data async for message in tail]
    reading = stream.read(until_closed=True, **given)
    if way == "runs":
        return [message.data async for run in reading.runs() for message in run]
    if way == "arrow":
        return (await reading.to_arrow(["data"])).column("data").to_pylist()
    return await payloads(reading)


async def payloads(reading: StreamRange) -> list[bytes]:
    """Return the payloads of a read."""
    return [message.data async for message in reading]


def numbers(count: int) -> list[bytes]:
    """Return payloads."""
    return [b"%d" % number for number in range(count)]


async def store(js: JetStream, name: str, count: int, *, final: bytes | None = None) -> None:
    """Store messages with a producer, close the stream, and store two more behind its end."""
    async with await opened(js, name) as producer:
        for payload in numbers(count):
            producer.append(payload)
        await producer.flush()
        await (producer.close() if final is None else producer.close(final))
    for _ in range(2):
        await js.publish(f"{name}.d", b"behind the end")


@pytest.mark.sampled_variants
@WAY
async def test_closed_stream_is_read_to_its_end(
    place: tuple[JetStream, int], stream_name: str, way: str
) -> None:
    js, replicas = place
    stream = await open_stream(js, stream_name, replicas)
    await store(js, stream_name, 5, final=b"final")

    assert await read(stream, way) == [*numbers(5), b"final"]
    assert await read(stream, way, filters=[f"{stream_name}.d"]) == [*numbers(5), b"final"]
    assert await read(stream, way, filters=[f"{stream_name}.other"]) == []
    assert await read(stream, way, newest=2) == [b"4", b"final"]


@pytest.mark.sampled_variants
@WAY
async def test_open_stream_is_followed_to_its_end(
    place: tuple[JetStream, int], stream_name: str, way: str
) -> None:
    js, replicas = place
    stream = await open_stream(js, stream_name, replicas)
    await stream.publish(f"{stream_name}.d", b"before")
    filters = [f"{stream_name}.d"]
    async with asyncio.TaskGroup() as tasks:
        one = tasks.create_task(read(stream, way))
        two = tasks.create_task(read(stream, way, filters=filters))
        # A round trip or two later both wait for more.
        await eventually_async(lambda: has_consumers(js, stream_name, 2))
        await store(js, stream_name, 300, final=b"final")

    assert one.result() == two.result() == [b"before", *numbers(300), b"final"]


async def has_consumers(js: JetStream, name: str, count: int) -> bool:
    """Return True if a stream has so many consumers."""
    return await consumer_count(await js.streams.get(name)) == count


@pytest.mark.smoke
async def test_end_itself_is_read_with_control(js: JetStream, stream_name: str) -> None:
    stream = await open_stream(js, stream_name)
    reading = asyncio.create_task(read(stream, "messages", control=True))
    await eventually_async(lambda: has_consumers(js, stream_name, 1))
    await store(js, stream_name, 2)

    for found in (await reading, await read(stream, "messages", control=True)):
        assert found[-1].startswith(b'{"v":1,"producer":"p"')
        assert b"behind the end" not in found


@WAY
async def test_reader_at_the_tail_of_a_closed_stream_ends_at_once(
    js: JetStream, stream_name: str, way: str
) -> None:
    stream = await open_stream(js, stream_name)
    await store(js, stream_name, 2)
    last = (await stream.info()).state.last_seq

    for first_seq in range(last - 3, last + 2):
        assert await read(stream, way, first_seq=first_seq) == []


async def test_sequence_far_behind_the_end_is_refused(js: JetStream, stream_name: str) -> None:
    stream = await open_stream(js, stream_name)
    await store(js, stream_name, 2)

    with pytest.raises(SequenceRangeError):
        await read(stream, "messages", first_seq=1_000)


async def test_ordered_consumer_of_new_messages_ends_at_once_on_a_closed_stream(
    js: JetStream, stream_name: str
) -> None:
    stream = await open_stream(js, stream_name)
    await store(js, stream_name, 3)

    assert await read(stream, "ordered", deliver_policy="new") == []
    assert await read(stream, "ordered", deliver_policy="last") == [b"2"]
    async with stream.ordered(until_closed=True, start_time=2**62) as tail:
        assert [message async for message in tail] == []
        assert tail.end_seq is not None


async def test_plain_ordered_consumer_tells_of_the_end_and_goes_on(
    js: JetStream, stream_name: str
) -> None:
    stream = await open_stream(js, stream_name)
    async with stream.ordered() as tail:
        await store(js, stream_name, 2)
        found = [(await anext(tail)).data for _ in range(4)]
        assert found == [*numbers(2), b"behind the end", b"behind the end"]
        end_seq = tail.end_seq
        event = await anext(aiter(tail.events()))

    assert isinstance(event, EndFound)
    assert event.sequence == end_seq
    assert end_seq is not None
    record = await stream.get(end_seq)
    assert record is not None
    assert record.subject.endswith(".eof")


async def test_stream_without_control_subjects_is_refused(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name])

    for way in ("messages", "arrow", "ordered"):
        with pytest.raises(ConfigError, match="no control subjects"):
            await read(stream, way)


@pytest.mark.parametrize(
    "other", [{"last_seq": 1}, {"end_time": 10**18}, {"eviction_is_loss": True}], ids=str
)
async def test_two_ends_are_refused(js: JetStream, stream_name: str, other: dict[str, Any]) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name])

    with pytest.raises(ConfigError, match="exclude each other"):
        stream.read(until_closed=True, **other)


async def test_sealed_stream_ends_where_it_is(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "_LOOK_EVERY_S", 0.1)
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    await stream.publish(f"{stream_name}.d", b"0")
    await stream.seal()
    for way in ("messages", "arrow", "ordered"):
        assert await read(stream, way) == [b"0"]

    other = await open_stream(js, f"{stream_name}-2")
    reading = asyncio.create_task(read(other, "messages"))
    await eventually_async(lambda: has_consumers(js, f"{stream_name}-2", 1))
    await other.publish(f"{stream_name}-2.d", b"1")
    await other.seal()
    assert await reading == [b"1"]


@pytest.mark.sampled_variants
@WAY
async def test_deleted_stream_raises(
    place: tuple[JetStream, int], stream_name: str, way: str
) -> None:
    js, replicas = place
    stream = await open_stream(js, stream_name, replicas)
    reading = asyncio.create_task(read(stream, way))
    await eventually_async(lambda: has_consumers(js, stream_name, 1))
    await stream.delete()

    with pytest.raises(StreamNotFoundError):
        await reading


async def test_stream_made_anew_raises(js: JetStream, stream_name: str) -> None:
    stream = await open_stream(js, stream_name)
    reading = asyncio.create_task(read(stream, "messages"))
    await eventually_async(lambda: has_consumers(js, stream_name, 1))
    await stream.delete()
    await open_stream(js, stream_name)

    with pytest.raises((StreamRecreatedError, StreamNotFoundError)):
        await reading


@pytest.mark.sampled_variants
@WAY
@pytest.mark.parametrize("seed", range(2))
async def test_reads_survive_cut_connections(
    nats_server: NatsServer, js: JetStream, stream_name: str, way: str, seed: int
) -> None:
    chosen = random.Random(seed)  # noqa: S311 - Reproducible, not secret.
    await open_stream(js, stream_name)
    with FaultProxy(nats_server.port) as proxy:
        async with connect(proxy.url, reconnect_timeout=60) as reader:
            stream = await reader.streams.get(stream_name)
            reading = asyncio.create_task(read(stream, way))
            async with await opened(js, stream_name) as producer:
                for number in range(400):
                    producer.append(b"%d" % number)
                    if chosen.random() < 0.02:
                        await producer.flush()
                        proxy.reset()
                        await asyncio.sleep(chosen.random() / 10)
                await producer.flush()
                proxy.reset()
                await producer.close(b"final")
            await js.publish(f"{stream_name}.d", b"behind the end")

            assert await reading == [*numbers(400), b"final"]


async def test_report_counts_both_parts(js: JetStream, stream_name: str) -> None:
    stream = await open_stream(js, stream_name)
    await stream.publish(f"{stream_name}.d", b"before")
    reading = stream.read(until_closed=True)
    task = asyncio.create_task(payloads(reading))
    await eventually_async(lambda: has_consumers(js, stream_name, 1))
    await store(js, stream_name, 3, final=b"final")

    assert len(await task) == 5
    report = reading.report
    assert (report.messages, report.lost) == (5, 0)
    # The claims of two producers, and the record of the batch if it was one of its own.
    assert report.skipped >= 2


async def test_record_batches_come_as_messages_arrive(js: JetStream, stream_name: str) -> None:
    stream = await open_stream(js, stream_name)
    batches = stream.read(until_closed=True).batches()
    async with await opened(js, stream_name) as producer:
        producer.append(b"1", headers={"A": "b"})
        await producer.flush()
        first = await anext(batches)
        assert first.column("data").to_pylist() == [b"1"]
        producer.append(b"2", headers={"A": "c"})
        await producer.flush()
        second = await anext(batches)
        await producer.close()

    assert second.column("data").to_pylist() == [b"2"]
    assert second.schema == first.schema
    assert {"key": "A", "value": "c"} in second.column("headers").to_pylist()[0]
    assert [batch async for batch in batches] == []


async def test_leaving_the_loop_frees_the_consumer(js: JetStream, stream_name: str) -> None:
    stream = await open_stream(js, stream_name)
    await stream.publish(f"{stream_name}.d", b"1")

    async def loop() -> None:
        async for message in stream.read(until_closed=True):
            assert message.data == b"1"

    looping = asyncio.ensure_future(loop())
    await eventually_async(lambda: has_consumers(js, stream_name, 1))
    looping.cancel()
    await asyncio.wait([looping])  # It is kept, and so is the traceback of its error.

    await eventually_async(lambda: has_consumers(js, stream_name, 0))


async def test_a_cancelled_wait_goes_on_and_the_end_of_its_iterator_frees_the_consumer(
    js: JetStream, stream_name: str
) -> None:
    stream = await open_stream(js, stream_name)
    messages = aiter(stream.read(until_closed=True))
    await stream.publish(f"{stream_name}.d", b"1")
    assert (await anext(messages)).data == b"1"
    waiting = asyncio.ensure_future(anext(messages))
    await eventually_async(lambda: has_consumers(js, stream_name, 1))
    waiting.cancel()
    await asyncio.wait([waiting])

    await stream.publish(f"{stream_name}.d", b"2")
    assert (await anext(messages)).data == b"2"
    again = asyncio.ensure_future(anext(messages))
    await asyncio.sleep(0)
    await messages.aclose()
    with pytest.raises(StopAsyncIteration):
        await again
    await eventually_async(lambda: has_consumers(js, stream_name, 0))
