"""Commits whose answer is lost, and what became of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from natsstream import Expect, connect
from natsstream.errors import (
    BatchIncompleteError,
    BatchOutcomeUnknownError,
    ConnectionLostError,
    NatsStreamError,
    RequestTimeoutError,
    TransportError,
    UsageError,
    WrongLastSequenceError,
)
from natsstream.publish.batches.outcome import LostCommit, find_outcome
from natsstream.testing import FaultProxy
from tests.support.clusters import connect_to, step_down
from tests.support.eventually import eventually_async
from tests.support.streams import purge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream import AtomicBatch, JetStream, Stream
    from natsstream.testing import NatsCluster, NatsNode

pytestmark = pytest.mark.asyncio


@pytest.fixture
def proxy(server: NatsNode) -> Iterator[FaultProxy]:
    with FaultProxy(server.port) as proxy:
        yield proxy


async def messages_of(stream: Stream) -> int:
    return (await stream.info()).state.messages


async def fill(tx: AtomicBatch, stream: Stream, count: int = 3) -> None:
    for number in range(count):
        await tx.add(f"{stream.name}.{number}", b"%d" % number)


async def go_on(tx: AtomicBatch, stream: Stream) -> None:
    for _ in range(900):
        await tx.add(f"{stream.name}.a", b"x")
        await asyncio.sleep(0)
    await tx.commit()


async def lose_answer(tx: AtomicBatch, proxy: FaultProxy, stream: Stream) -> None:
    """Commit a batch that is stored and never answered; `stream` goes another way."""

    async def is_stored() -> bool:
        return await messages_of(stream) == tx.count

    proxy.stall(direction="to_client")
    with pytest.raises(RequestTimeoutError, match="may be stored or not"):
        await tx.commit(timeout=0.1)
    await eventually_async(is_stored)  # A reset would take along what has not arrived yet.
    proxy.reset()
    proxy.heal()


async def test_a_commit_whose_answer_is_lost_is_found(stream: Stream, proxy: FaultProxy) -> None:
    async with connect(proxy.url) as js:
        async with (await js.streams.get(stream.name)).batch() as tx:
            await fill(tx, stream)
            await lose_answer(tx, proxy, stream)
            with pytest.raises(UsageError, match="unknown"):
                await tx.commit()
        ack = await tx.outcome()

    assert ack is not None
    assert (ack.first_seq, ack.sequence, ack.count) == (1, 3, 3)
    assert await tx.outcome() is ack


async def test_it_is_found_behind_messages_of_others(
    js: JetStream, stream: Stream, proxy: FaultProxy
) -> None:
    async with connect(proxy.url) as through:
        async with (await through.streams.get(stream.name)).batch() as tx:
            await fill(tx, stream)
            await lose_answer(tx, proxy, stream)
        async with js.publisher() as publisher:
            for _ in range(500):
                await publisher.send(f"{stream.name}.2", b"another's")
        ack = await tx.outcome()

    assert ack is not None
    assert ack.sequence == 3


async def test_it_is_found_where_its_last_message_was_removed(
    stream: Stream, proxy: FaultProxy, js: JetStream
) -> None:
    async with connect(proxy.url) as through:
        async with (await through.streams.get(stream.name)).batch() as tx:
            await fill(tx, stream)
            await lose_answer(tx, proxy, stream)
        await stream.publish(f"{stream.name}.2", b"another's")
        await purge(js, stream.name, filter=f"{stream.name}.2")
        ack = await tx.outcome()

    assert ack is not None
    assert (ack.sequence, ack.count) == (3, 3)


async def test_a_commit_that_did_not_arrive_is_not_stored(
    stream: Stream, proxy: FaultProxy
) -> None:
    async with connect(proxy.url) as js:
        async with (await js.streams.get(stream.name)).batch() as tx:
            await fill(tx, stream)
            proxy.stall(direction="to_server")
            with pytest.raises(RequestTimeoutError):
                await tx.commit(timeout=0.1)
            proxy.reset()
            proxy.heal()
        assert await tx.outcome() is None
        assert await messages_of(stream) == 0


async def test_what_was_told_as_not_stored_is_not_stored_later(
    js: JetStream, stream: Stream, proxy: FaultProxy
) -> None:
    # The commit stands in the proxy while another connection asks, and arrives behind the answer.
    async with connect(proxy.url) as through:
        opened = await through.streams.get(stream.name)
        async with opened.batch() as tx:
            await fill(tx, stream)
            proxy.stall(direction="to_server")
            committing = asyncio.create_task(tx.commit(timeout=50))
            while tx._state != "committing":  # pyright: ignore[reportPrivateUsage]
                await asyncio.sleep(0)
            lost = LostCommit(stream.cached, tx.batch_id, 3, f"{stream.name}.0", f"{stream.name}.2")
            told = await find_outcome(js._api, lost, 30)  # pyright: ignore[reportPrivateUsage]
            proxy.heal()
            with pytest.raises(BatchIncompleteError):
                await committing

    assert told is None
    assert await messages_of(stream) == 0


async def test_a_commit_of_one_message_that_comes_late_is_not_stored_either(
    js: JetStream, stream: Stream, proxy: FaultProxy
) -> None:
    async with connect(proxy.url) as through:
        opened = await through.streams.get(stream.name)
        async with opened.batch() as tx:
            await tx.add(f"{stream.name}.0", b"x")
            proxy.stall(direction="to_server")
            committing = asyncio.create_task(tx.commit(timeout=50))
            while tx._state != "committing":  # pyright: ignore[reportPrivateUsage]
                await asyncio.sleep(0)
            subject = f"{stream.name}.0"
            lost = LostCommit(stream.cached, tx.batch_id, 1, subject, subject)
            told = await find_outcome(js._api, lost, 30)  # pyright: ignore[reportPrivateUsage]
            proxy.heal()
            with pytest.raises(BatchIncompleteError):
                await committing

    assert told is None
    assert await messages_of(stream) == 0


async def test_a_batch_that_the_stream_never_answered_can_not_be_told(
    js: JetStream, stream: Stream
) -> None:
    # As of a server before 2.14, where a batch of one message is its commit.
    subject = f"{stream.name}.0"
    lost = LostCommit(stream.cached, "never", 1, subject, subject, is_known=False)

    with pytest.raises(BatchOutcomeUnknownError, match="when it arrives"):
        await find_outcome(js._api, lost, 30)  # pyright: ignore[reportPrivateUsage]


async def test_it_can_not_be_told_where_messages_were_removed(
    js: JetStream, stream: Stream, proxy: FaultProxy
) -> None:
    async with connect(proxy.url) as through:
        async with (await through.streams.get(stream.name)).batch() as tx:
            await fill(tx, stream)
            await lose_answer(tx, proxy, stream)
        await purge(js, stream.name)
        with pytest.raises(BatchOutcomeUnknownError, match="removed"):
            await tx.outcome()


async def test_others_messages_behind_it_do_not_stand_for_those_that_were_removed(
    js: JetStream, stream: Stream, proxy: FaultProxy
) -> None:
    async with connect(proxy.url) as through:
        async with (await through.streams.get(stream.name)).batch() as tx:
            await fill(tx, stream)
            await lose_answer(tx, proxy, stream)
        await purge(js, stream.name)
        for _ in range(5):
            await stream.publish(f"{stream.name}.2", b"another's")
        with pytest.raises(BatchOutcomeUnknownError, match="removed"):
            await tx.outcome()


async def test_messages_that_were_removed_before_it_do_not_count(
    js: JetStream, stream: Stream, proxy: FaultProxy
) -> None:
    for _ in range(10):
        await stream.publish(f"{stream.name}.0", b"x")
    await purge(js, stream.name, keep=2)
    async with connect(proxy.url) as through:
        async with (await through.streams.get(stream.name)).batch() as tx:
            await fill(tx, stream)
            proxy.stall(direction="to_server")
            with pytest.raises(RequestTimeoutError):
                await tx.commit(timeout=0.1)
            proxy.reset()
            proxy.heal()
        assert await tx.outcome() is None


async def test_a_stream_that_was_made_anew_can_not_tell(
    js: JetStream, stream: Stream, proxy: FaultProxy
) -> None:
    async with connect(proxy.url) as through:
        async with (await through.streams.get(stream.name)).batch() as tx:
            await fill(tx, stream)
            await lose_answer(tx, proxy, stream)
        await js.streams.delete(stream.name)
        await js.streams.ensure(stream.name, subjects=[f"{stream.name}.>"], allow_atomic=True)
        with pytest.raises(BatchOutcomeUnknownError, match="made again"):
            await tx.outcome()


async def test_a_cancelled_commit_is_found_out_too(stream: Stream, proxy: FaultProxy) -> None:
    async with connect(proxy.url) as js, (await js.streams.get(stream.name)).batch() as tx:
        await fill(tx, stream)
        proxy.stall(direction="to_client")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await tx.commit(timeout=20)
        proxy.heal()
        ack = await tx.outcome()

    assert ack is not None


async def test_a_break_before_the_commit_ends_the_batch_and_nothing_is_stored(
    stream: Stream, proxy: FaultProxy
) -> None:
    async with connect(proxy.url) as js:
        async with (await js.streams.get(stream.name)).batch() as tx:
            await fill(tx, stream)
            proxy.reset()
            with pytest.raises((ConnectionLostError, UsageError)):
                await go_on(tx, stream)
        with suppress(BatchOutcomeUnknownError):
            assert await tx.outcome() is None

    assert await messages_of(stream) == 0


async def test_asking_before_the_commit_is_refused(stream: Stream) -> None:
    async with stream.batch() as tx:
        with pytest.raises(UsageError, match="not committed"):
            await tx.outcome()


# Replicated streams.


@pytest.fixture
def fields(stream_name: str) -> dict[str, object]:
    subjects = [f"{stream_name}.>"]
    return {"subjects": subjects, "replicas": 3, "allow_atomic": True, "allow_batched": True}


async def test_batches_on_a_replicated_stream(
    cluster_js: JetStream, stream_name: str, fields: dict[str, object]
) -> None:
    # The fields are a test's.
    stream = await cluster_js.streams.ensure(stream_name, **fields)  # pyright: ignore[reportArgumentType]
    async with stream.batch() as tx:
        await fill(tx, stream, 300)
        ack = await tx.commit()
    async with stream.batch() as late:
        await late.add(f"{stream.name}.0", b"x", expect=Expect(last_subject_seq=7))
        with pytest.raises(WrongLastSequenceError):
            await late.commit()

    assert (ack.first_seq, ack.count) == (1, 300)
    assert await messages_of(stream) == 300


async def test_a_change_of_leaders_ends_a_batch_that_is_not_committed(
    cluster_js: JetStream,
    nats_cluster: NatsCluster,
    stream_name: str,
    fields: dict[str, object],
) -> None:
    stream = await cluster_js.streams.ensure(stream_name, **fields)  # pyright: ignore[reportArgumentType]
    async with stream.batch() as tx:
        await fill(tx, stream)
        await step_down(cluster_js, nats_cluster, stream.name)
        with pytest.raises(NatsStreamError) as caught:
            await tx.commit()
        if isinstance(caught.value, TransportError):  # The new leader was not there yet.
            assert await tx.outcome() is None
        else:
            assert isinstance(caught.value, BatchIncompleteError)

    assert await messages_of(stream) == 0


async def test_a_lost_answer_is_found_out_on_a_replicated_stream(
    nats_cluster: NatsCluster,
    cluster_js: JetStream,
    stream_name: str,
    fields: dict[str, object],
) -> None:
    stream = await cluster_js.streams.ensure(stream_name, **fields)  # pyright: ignore[reportArgumentType]
    with FaultProxy(nats_cluster.servers[0].port) as proxy:
        async with connect(proxy.url, request_timeout=30) as js:
            opened = await js.streams.get(stream.name)
            async with opened.batch() as stored:
                await fill(stored, stream)
                await lose_answer(stored, proxy, stream)
            found = await stored.outcome()
        # Another connection: that one has found its way past the proxy.
        async with connect(proxy.url, request_timeout=30) as js:
            async with (await js.streams.get(stream.name)).batch() as dropped:
                await fill(dropped, stream)
                proxy.stall(direction="to_server")
                with pytest.raises(RequestTimeoutError):
                    await dropped.commit(timeout=0.1)
                proxy.reset()
                proxy.heal()
            lost = await dropped.outcome()

    assert found is not None
    assert (found.sequence, lost) == (3, None)
    assert await messages_of(stream) == 3


@pytest.mark.proves("1b", "atomic batch (ADR-50)")
@pytest.mark.timeout(120)
async def test_outcomes_are_true_while_leaders_are_killed(
    nats_cluster_fresh: NatsCluster, stream_name: str, fields: dict[str, object]
) -> None:
    cluster = nats_cluster_fresh
    told: dict[int, bool] = {}
    async with connect_to(cluster) as js:
        stream = await js.streams.ensure(stream_name, **fields)  # pyright: ignore[reportArgumentType]
        for number in range(25):
            if number == 8:
                leader = await asyncio.to_thread(cluster.wait_for_leader, stream.name)
                killing = asyncio.create_task(asyncio.to_thread(leader.kill))
                told[number] = await commit_one(stream, number)
                await killing
                await asyncio.to_thread(cluster.wait_for_leader, stream.name, other_than=leader)
                await asyncio.to_thread(leader.start)
            else:
                told[number] = await commit_one(stream, number)
        await asyncio.to_thread(cluster.wait_until_ready)  # Who chooses a leader answers nobody.
        found = [int(m.data) async for m in stream.read(first_seq=1)]

    assert sorted(found) == sorted(2 * [number for number, is_in in told.items() if is_in])
    assert any(told[number] for number in range(9, 25))


async def commit_one(stream: Stream, number: int) -> bool:
    """Store a batch of two copies of a number; return whether it was told to be stored."""
    tx = stream.batch()
    try:
        async with tx:
            async with asyncio.timeout(3):  # What is not committed is not stored.
                await tx.add(f"{stream.name}.a", b"%d" % number)
                await tx.add(f"{stream.name}.b", b"%d" % number)
            await tx.commit(timeout=2)
    except (NatsStreamError, TimeoutError):
        return tx._state == "unknown" and await is_found(tx)  # pyright: ignore[reportPrivateUsage]
    return True


async def is_found(tx: AtomicBatch) -> bool:
    """Ask until the stream has a leader that tells."""
    while True:
        try:
            return await tx.outcome() is not None
        except BatchOutcomeUnknownError as error:
            if not error.retryable:
                raise


async def test_adding_that_is_cancelled_ends_the_batch_and_stores_nothing(
    stream: Stream, proxy: FaultProxy
) -> None:
    async with connect(proxy.url) as js, (await js.streams.get(stream.name)).batch() as tx:
        proxy.stall(direction="to_client")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await tx.add(f"{stream.name}.a", b"x")
        proxy.heal()
        with pytest.raises(UsageError, match="cancelled"):
            await tx.commit()
        assert await tx.outcome() is None

    assert await messages_of(stream) == 0


async def test_first_messages_alone_are_no_stored_batch(
    cluster_js: JetStream, stream_name: str
) -> None:
    """A server of a cluster that is killed while it stores a batch keeps its first messages."""
    made = await cluster_js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], allow_atomic=True, replicas=1
    )
    async with made.batch() as tx:
        await fill(tx, made)
        await tx.commit()
    before = replace(await made.info(), state=replace((await made.info()).state, last_seq=0))
    subject = f"{stream_name}.2"
    whole = LostCommit(before, tx.batch_id, 3, f"{stream_name}.0", subject)
    api = made._api  # pyright: ignore[reportPrivateUsage]

    assert await find_outcome(api, whole, 10) is not None
    with pytest.raises(BatchOutcomeUnknownError, match="only its first messages"):
        await find_outcome(api, replace(whole, count=5), 10)
