"""Producers against real servers: exactly once, in order, fenced, and ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import (
    ConfigError,
    NatsStreamError,
    PayloadTooLargeError,
    ProducerFullError,
    SequenceGapError,
    StaleEpochError,
    StreamClosedError,
    StreamNotFoundError,
    WrongStreamError,
)
from natsstream.testing import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from natsstream import IdempotentProducer, JetStream, Stream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

MODES = ("shared", "exclusive")
STREAM = "p"


@pytest.fixture(params=[("js", 1), ("cluster_js", 3)], ids=["R1", "R3"])
def place(request: pytest.FixtureRequest) -> tuple[JetStream, int]:
    """A connection, and how many replicas the stream has."""
    fixture, replicas = request.param
    return request.getfixturevalue(fixture), replicas


async def make(js: JetStream, name: str, replicas: int = 1, **fields: Any) -> Stream:
    """Return a stream for producers."""
    return await js.streams.ensure(name, subjects=[f"{name}.>"], replicas=replicas, **fields)


async def opened(
    js: JetStream, name: str, producer_id: str = "p", **given: Any
) -> IdempotentProducer:
    """Return a producer into the stream."""
    options: dict[str, Any] = {"subject": f"{name}.d", "update_stream": True, **given}
    return await js.producer(name, producer_id, **options)


async def data_of(js: JetStream, name: str, subject: str = "d") -> list[bytes]:
    """Return the payloads of a stream's data."""
    stream = await js.streams.get(name)
    return [m.data async for m in stream.read(first_seq=1, filters=[f"{name}.{subject}"])]


def numbers(count: int, start: int = 0) -> list[bytes]:
    """Return payloads."""
    return [b"%d" % number for number in range(start, start + count)]


def append_all(producer: IdempotentProducer, payloads: Sequence[bytes]) -> None:
    """Append payloads."""
    for payload in payloads:
        producer.append(payload)


@pytest.mark.parametrize("mode", MODES)
async def test_all_is_stored_once_and_in_order(
    place: tuple[JetStream, int], stream_name: str, mode: str
) -> None:
    js, replicas = place
    await make(js, stream_name, replicas)
    async with await opened(js, stream_name, mode=mode) as producer:
        assert (producer.epoch, producer.recovered, producer.guarantee) == (0, None, "exactly-once")
        append_all(producer, numbers(3_000))
        await producer.flush()
        stored = await producer.append_wait(b"last")
        assert stored.offset == producer.last_offset
        assert not stored.duplicate
    assert await data_of(js, stream_name) == [*numbers(3_000), b"last"]


@pytest.mark.parametrize("mode", MODES)
async def test_next_instance_finds_checkpoint_and_count(
    place: tuple[JetStream, int], stream_name: str, mode: str
) -> None:
    js, replicas = place
    await make(js, stream_name, replicas)
    async with await opened(js, stream_name, mode=mode) as first:
        append_all(first, numbers(50))
        first.append(b"a", checkpoint={"line": 51})
        first.append(b"b")
    async with await opened(js, stream_name, mode=mode) as second:
        assert second.recovered is not None
        assert (second.recovered.checkpoint, second.recovered.count) == ({"line": 51}, 52)
        assert second.epoch == first.epoch + 1
        second.checkpoint({"line": 60})
    async with await opened(js, stream_name, mode=mode) as third:
        assert third.recovered is not None
        assert (third.recovered.checkpoint, third.recovered.count) == ({"line": 60}, 52)


@pytest.mark.parametrize("mode", MODES)
async def test_zombie_stores_nothing_more(
    place: tuple[JetStream, int], stream_name: str, mode: str
) -> None:
    js, replicas = place
    await make(js, stream_name, replicas)
    errors: list[NatsStreamError] = []
    zombie = await opened(js, stream_name, mode=mode, on_error=errors.append)
    await zombie.append_wait(b"z0")
    async with await opened(js, stream_name, mode=mode) as heir:
        append_all(heir, numbers(20))
        append_all(zombie, [b"z1", b"z2"])
        with pytest.raises(StaleEpochError) as caught:
            await zombie.flush()
        assert caught.value.current_epoch == heir.epoch
        with pytest.raises(StaleEpochError):
            zombie.append(b"z3")
        assert errors == [caught.value]
        append_all(heir, numbers(20, 20))
    await zombie.detach(ignore_errors=True)
    assert await data_of(js, stream_name) == [b"z0", *numbers(40)]


@pytest.mark.parametrize("mode", MODES)
async def test_five_batches_that_are_fenced_on_the_way_are_all_stored_by_auto_claim(
    place: tuple[JetStream, int], stream_name: str, mode: str
) -> None:
    """The reference client stores the first of them and reports the other four as stored too."""
    js, replicas = place
    await make(js, stream_name, replicas)
    options: dict[str, Any] = {
        "mode": mode,
        "auto_claim": True,
        "max_batch_messages": 10,
        "max_in_flight": 5,
    }
    producer = await opened(js, stream_name, **options)
    await producer.append_wait(b"first")
    other = await opened(js, stream_name, mode=mode)
    append_all(producer, numbers(50))
    await producer.flush()
    await producer.detach()
    assert producer.epoch == other.epoch + 1
    await other.detach(ignore_errors=True)
    assert await data_of(js, stream_name) == [b"first", *numbers(50)]


async def test_same_tuple_is_a_duplicate_and_higher_ones_are_stored(
    place: tuple[JetStream, int], stream_name: str
) -> None:
    js, replicas = place
    await make(js, stream_name, replicas)
    async with await opened(js, stream_name, epoch=0) as first:
        for payload in numbers(6):
            assert not (await first.append_wait(payload)).duplicate
    async with await opened(js, stream_name, epoch=0) as again:
        results = [await again.append_wait(b"other %d" % n) for n in range(7)]
    assert [each.duplicate for each in results] == [True] * 6 + [False]
    assert results[0].last_seq == 5
    assert await data_of(js, stream_name) == [*numbers(6), b"other 6"]


async def test_epochs_go_up_and_never_down(js: JetStream, stream_name: str) -> None:
    await make(js, stream_name)
    for epoch in (0, 10, 2_147_483_640):
        async with await opened(js, stream_name, epoch=epoch) as producer:
            await producer.append_wait(b"%d" % epoch)
    for epoch in (0, 5, 10):
        with pytest.raises(StaleEpochError) as caught:
            await opened(js, stream_name, epoch=epoch)
        assert caught.value.current_epoch == 2_147_483_640
    async with await opened(js, stream_name, epoch=5, auto_claim=True) as producer:
        await producer.append_wait(b"claimed")
        assert producer.epoch == 2_147_483_641
    assert await data_of(js, stream_name) == [b"0", b"10", b"2147483640", b"claimed"]


@pytest.mark.smoke
async def test_restart_begins_the_next_epoch(js: JetStream, stream_name: str) -> None:
    await make(js, stream_name)
    async with await opened(js, stream_name) as producer:
        await producer.append_wait(b"a")
        await producer.restart()
        assert (producer.epoch, producer.next_seq) == (1, 0)
        await producer.append_wait(b"b")
        other = await opened(js, stream_name)
        with pytest.raises(StaleEpochError):
            await producer.append_wait(b"c")
        await producer.restart()
        await producer.append_wait(b"d")
        await other.detach(ignore_errors=True)
    assert await data_of(js, stream_name) == [b"a", b"b", b"d"]


@pytest.mark.parametrize("mode", MODES)
async def test_messages_appended_during_a_restart_are_stored(
    js: JetStream, stream_name: str, mode: str
) -> None:
    await make(js, stream_name)
    async with await opened(js, stream_name, mode=mode, max_batch_messages=5) as producer:
        append_all(producer, numbers(10))
        await producer.flush()
        restart = asyncio.create_task(producer.restart())
        await asyncio.sleep(0)
        append_all(producer, numbers(10, 10))
        await restart
    assert await data_of(js, stream_name) == numbers(20)


# The end of a stream.


@pytest.mark.parametrize("mode", MODES)
async def test_close_ends_the_stream_once(
    place: tuple[JetStream, int], stream_name: str, mode: str
) -> None:
    js, replicas = place
    await make(js, stream_name, replicas)
    producer = await opened(js, stream_name, mode=mode)
    append_all(producer, numbers(5))
    closed = await producer.close(b"final")
    assert await producer.close(b"another") == closed
    assert closed.final_offset == producer.last_offset
    with pytest.raises(ConfigError):
        producer.append(b"late")
    with pytest.raises(StreamClosedError) as caught:
        await opened(js, stream_name, mode=mode)
    assert caught.value.final_offset == closed.final_offset
    assert await data_of(js, stream_name) == [*numbers(5), b"final"]


async def test_close_of_a_new_process_with_the_same_batches_is_the_same_close(
    js: JetStream, stream_name: str
) -> None:
    await make(js, stream_name)
    first = await opened(js, stream_name, epoch=4)
    await first.append_wait(b"a")
    closed = await first.close(b"kept")
    second = await opened(js, stream_name, epoch=4)
    assert (await second.append_wait(b"a")).duplicate
    assert await second.close(b"ignored") == closed
    third = await opened(js, stream_name, epoch=4)
    await third.append_wait(b"a")
    with pytest.raises(StreamClosedError):
        await third.append_wait(b"beyond")
    await third.detach(ignore_errors=True)
    assert await data_of(js, stream_name) == [b"a", b"kept"]


async def test_close_stops_another_producer_in_the_middle(
    place: tuple[JetStream, int], stream_name: str
) -> None:
    js, replicas = place
    stream = await make(js, stream_name, replicas)
    busy = await opened(js, stream_name, "busy", max_batch_messages=20)
    closer = await opened(js, stream_name, "closer")
    append_all(busy, numbers(2_000))
    while busy.last_offset is None:
        await asyncio.sleep(0)
    closed = await closer.close(b"end")
    with pytest.raises(StreamClosedError):
        await busy.flush()
    await busy.detach(ignore_errors=True)
    data = await data_of(js, stream_name)
    assert data[-1] == b"end"
    assert data[:-1] == numbers(len(data) - 1)
    last = await stream.get(last_by_subject=f"{stream_name}.d")
    assert last is not None
    assert last.sequence == closed.final_offset


# Several producers, several streams, all kinds of ids.


async def test_producers_of_one_stream_are_independent(
    place: tuple[JetStream, int], stream_name: str
) -> None:
    js, replicas = place
    await make(js, stream_name, replicas)
    ids = ["a.b", "with space", "*", ">", "/", "ä\n", "x" * 150]
    producers = [
        await opened(js, stream_name, each, subject=f"{stream_name}.{n}", max_batch_messages=7)
        for n, each in enumerate(ids)
    ]
    for number in range(60):
        for producer in producers:
            producer.append(b"%d" % number)
    for producer in producers:
        await producer.detach()
    for n in range(len(ids)):
        assert await data_of(js, stream_name, str(n)) == numbers(60)


async def test_one_id_on_two_streams_is_two_producers(js: JetStream, stream_name: str) -> None:
    names = [f"{stream_name}-a", f"{stream_name}-b"]
    for name, epoch in zip(names, (7, 2), strict=True):
        await make(js, name)
        async with await opened(js, name, epoch=epoch) as producer:
            assert (await producer.append_wait(b"x")).last_seq == 0
    assert [await data_of(js, name) for name in names] == [[b"x"], [b"x"]]


async def test_foreign_messages_in_an_exclusive_stream_cost_no_order(
    place: tuple[JetStream, int], stream_name: str
) -> None:
    js, replicas = place
    await make(js, stream_name, replicas)
    async with await opened(js, stream_name, mode="exclusive", max_batch_messages=50) as producer:
        append_all(producer, numbers(1_500))
        for number in range(20):
            await js.publish(f"{stream_name}.f", b"%d" % number)
    assert await data_of(js, stream_name) == numbers(1_500)
    assert await data_of(js, stream_name, "f") == numbers(20)


async def test_zombie_of_a_deleted_stream_is_refused_in_the_new_one(
    js: JetStream, stream_name: str
) -> None:
    await make(js, stream_name)
    zombie = await opened(js, stream_name, delivery_timeout=5.0)
    await zombie.append_wait(b"old")
    await js.streams.delete(stream_name)
    await make(js, stream_name)
    async with await opened(js, stream_name) as heir:
        await heir.append_wait(b"new")  # The state has the sequence that the zombie expects.
        with pytest.raises(NatsStreamError):
            await zombie.append_wait(b"never")
        await zombie.detach(ignore_errors=True)
    assert await data_of(js, stream_name) == [b"new"]


# What is appended.


async def test_json_takes_values(js: JetStream, stream_name: str) -> None:
    await make(js, stream_name)
    values: list[Any] = [{"a": 1}, [1, [2, 3]], "text", None, 1.5, True]
    async with await opened(js, stream_name, encoding="json") as producer:
        for value in values:
            producer.append(value)
        producer.append_many([{"n": 1}, {"n": 2}])
        for wrong in (float("nan"), object(), b"bytes"):
            with pytest.raises(ConfigError):
                producer.append(wrong)
        with pytest.raises(ConfigError):
            producer.append_many([])
    texts = await data_of(js, stream_name)
    assert texts == [
        b'{"a":1}',
        b"[1,[2,3]]",
        b'"text"',
        b"null",
        b"1.5",
        b"true",
        b'{"n":1}',
        b'{"n":2}',
    ]


async def test_wrong_arguments_are_refused_before_anything_is_sent(
    js: JetStream, stream_name: str
) -> None:
    stream = await make(js, stream_name)
    with pytest.raises(ConfigError, match="allow_atomic"):
        await js.producer(stream_name, "p", subject=f"{stream_name}.d")
    with pytest.raises(StreamNotFoundError):
        await opened(js, f"{stream_name}-none")
    wrong: dict[str, Any]
    for wrong in (
        {"producer_id": ""},
        {"producer_id": "\udcff"},
        {"epoch": -1},
        {"epoch": "1"},
        {"max_batch_bytes": 0},
        {"linger": -1},
        {"max_in_flight": 0},
        {"mode": "auto"},
        {"mode": "exclusive", "epoch": 1},
    ):
        with pytest.raises(ConfigError):
            await opened(js, stream_name, **{"producer_id": "p", **wrong})
    async with await opened(js, stream_name, subject=None) as producer:
        arguments: dict[str, Any]
        for arguments, error in (
            ({}, ConfigError),
            ({"subject": "elsewhere.d"}, WrongStreamError),
            ({"subject": f"{stream_name}.d", "headers": {"nats-msg-id": "1"}}, ConfigError),
            ({"subject": f"{stream_name}.d", "headers": {"Nats-Batch-Id": "1"}}, ConfigError),
            ({"subject": f"{stream_name}.d", "checkpoint": object()}, ConfigError),
        ):
            with pytest.raises(error):
                producer.append(b"x", **arguments)
        with pytest.raises(PayloadTooLargeError):
            producer.append(bytes(js.raw.max_payload), subject=f"{stream_name}.d")
        with pytest.raises(ConfigError):
            producer.append(5, subject=f"{stream_name}.d")
    assert not [m async for m in stream.read(first_seq=1, filters=[f"{stream_name}.d"])]


async def test_full_buffer_raises_and_drain_waits(js: JetStream, stream_name: str) -> None:
    await make(js, stream_name)
    async with await opened(js, stream_name, max_buffered_bytes=1_000) as producer:
        with pytest.raises(ProducerFullError):
            append_all(producer, [bytes(100)] * 20)
        appended = producer.buffered_bytes // 100
        await producer.drain()
        producer.append(b"more")
    assert len(await data_of(js, stream_name)) == appended + 1


async def test_limits_that_evict_the_state_are_told(js: JetStream, stream_name: str) -> None:
    await make(js, stream_name, max_msgs=5)
    producer = await opened(js, stream_name, delivery_timeout=5.0)
    for number in range(20):
        await js.publish(f"{stream_name}.f", b"%d" % number)
    with pytest.raises(SequenceGapError):
        await producer.append_wait(b"a")
    await producer.detach(ignore_errors=True)


@pytest.mark.parametrize("limit", [{"max_msgs": 400}, {"max_bytes": 40_000}])
async def test_limits_evict_old_messages_and_not_the_state_of_an_exclusive_producer(
    js: JetStream, stream_name: str, limit: dict[str, Any]
) -> None:
    await make(js, stream_name, **limit)
    options: dict[str, Any] = {"mode": "exclusive", "max_batch_messages": 20}
    async with await opened(js, stream_name, **options) as producer:
        append_all(producer, numbers(1_500))
        await producer.flush()
        await js.publish(f"{stream_name}.f", b"f")  # It makes the producer read its state.
        append_all(producer, numbers(5, 1_500))
    data = await data_of(js, stream_name)
    assert data == numbers(len(data), 1_505 - len(data))
    async with await opened(js, stream_name, **options) as heir:
        assert heir.recovered is not None
        assert heir.recovered.count == 1_505


# Faults.


@pytest.mark.parametrize("mode", MODES)
async def test_kill_9_of_the_server_costs_nothing(
    fresh_server: NatsServer, stream_name: str, mode: str
) -> None:
    async with connect(fresh_server.url, request_timeout=2.0) as js:
        await make(js, stream_name)
        async with await opened(js, stream_name, mode=mode, max_batch_messages=30) as producer:
            sent = 0
            for _ in range(4):
                for _ in range(40):
                    append_all(producer, numbers(25, sent))
                    sent += 25
                    await asyncio.sleep(0.001)
                await asyncio.to_thread(fresh_server.kill)
                append_all(producer, numbers(10, sent))
                sent += 10
                await asyncio.to_thread(fresh_server.start)
            await producer.flush()
        assert await data_of(js, stream_name) == numbers(sent)


@pytest.mark.parametrize("mode", MODES)
async def test_broken_connections_cost_nothing(
    fresh_server: NatsServer, stream_name: str, mode: str
) -> None:
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url, request_timeout=2.0) as js:
            await make(js, stream_name)
            async with await opened(js, stream_name, mode=mode, max_batch_messages=20) as producer:
                sent = 0
                for _ in range(10):
                    for _ in range(15):
                        append_all(producer, numbers(20, sent))
                        sent += 20
                        await asyncio.sleep(0.002)
                    proxy.reset()
                await producer.flush()
            assert await data_of(js, stream_name) == numbers(sent)
