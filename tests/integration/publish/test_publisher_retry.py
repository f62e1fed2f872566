"""Publishing with retries: crashes, pauses and leader changes lose and double nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TypedDict

import pytest

from natsstream import ConfigError, Expect, NatsStreamError, connect
from natsstream.errors import (
    MessageTooLargeError,
    NoRespondersError,
    RequestTimeoutError,
    TransportError,
)
from natsstream.testing import NatsCluster, NatsServer
from tests.support.clusters import connect_to, step_down
from tests.support.streams import payload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream import JetStream, PubAck, Publisher, Stream

pytestmark = pytest.mark.asyncio


class Options(TypedDict, total=False):
    """Options of a publisher."""

    retry_for: float
    max_pending: int


RETRY = Options(retry_for=40, max_pending=256)
ORDERED = Options(retry_for=40, max_pending=1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[NatsCluster]:
    """Three servers that all tests of this file share."""
    with NatsCluster() as made:
        yield made


async def numbers(stream: Stream, subject: str) -> list[int]:
    """Return the numbers of a subject's messages, as they stand in the stream."""
    return [int(message.data.split()[0]) async for message in stream.read(filters=[subject])]


async def test_retried_messages_go_with_ids_of_their_own(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name])

    async with js.publisher(retry_for=30) as publisher:
        for number in range(3):
            await publisher.send(stream_name, payload(number))
        await publisher.send(stream_name, payload(3), msg_id="mine")
        again = await (await publisher.send(stream_name, payload(4), msg_id="mine"))

    ids = [message.headers["Nats-Msg-Id"] async for message in stream.read()]
    assert len(set(ids)) == 4
    assert ids[3] == "mine"
    assert (again.duplicate, again.sequence) == (True, 4)


@pytest.mark.sampled_variants
@pytest.mark.proves("1b", "async, max pending, stall wait, ack timeout, handlers")
@pytest.mark.parametrize("options", [RETRY, ORDERED], ids=["retry", "ordered"])
async def test_crash_under_load_loses_and_doubles_nothing(
    fresh_server: NatsServer, options: Options
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await js.streams.create("S", subjects=["s"])
        futures: list[asyncio.Future[PubAck]] = []
        async with js.publisher(ack_timeout=2, **options) as publisher:
            for number in range(6_000):
                futures.append(await publisher.send("s", payload(number)))
                if number in (1_500, 4_000):
                    await asyncio.to_thread(fresh_server.kill)
                    await asyncio.to_thread(fresh_server.start)

        found = await numbers(stream, "s")
        assert sorted(found) == list(range(6_000))
        if options is ORDERED:
            assert found == list(range(6_000))
        acks = [future.result().sequence for future in futures]
        assert [found[sequence - 1] for sequence in acks] == list(range(6_000))


@pytest.mark.parametrize("options", [RETRY, ORDERED], ids=["retry", "ordered"])
async def test_overdue_ack_sends_again_and_stores_once(
    fresh_server: NatsServer, options: Options
) -> None:
    """The server sleeps for longer than acks are waited for."""
    async with connect(fresh_server.url, ping_interval=60) as js:
        stream = await js.streams.create("S", subjects=["s"])
        async with js.publisher(ack_timeout=0.2, **options) as publisher:
            await (await publisher.send("s", payload(0)))
            fresh_server.pause()
            sending = asyncio.create_task(send_numbers(publisher, range(1, 200)))
            await asyncio.wait([sending], timeout=1)
            fresh_server.resume()
            await sending

        assert await numbers(stream, "s") == list(range(200))


async def send_numbers(publisher: Publisher, numbers: range) -> None:
    """Send messages, and wait for no ack but for room."""
    for number in numbers:
        await publisher.send("s", payload(number))


async def store_one(publisher: Publisher) -> None:
    """Send until a message is stored: one may take longer than this publisher waits."""
    while True:
        with suppress(RequestTimeoutError):
            await (await publisher.send("s", b"x"))
            return


async def test_message_fails_when_its_time_for_retries_is_over(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url, ping_interval=60) as js:
        await js.streams.create("S", subjects=["s"])
        async with js.publisher(ack_timeout=0.2, retry_for=0.5) as publisher:
            await store_one(publisher)
            fresh_server.pause()
            future = await publisher.send("s", b"y")
            async with asyncio.timeout(30):
                with pytest.raises(RequestTimeoutError):
                    await future
            fresh_server.resume()


async def test_message_fails_in_time_while_no_server_is_there(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url) as js:
        await js.streams.create("S", subjects=["s"])

        async with js.publisher(ack_timeout=0.3, retry_for=0.6) as publisher:
            await store_one(publisher)
            fresh_server.pause()
            futures = [await publisher.send("s", b"y")]
            await asyncio.to_thread(fresh_server.kill)
            futures.append(await publisher.send("s", b"z"))
            async with asyncio.timeout(30):
                await asyncio.wait(futures)
            assert all(isinstance(future.exception(), TransportError) for future in futures)


async def test_answers_that_nobody_asked_for_change_nothing(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name])

    async with js.publisher(retry_for=30) as publisher:
        await (await publisher.send(stream_name, b"1"))
        inbox = publisher._prefix  # pyright: ignore[reportPrivateUsage] - what a hostile peer may hear.
        for token in ("zz", "1", "1-1", "-", "1-zz", "ffffffffffffffffffff-1", "7", "7-1"):
            await js.core.publish(f"{inbox}{token}", b"pong")
        ack = await (await publisher.send(stream_name, b"2"))

    assert ack.sequence == 2
    assert js.is_connected


async def test_order_holds_beside_other_writers(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    done = asyncio.Event()
    others = 0

    async def disturb() -> None:
        nonlocal others
        async with js.publisher(max_pending=3, ack_timeout=30) as publisher:
            while not done.is_set():
                await publisher.send(f"{stream_name}.other", b"x")
                others += 1

    disturbing = asyncio.create_task(disturb())
    try:
        async with js.publisher(**ORDERED) as publisher:
            for number in range(2_000):
                await publisher.send(f"{stream_name}.mine", payload(number))
                while others < number // 50:  # Whoever is faster, they go side by side.
                    await asyncio.sleep(0)
    finally:
        done.set()
        await disturbing

    assert await numbers(stream, f"{stream_name}.mine") == list(range(2_000))
    assert (await stream.info()).state.messages > 2_020


async def test_message_that_is_refused_for_good_fails_alone(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name], max_msg_size=300)

    async with js.publisher(**ORDERED) as publisher:
        too_large = {10, 70}
        for number in range(100):
            size = 5_000 if number in too_large else 0
            future = await publisher.send(stream_name, payload(number, size))
            if number in too_large:
                with pytest.raises(MessageTooLargeError):
                    await future

    assert await numbers(stream, stream_name) == [n for n in range(100) if n not in too_large]


async def test_stream_that_forgets_ids_too_early_is_refused(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name], duplicate_window=5)

    async with js.publisher(retry_for=5) as publisher:
        with pytest.raises(ConfigError, match="5 s"):
            await publisher.send(stream_name, b"x")
    async with js.publisher(retry_for=4.9, stream=stream_name) as publisher:
        await publisher.send(stream_name, b"x")


async def test_what_can_not_be_retried_is_refused(js: JetStream, stream_name: str) -> None:
    async with js.publisher(retry_for=5) as publisher:
        with pytest.raises(NoRespondersError):
            await publisher.send(stream_name, b"x")
        await js.streams.create(stream_name, subjects=[stream_name])
        for expect in (Expect(last_seq=0), Expect(last_subject_seq=0), Expect(last_msg_id="a")):
            with pytest.raises(ConfigError, match="second copy"):
                await publisher.send(stream_name, b"x", expect=expect)
        await publisher.send(stream_name, b"x", expect=Expect(stream=stream_name))


async def test_subject_that_no_stream_captures_is_told_at_once(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.a"])

    async with js.publisher(retry_for=60) as publisher:
        await publisher.send(f"{stream_name}.a", b"1")
        wrong = await publisher.send(f"{stream_name}.b", b"2")
        async with asyncio.timeout(5):
            with pytest.raises(NoRespondersError, match=f"{stream_name}.b: no stream captures"):
                await wrong
        await publisher.send(f"{stream_name}.a", b"3")

    assert (await stream.info()).state.messages == 2


@pytest.mark.timeout(120)
async def test_subject_that_an_account_maps_outlives_its_leader(stream_name: str) -> None:
    """As far as the servers tell, no stream captures what an account maps to a captured subject."""
    config = f'mappings = {{ "{stream_name}.out": "{stream_name}.in" }}'
    with NatsCluster(config=config) as cluster:
        async with connect_to(cluster) as js:
            stream = await js.streams.create(
                stream_name, subjects=[f"{stream_name}.in"], replicas=3
            )
            async with js.publisher(ack_timeout=1, stream=stream_name, retry_for=60) as publisher:
                for number in range(2_000):
                    await publisher.send(f"{stream_name}.out", payload(number))
                    if number % 500 == 250:
                        await step_down(js, cluster, stream_name)
            found = await numbers(stream, f"{stream_name}.in")
            assert sorted(found) == list(range(2_000))


@pytest.mark.finding(30)
@pytest.mark.sampled_variants
@pytest.mark.timeout(120)
@pytest.mark.parametrize("options", [RETRY, ORDERED], ids=["retry", "ordered"])
async def test_leader_changes_under_load_lose_and_double_nothing(
    cluster: NatsCluster, stream_name: str, options: Options
) -> None:
    """nats-py fails messages there (finding 30)."""
    async with connect_to(cluster) as js:
        stream = await js.streams.create(stream_name, subjects=[stream_name], replicas=3)
        count = 600 if options is ORDERED else 8_000
        async with js.publisher(ack_timeout=1, **options) as publisher:
            for number in range(count):
                await publisher.send(stream_name, payload(number))
                if number % (count // 4) == count // 8:
                    await step_down(js, cluster, stream_name)

        found = await numbers(stream, stream_name)
        assert sorted(found) == list(range(count))
        if options is not RETRY:
            assert found == list(range(count))


@pytest.mark.finding(5)
@pytest.mark.timeout(120)
async def test_every_future_of_a_plain_publisher_settles_when_its_server_dies(
    cluster: NatsCluster, stream_name: str
) -> None:
    """nats-py leaves some for ever (finding 5)."""
    async with connect_to(cluster) as js:
        stream = await js.streams.create(stream_name, subjects=[stream_name], replicas=3)
        connected = next(node for node in cluster.servers if node.client_url == js.url)
        futures: list[asyncio.Future[PubAck]] = []

        async def publish() -> None:
            async with js.publisher(max_pending=64, ack_timeout=5) as publisher:
                for number in range(3_000):
                    futures.append(await publisher.send(stream_name, payload(number)))
                    if number == 1_000:
                        await asyncio.to_thread(connected.kill)

        try:
            with suppress(NatsStreamError):
                await publish()
            assert all(future.done() for future in futures)
        finally:
            await asyncio.to_thread(connected.start)
            await asyncio.to_thread(cluster.wait_until_ready)
            await asyncio.to_thread(cluster.wait_for_leader, stream_name)
        acked = {n for n, future in enumerate(futures) if future.exception() is None}
        found = await numbers(stream, stream_name)
        assert acked <= set(found)
        assert len(found) == len(set(found))


@pytest.mark.parametrize("retention", ["limits", "workqueue"])
async def test_messages_whose_ids_a_server_forgets_are_told_when_they_are_sent_again(
    fresh_server: NatsServer,
    caplog: pytest.LogCaptureFixture,
    retention: Literal["limits", "workqueue"],
) -> None:
    async with connect(fresh_server.url) as js:
        await js.streams.create("S", subjects=["s"], retention=retention)
        async with js.publisher(retry_for=60) as publisher:
            await (await publisher.send("s", b"x"))
            fresh_server.pause()
            future = await publisher.send("s", b"y")
            await asyncio.sleep(0.1)
            fresh_server.kill()
            await asyncio.to_thread(fresh_server.start)
            assert (await future).sequence == 2

    told = [each for each in caplog.messages if each.startswith("connection lost with 1 message")]
    assert len(told) == 1
    assert told[0].endswith("sent again") == (retention == "limits")
    assert ("forgets their ids" in told[0]) == (retention == "workqueue")
