"""Fast ingests while connections break, servers die and leaders change: the report stays true."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import IngestSpan, connect
from natsstream.errors import BatchBrokenError, ConnectionClosedError, RequestTimeoutError
from natsstream.publish.batches import fast_sender
from natsstream.publish.batches.fast_answers import FinalAck, FlowGap
from natsstream.testing import FaultProxy
from tests.support.clusters import connect_to, step_down
from tests.support.eventually import eventually_async
from tests.support.ingests import other_waits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from natsstream import FastIngest, IngestReport, JetStream, Stream
    from natsstream._wire.parser import Frame
    from natsstream.testing import NatsCluster, NatsNode, NatsServer

pytestmark = pytest.mark.asyncio

TOTAL = 20_000
# Two acks of 500 messages each.
IN_FLIGHT = 1_000


@pytest.fixture
def proxy(server: NatsNode) -> Iterator[FaultProxy]:
    with FaultProxy(server.port) as proxy:
        yield proxy


async def ingest_and_disturb(
    fast: FastIngest,
    subject: str,
    disturb: Callable[[], Awaitable[object]],
    *,
    breaks_min: int = 0,
) -> int:
    """Send numbers, and do something in the middle; resume after breaks; return the breaks.

    It goes on until that is done, however long it takes, and until there were so many breaks.
    """
    breaks, number = 0, 0
    disturbing: asyncio.Task[object] | None = None
    while disturbing is None or not disturbing.done() or number < TOTAL or breaks < breaks_min:
        if number >= TOTAL // 4 and disturbing is None:
            disturbing = asyncio.ensure_future(disturb())
        try:
            # The payload is what the message's number will be.
            run = range(number + 1, number + 101)
            await fast.send_many((subject, b"%d" % n) for n in run)
        except (BatchBrokenError, RequestTimeoutError):
            breaks += 1
            assert breaks < 50
            await fast.resume()
        number = fast.report.sent
    await disturbing
    return breaks


async def send_numbers(fast: FastIngest, subject: str) -> None:
    """Send what comes behind the first message."""
    for number in range(2, TOTAL):
        await fast.send(subject, b"%d" % number)


async def ingest_and_stall(stream: Stream, proxy: FaultProxy) -> None:
    async with asyncio.timeout(None) as deadline, stream.ingest() as fast:
        await fast.send(f"{stream.name}.a", b"1")
        proxy.stall()
        deadline.reschedule(asyncio.get_running_loop().time() + 0.1)
        await send_numbers(fast, f"{stream.name}.a")


async def check_truth(stream: Stream, report: IngestReport) -> None:
    """Compare a report with what the stream has: in order, once, and as it was told."""
    found = [int(message.data) async for message in stream.read(first_seq=1)]
    assert found == sorted(set(found))
    lacking = {n for span in report.gaps for n in range(span.first, span.last + 1)}
    unknown = {n for span in report.unknown for n in range(span.first, span.last + 1)}
    told = set(range(1, report.sent + 1)) - lacking - unknown
    assert len(told) == report.stored
    assert told <= set(found)
    assert not lacking & set(found)
    assert set(found) <= told | unknown


@pytest.mark.sampled_variants
@pytest.mark.parametrize("on_gap", ["fail", "ok"])
async def test_a_cut_connection_leaves_a_true_report(
    stream: Stream, proxy: FaultProxy, on_gap: str
) -> None:
    async with connect(proxy.url) as js:
        client = js._client  # pyright: ignore[reportPrivateUsage]

        async def is_apart() -> bool:
            return not client.is_connected

        async def cut() -> None:
            proxy.cut()
            await eventually_async(is_apart)
            proxy.heal()

        opened = await js.streams.get(stream.name)
        # One of the two choices.
        async with opened.ingest(on_gap=on_gap) as fast:  # pyright: ignore[reportArgumentType]
            await ingest_and_disturb(fast, f"{stream.name}.a", cut)
            report = await fast.close()

    # Where gaps are allowed a break may have swallowed what was said of some.
    assert on_gap == "ok" or report.unknown == ()
    await check_truth(stream, report)


async def test_a_break_between_messages_loses_nothing(stream: Stream, proxy: FaultProxy) -> None:
    async with connect(proxy.url) as js, (await js.streams.get(stream.name)).ingest() as fast:
        for n in range(1, 101):
            await fast.send(f"{stream.name}.a", b"%d" % n)
        await js.core.flush()
        proxy.reset()
        for n in range(101, 201):
            await fast.send(f"{stream.name}.a", b"%d" % n)
            await asyncio.sleep(0)
        report = await fast.close()

    assert report.unknown == ()
    await check_truth(stream, report)


async def test_a_server_that_is_killed_leaves_what_it_had_not_acked_unknown(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async def kill() -> None:
        await asyncio.to_thread(fresh_server.kill)
        await asyncio.to_thread(fresh_server.start)

    async with connect(fresh_server.url, request_timeout=30) as js:
        stream = await js.streams.ensure(stream_name, allow_batched=True)
        async with stream.ingest() as fast:
            breaks = await ingest_and_disturb(fast, stream_name, kill, breaks_min=1)
            report = await fast.close()
        await check_truth(stream, report)

    assert breaks >= 1
    assert report.batches == breaks + 1


async def test_messages_that_a_killed_server_had_stored_and_not_acked_are_unknown(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with connect(fresh_server.url, request_timeout=30) as js:
        stream = await js.streams.ensure(stream_name, allow_batched=True)
        # A ping would be answered with an ack.
        async with stream.ingest(idle_timeout=180, ack_timeout=30) as fast:
            with other_waits(fast, ping_after_s=60.0):
                for n in range(1, 101):
                    await fast.send(stream_name, b"%d" % n)
                await js.core.flush()
                await asyncio.to_thread(fresh_server.kill)
            await asyncio.to_thread(fresh_server.start)
            report = await fast.close()
        await check_truth(stream, report)

    assert (report.stored, report.gaps) == (0, ())
    assert report.unknown == (IngestSpan(1, 100),)


async def test_a_stalled_server_is_told_and_the_report_stays_true(
    stream: Stream, proxy: FaultProxy
) -> None:
    async with connect(proxy.url) as js:
        opened = await js.streams.get(stream.name)
        async with opened.ingest(ack_timeout=30) as fast:
            await fast.send(f"{stream.name}.a", b"1")
            proxy.stall()
            # Only while there is nothing to wait for.
            with (
                other_waits(fast, ack_timeout_s=0.2, ping_after_s=0.1),
                pytest.raises(RequestTimeoutError, match="nothing was acked"),
            ):
                await send_numbers(fast, f"{stream.name}.a")
            proxy.heal()
            report = await fast.close()

    await check_truth(stream, report)


async def test_an_answer_that_is_lost_at_the_end_is_asked_for_again(
    stream: Stream, proxy: FaultProxy, js: JetStream
) -> None:
    async with connect(proxy.url) as through:
        opened = await through.streams.get(stream.name)
        async with opened.ingest(ack_timeout=30) as fast:
            for n in range(1, 11):
                await fast.send(f"{stream.name}.a", b"%d" % n)
            sender = fast._sender  # pyright: ignore[reportPrivateUsage]
            assert sender is not None
            prefix = sender._prefix  # pyright: ignore[reportPrivateUsage]
            async with js.core.subscribe(f"{prefix}>") as answers:
                await js.core.flush()
                proxy.stall(direction="to_client")
                closing = asyncio.create_task(fast.close())
                while (answer := await answers.next(30)) and b'"batch"' not in answer.data:
                    pass
            proxy.reset()
            proxy.heal()
            report = await closing

    # The end was taken and its answer is gone: nobody can tell what it said.
    assert report.stored + sum(span.size for span in report.unknown) == 10
    await check_truth(stream, report)


async def test_an_idle_batch_is_kept_alive(stream: Stream, js: JetStream) -> None:
    async with stream.ingest(idle_timeout=0.06) as fast:
        await fast.send(f"{stream.name}.a", b"1")
        sender = fast._sender  # pyright: ignore[reportPrivateUsage]
        assert sender is not None
        prefix = sender._prefix  # pyright: ignore[reportPrivateUsage]
        async with js.core.subscribe(f"{prefix}1.4.$FI") as pings:
            async with asyncio.timeout(30):
                async for ping in pings:
                    assert b'"type":"ack"' in ping.data
                    break
        report = await fast.close()

    assert report.is_complete


async def test_a_closed_connection_ends_the_waits(stream: Stream, server: NatsNode) -> None:
    js = await connect(server.url).__aenter__()
    opened = await js.streams.get(stream.name)
    fast = await opened.ingest().__aenter__()
    await fast.send(f"{stream.name}.a", b"1")
    await js.close()
    with pytest.raises((ConnectionClosedError, BatchBrokenError)):
        await send_numbers(fast, f"{stream.name}.a")
    report = await fast.close()

    assert report.sent == report.stored + sum(s.size for s in (*report.gaps, *report.unknown))


async def test_cancelling_frees_everything(stream: Stream, proxy: FaultProxy) -> None:
    async with connect(proxy.url) as js:
        opened = await js.streams.get(stream.name)
        before = len(js._client.parser.sinks)  # pyright: ignore[reportPrivateUsage]
        proxy_task = asyncio.current_task()
        assert proxy_task is not None
        with pytest.raises(TimeoutError):
            await ingest_and_stall(opened, proxy)
        proxy.heal()
        assert len(js._client.parser.sinks) == before  # pyright: ignore[reportPrivateUsage]
        assert proxy_task.cancelling() == 0


# Replicated streams.


@pytest.mark.sampled_variants
@pytest.mark.parametrize("on_gap", ["fail", "ok"])
async def test_a_change_of_leaders_leaves_a_true_report(
    cluster_js: JetStream, nats_cluster: NatsCluster, stream_name: str, on_gap: str
) -> None:
    stream = await cluster_js.streams.ensure(stream_name, replicas=3, allow_batched=True)

    async def move() -> None:
        await step_down(cluster_js, nats_cluster, stream.name)

    # One of the two choices.
    async with stream.ingest(on_gap=on_gap, ack_timeout=30) as fast:  # pyright: ignore[reportArgumentType]
        await ingest_and_disturb(fast, stream_name, move)
        report = await fast.close()

    # What the new leader called missing, and no more than was in flight.
    assert sum(span.size for span in report.unknown) <= IN_FLIGHT * report.batches
    await check_truth(stream, report)


@pytest.mark.parametrize("leader", ["stays", "changes"])
async def test_end_that_another_leader_tells_is_not_believed_to_be_all(
    cluster_js: JetStream,
    nats_cluster: NatsCluster,
    stream_name: str,
    monkeypatch: pytest.MonkeyPatch,
    leader: str,
) -> None:
    """A new leader has told a count from before it had stored all of the last one's messages."""
    stream = await cluster_js.streams.ensure(stream_name, replicas=3, allow_batched=True)
    read = fast_sender.read_answer

    def read_late(frame: Frame, batch: str, name: str) -> object:
        answer = read(frame, batch, name)
        if isinstance(answer, FinalAck):
            return FinalAck(answer.count - 5, answer.sequence)
        return answer

    async with stream.ingest() as fast:
        await fast.send_many((stream_name, b"%d" % number) for number in range(1, 101))
        if leader == "changes":
            await step_down(cluster_js, nats_cluster, stream.name)
        monkeypatch.setattr(fast_sender, "read_answer", read_late)
        report = await fast.close()

    span = (IngestSpan(96, 100),)
    assert (report.gaps, report.unknown) == ((span, ()) if leader == "stays" else ((), span))


async def test_gap_is_unknown_where_the_block_is_left_by_the_error_that_tells_it(
    cluster_js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = await cluster_js.streams.ensure(stream_name, replicas=3, allow_batched=True)
    read = fast_sender.read_answer

    def read_gap(frame: Frame, batch: str, name: str) -> object:
        read(frame, batch, name)
        return FlowGap(51, 100)

    async def send_into(fast: FastIngest) -> None:
        async with fast:
            await fast.send_many((stream_name, b"x") for _ in range(100))
            monkeypatch.setattr(fast_sender, "read_answer", read_gap)
            while True:
                await fast.send(stream_name, b"x")

    fast = stream.ingest()
    with pytest.raises(BatchBrokenError):
        await send_into(fast)

    assert fast.report.gaps == ()
    assert fast.report.unknown[0].first <= 51 < fast.report.unknown[0].last


@pytest.mark.proves("1b", "fast batch / ingest (ADR-50)")
@pytest.mark.timeout(120)
async def test_a_killed_leader_leaves_a_true_report(
    nats_cluster_fresh: NatsCluster, stream_name: str
) -> None:
    cluster = nats_cluster_fresh
    async with connect_to(cluster) as js:
        stream = await js.streams.ensure(stream_name, replicas=3, allow_batched=True)

        async def kill() -> None:
            leader = await asyncio.to_thread(cluster.wait_for_leader, stream.name)
            await asyncio.to_thread(leader.kill)
            await asyncio.to_thread(leader.start)

        async with stream.ingest() as fast:
            await ingest_and_disturb(fast, stream_name, kill)
            report = await fast.close()
        await asyncio.to_thread(cluster.wait_until_ready)  # Who chooses a leader answers nobody.
        await check_truth(stream, report)

    assert report.stored > TOTAL // 2
