"""Integration tests of publishing: acks, refusals, and what holds when the server goes away."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING

import pytest

from natsstream import Expect, NatsStreamError, PubAck, connect
from natsstream.errors import (
    ConnectionLostError,
    HeaderError,
    NoRespondersError,
    PayloadTooLargeError,
    RequestTimeoutError,
    SubjectError,
    WrongLastMessageIdError,
    WrongLastSequenceError,
    WrongStreamError,
)
from tests.conftest import MAX_PAYLOAD_BYTES
from tests.support.eventually import eventually_async
from tests.support.streams import payload

if TYPE_CHECKING:
    from natsstream import JetStream, Stream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


async def make(js: JetStream, name: str) -> Stream:
    return await js.streams.create(name, subjects=[f"{name}.>"])


async def left(js: JetStream) -> None:
    """Wait until the client knows that its server has gone."""

    async def is_away() -> bool:
        return not js.is_connected

    await eventually_async(is_away)


async def contents(stream: Stream) -> list[bytes]:
    return [message.data async for message in stream.read()]


@pytest.mark.smoke
@pytest.mark.proves("1b", "sync publish + PubAck")
async def test_ack_names_stream_and_sequence(js: JetStream, stream_name: str) -> None:
    await make(js, stream_name)

    first = await js.publish(f"{stream_name}.a", b"1")
    second = await js.publish(f"{stream_name}.a", b"2")

    assert first == PubAck(stream_name, 1)
    assert second == PubAck(stream_name, 2)


@pytest.mark.proves("1b", "dedup Nats-Msg-Id")
async def test_second_message_with_an_id_is_a_duplicate(js: JetStream, stream_name: str) -> None:
    stream = await make(js, stream_name)
    await js.publish(f"{stream_name}.a", b"1", msg_id="one")
    await js.publish(f"{stream_name}.a", b"2")

    ack = await js.publish(f"{stream_name}.a", b"again", msg_id="one")

    assert ack == PubAck(stream_name, 1, duplicate=True)
    assert await contents(stream) == [b"1", b"2"]


@pytest.mark.proves("1b", "expect last seq / last msg id")
@pytest.mark.parametrize("expected", [Expect(last_seq=1), Expect(last_subject_seq=1)])
async def test_stale_expectation_is_refused_with_the_last_sequence(
    js: JetStream, stream_name: str, expected: Expect
) -> None:
    stream = await make(js, stream_name)
    for _ in range(3):
        await js.publish(f"{stream_name}.a", b"x")

    with pytest.raises(WrongLastSequenceError) as caught:
        await js.publish(f"{stream_name}.a", b"late", expect=expected)

    assert caught.value.last_seq == 3
    assert len(await contents(stream)) == 3


@pytest.mark.finding(31)
async def test_other_expectations_are_refused_by_type(js: JetStream, stream_name: str) -> None:
    await make(js, stream_name)
    subject = f"{stream_name}.a"

    with pytest.raises(WrongStreamError):
        await js.publish(subject, b"x", expect=Expect(stream="other"))
    with pytest.raises(WrongLastMessageIdError):
        await js.publish(subject, b"x", expect=Expect(last_msg_id="other"))


async def test_expectations_that_hold_are_taken(js: JetStream, stream_name: str) -> None:
    stream = await make(js, stream_name)
    subject = f"{stream_name}.a"

    await js.publish(subject, b"1", msg_id="id", expect=Expect(last_seq=0))
    held = Expect(stream=stream_name, last_seq=1, last_subject_seq=1, last_msg_id="id")
    await js.publish(subject, b"2", expect=held)

    assert await contents(stream) == [b"1", b"2"]


@pytest.mark.proves("1b", "expect stream")
async def test_stream_refuses_what_another_stream_captures(js: JetStream, stream_name: str) -> None:
    stream = await make(js, stream_name)
    await make(js, f"{stream_name}_other")

    with pytest.raises(WrongStreamError):
        await stream.publish(f"{stream_name}_other.a", b"x")


async def test_subject_without_a_stream_fails_with_a_hint(js: JetStream, stream_name: str) -> None:
    with pytest.raises(NoRespondersError) as caught:
        await js.publish(f"{stream_name}.a", b"x")

    assert "streams.ensure" in caught.value.hint


async def test_pipelined_message_without_a_stream_fails(js: JetStream, stream_name: str) -> None:
    async with js.publisher() as publisher:
        future = await publisher.send(f"{stream_name}.a", b"x")
        with pytest.raises(NoRespondersError) as caught:
            await future

    assert "streams.ensure" in caught.value.hint


async def test_too_large_payload_is_refused_before_sending(js: JetStream, stream_name: str) -> None:
    stream = await make(js, stream_name)
    subject = f"{stream_name}.a"
    too_large = bytes(MAX_PAYLOAD_BYTES + 1)

    with pytest.raises(PayloadTooLargeError):
        await js.publish(subject, too_large)
    async with js.publisher() as publisher:
        with pytest.raises(PayloadTooLargeError):
            await publisher.send(subject, too_large)

    assert (await js.publish(subject, too_large[1:])).sequence == 1
    assert (await stream.info()).state.messages == 1


@pytest.mark.parametrize("headers", [{"A": "x\r\nB: y"}, {"A": "x\n"}, {"A\r": "x"}, {"A:B": "x"}])
async def test_header_that_breaks_the_wire_is_refused(
    js: JetStream, stream_name: str, headers: dict[str, str]
) -> None:
    stream = await make(js, stream_name)

    with pytest.raises(HeaderError):
        await js.publish(f"{stream_name}.a", b"x", headers=headers)
    async with js.publisher() as publisher:
        with pytest.raises(HeaderError):
            await publisher.send(f"{stream_name}.a", b"x", headers=headers)

    assert (await stream.info()).state.last_seq == 0


@pytest.mark.parametrize("tail", ["a b", "a\r\nPUB x 0", "", "a..b", "*", ">", "a." + "b" * 4_000])
async def test_illegal_subject_is_refused(js: JetStream, stream_name: str, tail: str) -> None:
    await make(js, stream_name)

    with pytest.raises(SubjectError):
        await js.publish(f"{stream_name}.{tail}", b"x")
    async with js.publisher() as publisher:
        with pytest.raises(SubjectError):
            await publisher.send(f"{stream_name}.{tail}", b"x")

    assert js.is_connected


@pytest.mark.smoke
@pytest.mark.proves("1b", "async, max pending, stall wait, ack timeout, handlers")
async def test_publisher_keeps_the_order_and_its_window(js: JetStream, stream_name: str) -> None:
    stream = await make(js, stream_name)
    async with js.publisher(max_pending=7) as publisher:
        futures: list[asyncio.Future[PubAck]] = []
        for number in range(1_000):
            futures.append(await publisher.send(f"{stream_name}.a", payload(number)))
            assert publisher.pending_count <= 7

    assert publisher.pending_count == 0
    assert [(await future).sequence for future in futures] == list(range(1, 1_001))
    assert await contents(stream) == [payload(number) for number in range(1_000)]


async def test_many_tasks_share_one_publisher(js: JetStream, stream_name: str) -> None:
    """All of them wait for room in the window, and all of them get it."""
    stream = await make(js, stream_name)
    async with js.publisher(max_pending=2) as publisher:

        async def send(worker: int) -> None:
            for number in range(50):
                await publisher.send(f"{stream_name}.{worker}", payload(number))

        async with asyncio.timeout(20):
            await asyncio.gather(*map(send, range(10)))

    for worker in range(10):
        found = [m.data async for m in stream.read(filters=[f"{stream_name}.{worker}"])]
        assert found == [payload(number) for number in range(50)]


async def test_task_that_stops_waiting_for_room_leaves_the_others(
    fresh_server: NatsServer,
) -> None:
    async with connect(fresh_server.url) as js:
        await make(js, "S")
        async with js.publisher(max_pending=1, ack_timeout=60) as publisher:
            fresh_server.pause()
            await publisher.send("S.a", b"1")
            waiting = [asyncio.ensure_future(publisher.send("S.a", b"x")) for _ in range(2)]
            await asyncio.wait(waiting, timeout=0.05)
            waiting[0].cancel()
            fresh_server.resume()
            async with asyncio.timeout(30):
                ack = await (await waiting[1])

    assert ack.sequence == 2
    assert waiting[0].cancelled()


async def test_leaving_raises_the_first_failure_that_nobody_looked_at(
    js: JetStream, stream_name: str
) -> None:
    await make(js, stream_name)

    async def publish_all() -> None:
        async with js.publisher() as publisher:
            await publisher.send(f"{stream_name}.a", b"1")
            seen = await publisher.send("nobody.listens.here", b"2")
            assert isinstance((await asyncio.wait([seen]))[0].pop().exception(), NoRespondersError)
            await publisher.send(f"{stream_name}.a", b"3", expect=Expect(last_seq=77))
            await publisher.send(f"{stream_name}.a", b"4", expect=Expect(last_msg_id="no"))

    with pytest.raises(WrongLastSequenceError) as caught:
        await publish_all()

    assert caught.value.last_seq == 1


async def test_error_of_the_body_is_not_replaced(js: JetStream, stream_name: str) -> None:
    await make(js, stream_name)

    async def publish_all() -> None:
        async with js.publisher() as publisher:
            await publisher.send("nobody.listens.here", b"3")
            raise KeyError

    with pytest.raises(KeyError):
        await publish_all()


async def test_chain_of_expectations_goes_through_pipelined(
    js: JetStream, stream_name: str
) -> None:
    stream = await make(js, stream_name)

    async with js.publisher() as publisher:
        for number in range(5_000):
            expect = Expect(last_seq=number)
            await publisher.send(f"{stream_name}.a", payload(number), expect=expect)

    assert await contents(stream) == [payload(number) for number in range(5_000)]


@pytest.mark.proves("1b", "async, max pending, stall wait, ack timeout, handlers")
@pytest.mark.finding(5)
async def test_message_without_an_ack_in_time_fails(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url) as js:
        await make(js, "S")
        async with js.publisher(ack_timeout=0.2) as publisher:
            fresh_server.pause()
            future = await publisher.send("S.a", b"x")
            with pytest.raises(RequestTimeoutError):
                await future
            fresh_server.resume()


async def test_lost_connection_settles_every_future(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url) as js:
        await make(js, "S")
        futures: list[asyncio.Future[PubAck]] = []

        async def publish_all() -> None:
            async with js.publisher() as publisher:
                fresh_server.pause()
                for number in range(500):
                    futures.append(await publisher.send("S.a", payload(number)))  # noqa: PERF401
                await asyncio.to_thread(fresh_server.kill)

        with pytest.raises(ConnectionLostError):
            await publish_all()

        for future in futures:
            error = future.exception()
            assert isinstance(error, ConnectionLostError)
            assert error.message.startswith("publish to S.a: connection lost")


async def test_lost_connection_names_the_subject_and_the_way_on(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url) as js:
        await make(js, "S")
        fresh_server.pause()
        publishing = asyncio.ensure_future(js.publish("S.a", b"x", timeout=60))
        await asyncio.sleep(0)  # It is written.
        await asyncio.to_thread(fresh_server.kill)
        with pytest.raises(ConnectionLostError) as caught:
            await publishing

    assert caught.value.message == (
        "publish to S.a: connection lost before the ack came; the message may be stored or not"
    )
    assert "same msg_id" in caught.value.hint
    assert caught.value.retryable


async def test_acknowledged_messages_outlive_a_crash(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url) as js:
        stream = await make(js, "S")
        futures: list[asyncio.Future[PubAck]] = []

        async def publish_all() -> None:
            async with js.publisher(max_pending=256) as publisher:
                for number in range(20_000):
                    futures.append(await publisher.send("S.a", payload(number)))
                    if number == 3_000:
                        fresh_server.kill()

        with pytest.raises(NatsStreamError):
            await publish_all()
        fresh_server.start()

        acks = [None if each.exception() else each.result() for each in futures]
        stored = {each.sequence: each.data async for each in stream.read()}
        told = {ack.sequence: payload(number) for number, ack in enumerate(acks) if ack}
        assert len(told) > 2_000
        assert told.items() <= stored.items()


async def test_chain_goes_on_from_the_last_sequence_after_a_crash(
    fresh_server: NatsServer,
) -> None:
    """A publisher that asks the stream how far it came stores each message exactly once."""
    async with connect(fresh_server.url) as js:
        stream = await make(js, "S")
        crashes = 0
        at = 0
        for _ in range(10):
            try:
                async with js.publisher() as publisher:
                    for number in range(at, 5_000):
                        expect = Expect(last_seq=number)
                        await publisher.send("S.a", payload(number), expect=expect)
                        if number == 2_500 and not crashes:
                            crashes = 1
                            await asyncio.to_thread(fresh_server.kill)
                            fresh_server.start()
                break
            except (ConnectionLostError, RequestTimeoutError, WrongLastSequenceError):
                at = (await stream.info()).state.last_seq

        assert await contents(stream) == [payload(number) for number in range(5_000)]
        assert crashes == 1


async def test_message_that_was_never_sent_says_so(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url, request_timeout=1) as js:
        bucket = await js.kv.create("B")
        fresh_server.kill()
        await left(js)
        puts = [
            js.publish("S.a", b"x"),
            js.publish("S.a", b"x", ttl=60),  # It asks for the servers' level first.
            js.publish("S.a", b"x", expect=Expect(last_msg_id="a")),
            bucket.put("k", b"x"),
        ]
        for error in await asyncio.gather(*puts, return_exceptions=True):
            assert isinstance(error, ConnectionLostError)
            waited = re.search(r"no reconnect within (\S+) s; it was not sent$", error.message)
            assert waited is not None
            assert float(waited[1]) == pytest.approx(1, abs=0.5)  # A busy machine took longer.
            assert "Connect call failed" in error.detail
            assert error.is_unsent
            assert "send it again" in error.hint
            assert error.retryable


@pytest.mark.sampled_variants
@pytest.mark.parametrize(("retry_for", "limit_s"), [(None, 1.0), (0.5, 1.0), (1.6, 1.6)])
async def test_message_of_a_publisher_that_was_never_sent_says_so_in_time(
    fresh_server: NatsServer, retry_for: float | None, limit_s: float
) -> None:
    async with connect(fresh_server.url) as js:
        await js.streams.create("S", subjects=["S.*"])
        async with js.publisher(ack_timeout=1, retry_for=retry_for) as publisher:
            await publisher.send("S.a")
            await publisher.flush()
            fresh_server.kill()
            await left(js)
            began = time.monotonic()
            future = await publisher.send("S.b")
            with pytest.raises(ConnectionLostError, match=r"publish to S\.b: .*; it was not sent"):
                await future
            assert limit_s <= time.monotonic() - began < limit_s + 0.5
