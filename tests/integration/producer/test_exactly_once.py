"""Producers against real servers, beyond the protocol's table: lives, faults, and arguments."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import connect
from natsstream.errors import (
    ConfigError,
    NatsStreamError,
    PayloadTooLargeError,
    ProducerFullError,
    StaleEpochError,
    WrongStreamError,
)
from natsstream.producer.exclusive_writer import ExclusiveWriter
from natsstream.producer.shared_writer import SharedWriter
from natsstream.testing import FaultProxy
from tests.support.dropping import dropping
from tests.support.producers import (
    MODES,
    Place,
    append_all,
    append_singly,
    is_ack,
    numbers,
)

if TYPE_CHECKING:
    from natsstream import IdempotentProducer
    from natsstream.producer.batches import Stored, Write
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_all_is_stored_once_and_in_order(place: Place, mode: str) -> None:
    async with await place.open(mode=mode) as producer:
        assert (producer.epoch, producer.recovered, producer.guarantee) == (0, None, "exactly-once")
        append_all(producer, numbers(3_000))
        await producer.flush()
        stored = await producer.append_wait(b"last")
        assert stored.offset == producer.last_offset
        assert not stored.duplicate
    assert await place.data() == [*numbers(3_000), b"last"]


@pytest.mark.parametrize("mode", MODES)
async def test_next_instance_finds_checkpoint_and_count(place: Place, mode: str) -> None:
    async with await place.open(mode=mode) as first:
        append_all(first, numbers(50))
        first.append(b"a", checkpoint={"line": 51})
        first.append(b"b")
    async with await place.open(mode=mode) as second:
        assert second.recovered is not None
        assert (second.recovered.checkpoint, second.recovered.count) == ({"line": 51}, 52)
        assert second.epoch == first.epoch + 1
        second.checkpoint({"line": 60})
    async with await place.open(mode=mode) as third:
        assert third.recovered is not None
        assert (third.recovered.checkpoint, third.recovered.count) == ({"line": 60}, 52)


# Instances that were replaced.


@pytest.mark.sampled_variants
@pytest.mark.parametrize("heirs", [1, 2, 3])
@pytest.mark.parametrize("mode", MODES)
async def test_zombie_stores_nothing_more(place: Place, mode: str, heirs: int) -> None:
    """The record of a claim goes when the next one is stored: a message's place may be gone."""
    errors: list[NatsStreamError] = []
    zombie = await place.open(mode=mode, on_error=errors.append)
    await zombie.append_wait(b"z0")
    replaced = [await place.open(mode=mode) for _ in range(heirs)]
    heir = replaced.pop()
    append_all(heir, numbers(20))
    append_all(zombie, [b"z1", b"z2"])
    with pytest.raises(StaleEpochError) as caught:
        await zombie.flush()
    assert caught.value.current_epoch == heir.epoch
    with pytest.raises(StaleEpochError):
        zombie.append(b"z3")
    assert errors == [caught.value]
    append_all(heir, numbers(20, 20))
    await heir.detach()
    for each in (zombie, *replaced):
        await each.detach(ignore_errors=True)
    assert await place.data() == [b"z0", *numbers(40)]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_instance_at_work_is_stopped_by_the_next_one(place: Place, mode: str) -> None:
    """It stores faster than another one can read and claim, and leaves no pause for that."""
    busy = await place.open(mode=mode, max_batch_messages=3, max_buffered_bytes=1_000)
    position = 0

    async def work() -> None:
        nonlocal position
        while True:
            await busy.drain()
            busy.append(b"%d" % position, checkpoint=position + 1)
            position += 1
            await asyncio.sleep(0)

    working = asyncio.create_task(work())
    while busy.last_offset is None:
        await asyncio.sleep(0)
    heir = await place.open(mode=mode)
    with pytest.raises(StaleEpochError):
        await working
    assert heir.recovered is not None
    start = cast("int", heir.recovered.checkpoint)
    assert heir.recovered.count == start
    append_all(heir, numbers(5, start))
    await heir.detach()
    await busy.detach(ignore_errors=True)
    assert await place.data() == numbers(start + 5)


def hold_batch(
    monkeypatch: pytest.MonkeyPatch, producer: IdempotentProducer
) -> tuple[asyncio.Event, asyncio.Event]:
    """Let the next batch of a producer wait on its way; return "is sent" and "may arrive"."""
    is_sent, may_arrive = asyncio.Event(), asyncio.Event()
    writer = cast("SharedWriter | ExclusiveWriter", producer._session._writer)  # pyright: ignore[reportPrivateUsage]
    write = writer.write

    async def held(what: Write) -> Stored:
        if what.batch is not None and not may_arrive.is_set():
            is_sent.set()
            async with asyncio.timeout(30):
                await may_arrive.wait()
        return await write(what)

    monkeypatch.setattr(writer, "write", held)
    return is_sent, may_arrive


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_five_batches_that_are_fenced_on_the_way_are_all_stored_by_auto_claim(
    place: Place, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference client stores the first of them and reports the other four as stored too.

    The batches are cut and the first is on its way when another instance claims and stores.
    """
    options: dict[str, Any] = {"mode": mode, "max_batch_messages": 10, "max_in_flight": 5}
    errors: list[NatsStreamError] = []
    producer = await place.open(**options, auto_claim=True, on_error=errors.append)
    await producer.append_wait(b"first")
    is_sent, may_arrive = hold_batch(monkeypatch, producer)
    waits = [asyncio.create_task(producer.append_wait(each)) for each in numbers(50)]
    async with asyncio.timeout(30):
        await is_sent.wait()
    # An exclusive producer sends them as one run.
    n_batches = 5 if mode == "shared" else 1
    assert (producer.next_seq, producer.buffered_bytes > 0) == (1 + n_batches, True)
    epoch = 7 if mode == "shared" else None
    other = await place.open(mode=mode, epoch=epoch)
    await other.append_wait(b"other")
    may_arrive.set()
    stored = [await each for each in waits]
    await producer.flush()
    assert not any(each.duplicate for each in stored)
    assert (producer.epoch, producer.next_seq, errors) == (other.epoch + 1, n_batches, [])
    with pytest.raises(StaleEpochError):
        await other.append_wait(b"never")
    await producer.detach()
    await other.detach(ignore_errors=True)
    assert await place.data() == [b"first", b"other", *numbers(50)]


@pytest.mark.smoke
@pytest.mark.parametrize("mode", MODES)
async def test_restart_after_another_instance_knows_what_that_one_has_stored(
    place: Place, mode: str
) -> None:
    first = await place.open(mode=mode)
    await first.append_wait(b"0", checkpoint=0)
    async with await place.open(mode=mode) as other:
        await other.append_wait(b"1", checkpoint=1)
    with pytest.raises(StaleEpochError):
        await first.append_wait(b"never", checkpoint=2)

    await first.restart()

    assert first.recovered is not None
    assert (first.recovered.checkpoint, first.recovered.count) == (1, 2)
    await first.detach()
    assert await place.data() == numbers(2)


async def test_restart_begins_the_next_epoch(place: Place) -> None:
    async with await place.open() as producer:
        await producer.append_wait(b"a")
        await producer.restart()
        assert (producer.epoch, producer.next_seq) == (1, 0)
        await producer.append_wait(b"b")
        other = await place.open()
        with pytest.raises(StaleEpochError):
            await producer.append_wait(b"c")
        await producer.restart()
        await producer.append_wait(b"d")
        await other.detach(ignore_errors=True)
    assert await place.data() == [b"a", b"b", b"d"]


@pytest.mark.parametrize("mode", MODES)
async def test_messages_appended_during_a_restart_are_stored(place: Place, mode: str) -> None:
    async with await place.open(mode=mode, max_batch_messages=5) as producer:
        append_all(producer, numbers(10))
        await producer.flush()
        restart = asyncio.create_task(producer.restart())
        await asyncio.sleep(0)
        append_all(producer, numbers(10, 10))
        await restart
    assert await place.data() == numbers(20)


async def test_zombie_of_a_deleted_stream_is_refused_in_the_new_one(place: Place) -> None:
    zombie = await place.open(delivery_timeout=5.0)
    await zombie.append_wait(b"old")
    await place.js.streams.delete(place.name)
    await place.make()
    async with await place.open() as heir:
        await heir.append_wait(b"new")  # The state has the sequence that the zombie expects.
        with pytest.raises(NatsStreamError):
            await zombie.append_wait(b"never")
        await zombie.detach(ignore_errors=True)
    assert await place.data() == [b"new"]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_lost_ack_of_the_claim_changes_nothing_later(place: Place, mode: str) -> None:
    """The claim is found to be stored; then the ack of a later batch is lost as well."""
    async with dropping(place.port) as relay, connect(relay.url, request_timeout=1.0) as js:
        there = replace(place, js=js)
        await (await there.open(mode=mode)).detach()  # It updates the stream.
        relay.drop(is_ack)
        async with await there.open(mode=mode) as producer:
            assert len(relay.dropped) == 1
            assert await append_singly(producer, numbers(3)) == [False] * 3
            relay.drop(is_ack)
            assert await append_singly(producer, numbers(2, 3)) == [True, False]
    assert await place.data() == numbers(5)


# Other writers, and limits.


async def test_foreign_messages_in_an_exclusive_stream_cost_no_order(place: Place) -> None:
    async with await place.open(mode="exclusive", max_batch_messages=50) as producer:
        append_all(producer, numbers(1_500))
        for number in range(20):
            await place.js.publish(f"{place.name}.f", b"%d" % number)
    assert await place.data() == numbers(1_500)
    assert await place.data("f") == numbers(20)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("limit", [{"max_msgs": 400}, {"max_bytes": 40_000}])
async def test_limits_evict_old_messages_and_not_the_state_of_an_exclusive_producer(
    place: Place, limit: dict[str, Any]
) -> None:
    await place.make(**limit)
    options: dict[str, Any] = {"mode": "exclusive", "max_batch_messages": 20}
    async with await place.open(**options) as producer:
        append_all(producer, numbers(1_500))
        await producer.flush()
        await place.js.publish(f"{place.name}.f", b"f")  # It makes the producer read its state.
        append_all(producer, numbers(5, 1_500))
    data = await place.data()
    assert data == numbers(len(data), 1_505 - len(data))
    async with await place.open(**options) as heir:
        assert heir.recovered is not None
        assert heir.recovered.count == 1_505


# What is appended.


async def test_wrong_arguments_are_refused_before_anything_is_sent(place: Place) -> None:
    with pytest.raises(ConfigError, match="allow_atomic"):
        await place.js.producer(place.name, "p", subject=f"{place.name}.d")
    wrong: dict[str, Any]
    for wrong in (
        {"producer_id": "\udcff"},
        {"max_batch_bytes": 0},
        {"linger": -1},
        {"max_in_flight": 0},
        {"mode": "auto"},
        {"mode": "exclusive", "epoch": 1},
    ):
        with pytest.raises(ConfigError):
            await place.open(**{"producer_id": "p", **wrong})
    async with await place.open(subject=None) as producer:
        subject = f"{place.name}.d"
        arguments: dict[str, Any]
        for arguments, error in (
            ({}, ConfigError),
            ({"subject": "elsewhere.d"}, WrongStreamError),
            ({"subject": subject, "checkpoint": object()}, ConfigError),
        ):
            with pytest.raises(error):
                producer.append(b"x", **arguments)
        with pytest.raises(PayloadTooLargeError):
            producer.append(bytes(place.js.raw.max_payload), subject=subject)
    assert await place.data() == []


async def test_full_buffer_raises_and_drain_waits(place: Place) -> None:
    async with await place.open(max_buffered_bytes=1_000) as producer:
        with pytest.raises(ProducerFullError):
            append_all(producer, [bytes(100)] * 20)
        appended = producer.buffered_bytes // 100
        await producer.drain()
        producer.append(b"more")
    assert len(await place.data()) == appended + 1


@pytest.mark.parametrize(("mode", "count"), [("shared", 10), ("exclusive", 30)])
async def test_drain_lets_the_first_full_batch_go(place: Place, mode: str, count: int) -> None:
    async with await place.open(mode=mode, max_batch_messages=10, max_in_flight=3) as producer:
        append_all(producer, numbers(count))
        assert producer.in_flight_count == 0
        waiting = asyncio.create_task(producer.drain())
        while not producer.in_flight_count:
            assert not waiting.done(), "drain sent nothing"
            await asyncio.sleep(0)
        await waiting


async def test_drain_waits_while_full_batches_wait(place: Place) -> None:
    async with await place.open(max_batch_messages=10, max_in_flight=2) as producer:
        append_all(producer, [bytes(100)] * 105)
        await producer.drain()
        assert producer.buffered_bytes <= 1_500
    assert len(await place.data()) == 105


# Faults.


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_kill_9_of_the_server_costs_nothing(
    fresh_server: NatsServer, stream_name: str, mode: str
) -> None:
    async with connect(fresh_server.url, request_timeout=2.0) as js:
        place = Place(js, stream_name, 1, fresh_server.port)
        await place.make()
        async with await place.open(mode=mode, max_batch_messages=30) as producer:
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
        assert await place.data() == numbers(sent)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
async def test_broken_connections_cost_nothing(
    fresh_server: NatsServer, stream_name: str, mode: str
) -> None:
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url, request_timeout=2.0) as js:
            place = Place(js, stream_name, 1, fresh_server.port)
            await place.make()
            async with await place.open(mode=mode, max_batch_messages=20) as producer:
                sent = 0
                for _ in range(10):
                    for _ in range(15):
                        append_all(producer, numbers(20, sent))
                        sent += 20
                        await asyncio.sleep(0.002)
                    proxy.reset()
                await producer.flush()
            assert await place.data() == numbers(sent)
