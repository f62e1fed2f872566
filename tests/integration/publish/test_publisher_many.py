"""The publisher's limits: bytes, many at once, cancelling, and what is not sent any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import Expect, NatsStreamError, PublishMessage, blocking, connect
from natsstream.errors import (
    ConfigError,
    ConnectionClosedError,
    ConnectionLostError,
    PayloadTooLargeError,
    PermissionDeniedError,
    SubjectError,
    WrongLastSequenceError,
)
from natsstream.testing import NatsServer
from tests.conftest import MAX_PAYLOAD_BYTES
from tests.support.streams import payload

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from natsstream import JetStream, PubAck

pytestmark = pytest.mark.asyncio

NO_CLOSED = """
accounts { A { jetstream: enabled, users: [
  { user: u, password: pw, permissions: { publish: { deny: "S.closed" } } }
] } }
"""
NO_INBOX = """
accounts { A { jetstream: enabled, users: [
  { user: all, password: pw }
  { user: deaf, password: pw, permissions: { publish: ">", subscribe: { deny: "_INBOX.*.*" } } }
] } }
"""


@pytest.mark.proves("1b", "async, max pending, stall wait, ack timeout, handlers")
async def test_window_in_bytes_is_never_exceeded(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name], storage="memory")
    most = 0

    async with js.publisher(max_pending_bytes=100_000) as publisher:
        for _ in range(200):
            await publisher.send(stream_name, bytes(9_000))
            most = max(most, publisher.pending_bytes)
        assert publisher.pending_count <= 11

    assert 50_000 < most <= 100_000
    assert publisher.pending_bytes == 0
    assert (await stream.info()).state.messages == 200


async def test_message_counts_as_many_bytes_before_it_enters_as_in_the_window(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name], storage="memory")
    most = 0

    async with js.publisher(max_pending_bytes=10_000) as publisher:
        # Where the two differ by a byte, one of these sizes goes beyond the limit.
        for size in range(900, 1_000):
            for _ in range(12):
                await publisher.send(stream_name, bytes(size))
                most = max(most, publisher.pending_bytes)
            await publisher.flush()

    assert most <= 10_000


async def test_message_that_is_larger_than_the_window_goes_alone(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name], storage="memory")

    async with js.publisher(max_pending_bytes=10) as publisher:
        futures = [await publisher.send(stream_name, bytes(5_000)) for _ in range(5)]
        assert [future.done() for future in futures] == [True] * 4 + [False]

    assert [future.result().sequence for future in futures] == [1, 2, 3, 4, 5]


async def test_refused_message_leaves_nothing_in_the_window(
    js: JetStream, stream_name: str
) -> None:
    """nats-py's window loses a place, and waiting for its end hangs (finding 5)."""
    await js.streams.create(stream_name, subjects=[stream_name])

    async with js.publisher(max_pending=1) as publisher:
        for _ in range(3):
            with pytest.raises(PayloadTooLargeError):
                await publisher.send(stream_name, bytes(MAX_PAYLOAD_BYTES + 1))
            with pytest.raises(SubjectError):
                await publisher.send(f"{stream_name}..", b"x")
            with pytest.raises(ConfigError):
                await publisher.send(stream_name, "text")  # pyright: ignore[reportArgumentType] - on purpose.
        assert publisher.pending_count == 0
        await publisher.send(stream_name, b"x")


async def test_cancelling_a_send_is_not_swallowed(fresh_server: NatsServer) -> None:
    """nats-py turns it into another error (finding 6)."""
    async with connect(fresh_server.url, ping_interval=60) as js:
        stream = await js.streams.create("S", subjects=["s"])
        async with js.publisher(max_pending=1, ack_timeout=30) as publisher:
            fresh_server.pause()
            await publisher.send("s", b"1")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await publisher.send("s", b"2")
            flushing = asyncio.ensure_future(publisher.flush())
            await asyncio.wait([flushing], timeout=0.05)
            flushing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await flushing
            fresh_server.resume()

        assert [message.data async for message in stream.read()] == [b"1"]


async def test_cancelled_future_gives_its_place_back(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name])

    async with js.publisher(max_pending=2) as publisher:
        for _ in range(10):
            (await publisher.send(stream_name, b"x")).cancel()

    assert (await stream.info()).state.messages == 10
    assert publisher.pending_count == 0


@pytest.mark.parametrize("leave", ["error", "deadline", "cancel"])
async def test_what_waits_for_a_connection_is_not_sent_after_it_has_failed(
    fresh_server: NatsServer, leave: str
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await js.streams.create("S", subjects=["s"])
        futures: list[asyncio.Future[PubAck]] = []
        sent = asyncio.Event()

        async def publish() -> None:
            async with js.publisher(ack_timeout=0.2 if leave == "deadline" else 60) as publisher:
                await asyncio.to_thread(fresh_server.kill)
                while js.is_connected:
                    await asyncio.sleep(0)
                futures.extend([await publisher.send("s", payload(n)) for n in range(10)])
                sent.set()
                if leave == "error":
                    raise KeyError
                await asyncio.wait(futures)

        task = asyncio.ensure_future(publish())
        # On a machine that stands still the deadline may come before all are sent.
        waiting = asyncio.ensure_future(sent.wait())
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if leave == "cancel":
            task.cancel()
        expected = {"error": KeyError, "deadline": ConnectionLostError}
        with pytest.raises(expected.get(leave, asyncio.CancelledError)):
            await task
        assert all(isinstance(future.exception(), NatsStreamError) for future in futures)
        fresh_server.start()

        await js.publish("s", b"only", timeout=30)
        assert [message.data async for message in stream.read()] == [b"only"]


async def test_what_is_sent_without_a_connection_goes_to_the_next_one(
    fresh_server: NatsServer,
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await js.streams.create("S", subjects=["s"])
        async with js.publisher(ack_timeout=30) as publisher:
            await asyncio.to_thread(fresh_server.kill)
            while js.is_connected:
                await asyncio.sleep(0)
            futures = [await publisher.send("s", payload(n)) for n in range(100)]
            fresh_server.start()
            async with asyncio.timeout(20):
                acks = await asyncio.gather(*futures)

        assert [ack.sequence for ack in acks] == list(range(1, 101))
        assert (await stream.info()).state.messages == 100


@pytest.mark.parametrize("retry_for", [None, 30])
async def test_closed_connection_ends_the_publisher(
    fresh_server: NatsServer, retry_for: float | None
) -> None:
    async with connect(fresh_server.url, ping_interval=60) as js:
        await js.streams.create("S", subjects=["s"])
        async with js.publisher(ack_timeout=60, retry_for=retry_for) as publisher:
            await (await publisher.send("s", b"x"))
            fresh_server.pause()
            future = await publisher.send("s", b"y")
            async with asyncio.timeout(20):
                await js.close()
                await asyncio.wait([future])
                assert isinstance(future.exception(), ConnectionClosedError | ConnectionLostError)
                with pytest.raises(ConnectionClosedError):
                    await publisher.send("s", b"z")
        fresh_server.resume()


async def send_many(js: JetStream, retry_for: float | None) -> None:
    """Publish more messages than one write takes."""
    async with js.publisher(ack_timeout=30, retry_for=retry_for) as publisher:
        for number in range(1000):
            await publisher.send("s", b"%d" % number)


async def test_user_who_may_not_hear_acks_is_told_before_anything_is_stored() -> None:
    with NatsServer(config=NO_INBOX) as server:
        async with connect(server.url, user="all", password="pw") as js:  # noqa: S106 - of the test.
            stream = await js.streams.create("S", subjects=["s"])

            for attempt in range(5):
                async with (
                    asyncio.timeout(20),
                    connect(server.url, user="deaf", password="pw") as deaf,  # noqa: S106
                ):
                    if attempt % 2:
                        with pytest.raises(PermissionDeniedError, match="_INBOX"):
                            await deaf.publish("s", b"x")
                    for retry_for in (None, 5):
                        with pytest.raises(PermissionDeniedError, match="_INBOX"):
                            await send_many(deaf, retry_for)

            assert (await stream.info()).state.messages == 0


async def test_many_give_their_acks_in_order(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])

    async with js.publisher(max_pending=50) as publisher:
        plain = await publisher.send_many(
            (f"{stream_name}.a", payload(number)) for number in range(500)
        )
        last = await publisher.send_many(
            [
                PublishMessage(f"{stream_name}.b", b"x", headers={"A": "b"}, msg_id="one"),
                PublishMessage(f"{stream_name}.b", b"x", msg_id="one"),
                (f"{stream_name}.c", bytearray(b"y")),
            ]
        )
        assert await publisher.send_many([]) == []

    assert [ack.sequence for ack in plain] == list(range(1, 501))
    assert [(ack.sequence, ack.duplicate) for ack in last] == [
        (501, False),
        (501, True),
        (502, False),
    ]
    assert (await stream.info()).state.messages == 502


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (PublishMessage("{}", b"x", expect=Expect(last_seq=99)), WrongLastSequenceError),
        (PublishMessage("{}..", b"x"), SubjectError),
    ],
)
async def test_first_failure_of_many_is_raised_with_its_index(
    js: JetStream, stream_name: str, bad: PublishMessage, error: type[NatsStreamError]
) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name])
    wrong = PublishMessage(bad.subject.format(stream_name), bad.data, expect=bad.expect)
    messages = [PublishMessage(stream_name, payload(number)) for number in range(30)]

    async with js.publisher(max_pending=5) as publisher:
        with pytest.raises(error) as caught:
            await publisher.send_many([*messages[:10], wrong, *messages[10:]])
        assert publisher.pending_count == 0
        await publisher.send(stream_name, b"next")

    assert caught.value.index == 10
    found = [message.data for message in [m async for m in stream.read()]]
    assert found[:10] == [payload(number) for number in range(10)]
    assert found[-1] == b"next"
    assert len(found) < 20


@pytest.mark.parametrize("way", ["send", "headers", "many"])
async def test_send_that_raises_an_earlier_error_says_that_nothing_was_sent(
    js: JetStream, stream_name: str, way: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.*"], max_msg_size=1_000)
    async with js.publisher() as publisher:
        refused = await publisher.send(f"{stream_name}.large", bytes(5_000))
        await asyncio.wait([refused])
        small = f"{stream_name}.small"
        sending: Awaitable[object] = {
            "send": lambda: publisher.send(small),
            "headers": lambda: publisher.send(small, headers={"a": "b"}),
            "many": lambda: publisher.send_many([(small, b"")]),
        }[way]()
        with pytest.raises(NatsStreamError, match=r"publish to .*\.large: ") as caught:
            await sending
        assert "an earlier message; this call has sent nothing" in caught.value.detail
        assert "this call" not in str(refused.exception())
        await publisher.send(f"{stream_name}.small", b"")
    assert (await stream.info()).state.messages == 1


async def test_send_after_a_denied_one_raises_the_denial() -> None:
    """Its error is copied, and has attributes of its own."""
    with NatsServer(config=NO_CLOSED) as server:
        async with connect(server.url, user="u", password="pw") as js:  # noqa: S106 - a test's.
            await js.streams.create("S", subjects=["S.*"])
            async with js.publisher() as publisher:
                denied = await publisher.send("S.closed")
                await asyncio.wait([denied])
                with pytest.raises(PermissionDeniedError) as caught:
                    await publisher.send("S.open")
                await publisher.send("S.open")
    assert (caught.value.subject, caught.value.index) == ("S.closed", None)
    assert caught.value.detail.startswith("it is the error of an earlier message")


async def test_blocking_door_sends_many_in_one_call(server: NatsServer, stream_name: str) -> None:
    def publish() -> list[int]:
        with blocking.connect(server.url) as js:
            js.streams.create(stream_name, subjects=[stream_name])
            with js.publisher() as publisher:
                acks = publisher.send_many((stream_name, payload(n)) for n in range(3_000))
            return [ack.sequence for ack in acks]

    assert await asyncio.to_thread(publish) == list(range(1, 3_001))
