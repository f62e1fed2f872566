"""Integration tests of ordered consumers under faults: servers, consumers and streams that go away.

A stream of 40 MB is more than the 16 MiB that a reader may have under way, so that what is done in
the middle meets messages that the server still has.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import HeartbeatsMissed, Recreated, connect
from natsstream.errors import (
    ConnectionLostError,
    NatsStreamError,
    StreamNotFoundError,
    StreamRecreatedError,
)
from natsstream.read import session
from natsstream.testing import FaultProxy, NatsServer
from tests.support.eventually import eventually, eventually_async
from tests.support.loops import turn
from tests.support.ordered import delete_consumers, publish, take_sequences
from tests.support.patience import set_patience
from tests.support.raw_nats import request
from tests.support.streams import consumer_count, delete_message, fill, purge

if TYPE_CHECKING:
    from natsstream import JetStream, OrderedConsumer, ReadEvent, Stream

pytestmark = pytest.mark.asyncio

COUNT = 40_000
SIZE = 1_024
WAITS_MAX = 200


def restart(server: NatsServer) -> None:
    server.restart()


def crash(server: NatsServer) -> None:
    server.kill()
    server.start()


async def store_across_breaks(js: JetStream, subject: str, last: int) -> None:
    """Publish until the stream has come to a sequence, whatever the server does meanwhile."""
    sequence = 0
    while sequence < last:
        try:
            sequence = (await js.publish(subject, b"x")).sequence
        except NatsStreamError as error:
            if not error.retryable:
                raise


async def events_of(tail: OrderedConsumer, count: int) -> list[ReadEvent]:
    """Return the first events of a consumer."""
    async with aclosing(tail.events()) as events:
        return [await anext(events) for _ in range(count)]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("fault", [restart, crash])
async def test_tail_goes_on_in_the_middle_of_what_is_stored(
    fresh_server: NatsServer, fault: Callable[[NatsServer], None]
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await fill(js, "S", COUNT, size=SIZE)
        async with stream.ordered() as tail:
            found = await take_sequences(tail, 1_000)
            await asyncio.to_thread(fault, fresh_server)
            found += [message.sequence async for message in tail.initial()]

        assert found == list(range(1, COUNT + 1))
        assert tail.report.resumes >= 1


async def test_tail_goes_on_while_the_server_crashes_under_a_publisher(
    fresh_server: NatsServer,
) -> None:
    """The server is killed three times, each time when more has arrived."""
    last = 3_000
    async with connect(fresh_server.url) as js, connect(fresh_server.url) as other:
        stream = await js.streams.ensure("S")
        async with stream.ordered() as tail:
            publisher = asyncio.ensure_future(store_across_breaks(other, "S", last))
            found: list[int] = []
            for kills in range(1, 4):
                found += await take_sequences(tail, 300)
                await asyncio.to_thread(crash, fresh_server)
                # What had arrived before comes first.
                while tail.report.resumes < kills:
                    found += await take_sequences(tail, 1)
            found += await take_sequences(tail, last - len(found))
            await publisher

    assert found == list(range(1, last + 1))


@pytest.mark.proves("1c", "ordered: recreate on gap / hb / delete")
@pytest.mark.finding(29, 34)
async def test_consumer_that_is_deleted_is_made_again_at_once(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silence would be noticed after a minute here: the server's word is what counts."""
    monkeypatch.setattr(session, "SILENCE_MAX_S", 60.0)
    stream = await fill(js, stream_name, 10)

    async with stream.ordered() as tail:
        found = await take_sequences(tail, 10)
        for number in range(5):
            await delete_consumers(js, stream_name)
            await publish(js, f"{stream_name}.0", b"new")
            found += await take_sequences(tail, 1)
            assert tail.report.resumes == number + 1
        events = await events_of(tail, 5)

    assert found == list(range(1, 16))
    assert tail.report.reasons == {"consumer_deleted": 5}
    assert [(event.next_seq, event.reason) for event in events if isinstance(event, Recreated)] == [
        (next_seq, "consumer_deleted") for next_seq in range(11, 16)
    ]


@pytest.mark.sampled_variants
@pytest.mark.finding(24)
async def test_consumer_that_is_deleted_while_the_reader_is_away_is_made_again(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, COUNT, size=SIZE)

    async with stream.ordered() as tail:
        found = await take_sequences(tail, 10)
        await delete_consumers(js, stream_name)
        found += [message.sequence async for message in tail.initial()]

    assert found == list(range(1, COUNT + 1))


@pytest.mark.parametrize("taken", [0, 1, 2])
async def test_last_of_each_subject_survives_a_deleted_consumer(
    js: JetStream, stream_name: str, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window holds two messages, so the consumer breaks in the middle of the list of three."""
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 2)
    stream = await fill(js, stream_name, 3)

    async with stream.ordered(deliver_policy="last_per_subject") as tail:
        found = await take_sequences(tail, taken)
        await delete_consumers(js, stream_name)
        await fill(js, stream_name, 6, start=3)
        found += await take_sequences(tail, 6)
        while found[-1] < 9:
            found += await take_sequences(tail, 1)

    # What was not delivered before the break has newer messages now.
    assert found == sorted(set(found))
    assert found[-6:] == [4, 5, 6, 7, 8, 9]
    assert found[:taken] == list(range(1, taken + 1))


@pytest.mark.sampled_variants
async def test_last_message_that_is_deleted_uncovers_the_one_before(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The consumer's list of last messages has a message that is gone when its turn comes."""
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 2)
    stream = await fill(js, stream_name, 3)
    await publish(js, f"{stream_name}.2", b"4")

    async with stream.ordered(deliver_policy="last_per_subject") as tail:
        await delete_message(js, stream_name, 4)
        found = [message.sequence async for message in tail.initial()]
        await publish(js, f"{stream_name}.0", b"5")
        found += await take_sequences(tail, 1)

    assert found == [1, 2, 3, 5]


@pytest.mark.proves("1c", "ordered: recreate on gap / hb / delete")
@pytest.mark.finding(29)
async def test_missed_heartbeats_make_another_consumer(
    fresh_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is frozen for longer than two heartbeats, here short ones."""
    monkeypatch.setattr(session, "HEARTBEAT_S", 0.5)
    monkeypatch.setattr(session, "SILENCE_MAX_S", 1.25)
    async with connect(fresh_server.url) as js:
        stream = await fill(js, "S", 10)
        async with stream.ordered() as tail:
            found = await take_sequences(tail, 10)
            waiting = asyncio.ensure_future(take_sequences(tail, 1))
            fresh_server.pause()
            (event,) = await events_of(tail, 1)
            fresh_server.resume()
            await publish(js, "S.0", b"new")
            found += await waiting

    assert isinstance(event, HeartbeatsMissed)
    assert found == list(range(1, 12))
    assert tail.report.reasons.keys() <= {"heartbeats", "connection", "no_answer"}


async def test_reader_with_little_patience_notices_missed_heartbeats(
    fresh_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its waits is far shorter than two heartbeats."""
    monkeypatch.setattr(session, "HEARTBEAT_S", 0.5)
    monkeypatch.setattr(session, "SILENCE_MAX_S", 1.25)
    waits = 0
    async with connect(fresh_server.url) as js:
        stream = await fill(js, "S", 10)
        async with stream.ordered() as tail:
            await take_sequences(tail, 10)
            events = asyncio.ensure_future(events_of(tail, 1))
            fresh_server.pause()
            while not events.done() and waits < WAITS_MAX:
                waits += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await anext(tail)
            fresh_server.resume()
            (event,) = await events

    assert isinstance(event, HeartbeatsMissed)
    assert waits > 1


async def test_reader_with_less_patience_than_a_round_trip_gets_its_messages_after_a_break(
    server: NatsServer, stream_name: str
) -> None:
    """Each wait is shorter than making a consumer takes, which must go on all the same."""
    waits, found = 0, list[int]()
    async with connect(server.url) as near:
        stream = await fill(near, stream_name, 10)
        with FaultProxy(server.port) as proxy:
            async with (
                connect(proxy.url) as js,
                (await js.streams.get(stream_name)).ordered() as tail,
            ):
                await take_sequences(tail, 10)
                proxy.delay(0.05)
                await delete_consumers(near, stream_name)
                await fill(near, stream_name, 5, start=10)
                while len(found) < 5 and waits < WAITS_MAX:
                    waits += 1
                    with suppress(TimeoutError):
                        async with asyncio.timeout(0.06):
                            found.append((await anext(tail)).sequence)
                proxy.heal()
        await eventually_async(lambda: has_consumers(stream, 0))

    assert found == [11, 12, 13, 14, 15]
    assert waits > len(found)
    assert tail.report.reasons["consumer_deleted"] == 1


async def test_reader_whose_process_stood_still_takes_what_came_meanwhile(
    server: NatsServer, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message lies in the socket, and by the clock the silence was far too long."""
    async with connect(server.url) as js:
        stream = await fill(js, stream_name, 10)
        async with stream.ordered() as tail:
            found = await take_sequences(tail, 10)
            waiting = asyncio.ensure_future(take_sequences(tail, 1))
            await turn()
            # Nothing is awaited here: the event loop stands still.
            request(server.port, f"{stream_name}.0", b"new")
            eventually(lambda: has_bytes(js))
            loop = asyncio.get_running_loop()
            clock = loop.time
            with monkeypatch.context() as patches:
                patches.setattr(loop, "time", lambda: clock() + 2 * session.SILENCE_MAX_S)
                found += await waiting

    assert found == list(range(1, 12))
    assert tail.report.resumes == 0


def has_bytes(js: JetStream) -> bool:
    """Tell whether bytes lie in a connection's socket."""
    link = js._client._link  # pyright: ignore[reportPrivateUsage] - its socket.
    assert link is not None
    assert link.transport is not None
    return bool(select.select([link.transport.get_extra_info("socket")], [], [], 0)[0])


async def test_idle_tail_is_not_made_again(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats of 0.1 s and pulls of 0.5 s: several of each pass before the message comes."""
    monkeypatch.setattr(session, "HEARTBEAT_S", 0.1)
    monkeypatch.setattr(session, "_PULL_EXPIRES_S", 0.5)
    monkeypatch.setattr(session, "SILENCE_MAX_S", 30.0)
    stream = await js.streams.ensure(stream_name)

    async with stream.ordered() as tail:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await anext(tail)
        await js.publish(stream_name, b"x")
        assert await take_sequences(tail, 1) == [1]

    assert tail.report.resumes == 0


@pytest.mark.parametrize("has_waited", [True, False])
async def test_cut_connection_leaves_no_consumer_behind(
    fresh_server: NatsServer, *, has_waited: bool
) -> None:
    """The server keeps the consumer of the cut connection; it is deleted after the reconnect."""
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url) as js, connect(fresh_server.url) as other:
            stream = await fill(other, "S", 10)
            async with (await js.streams.get("S")).ordered() as tail:
                found = await take_sequences(tail, 10)
                waiting = asyncio.ensure_future(take_sequences(tail, 1))
                proxy.cut()
                await eventually_async(lambda: is_connected(js, is_wanted=False))
                if not has_waited:
                    waiting.cancel()
                    await asyncio.wait({waiting})
                proxy.heal()
                await eventually_async(lambda: is_connected(js, is_wanted=True))
                await publish(other, "S.0", b"new")
                found += await (waiting if has_waited else take_sequences(tail, 1))
                await eventually_async(lambda: has_consumers(stream, 1))

            # The server deletes it by itself only after a minute.
            await eventually_async(lambda: has_consumers(stream, 0))

    assert found == list(range(1, 12))
    assert tail.report.reasons == {"connection": 1}


async def is_connected(js: JetStream, *, is_wanted: bool) -> bool:
    """Tell whether a connection is there, or is not."""
    return js.is_connected is is_wanted


async def has_consumers(stream: Stream, count: int) -> bool:
    """Tell whether the server has as many consumers on a stream."""
    return await consumer_count(stream) == count


async def has_received(tail: OrderedConsumer, count: int) -> bool:
    """Tell whether as many messages have arrived that nobody has taken."""
    reading = tail._follower._session  # pyright: ignore[reportPrivateUsage] - what it holds.
    assert reading is not None
    return reading._buffered == count  # pyright: ignore[reportPrivateUsage]


async def test_purge_is_followed(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 100)

    async with stream.ordered() as tail:
        found = await take_sequences(tail, 100)
        await purge(js, stream_name)
        await fill(js, stream_name, 10, start=100)
        found += await take_sequences(tail, 10)

    assert found == list(range(1, 111))
    assert tail.report.resumes == 0


async def test_deleted_stream_ends_the_tail(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)

    async with stream.ordered() as tail:
        await take_sequences(tail, 10)
        waiting = asyncio.ensure_future(anext(tail))
        await stream.info()
        await js.streams.delete(stream_name)

        for reading in (waiting, anext(tail)):
            with pytest.raises(StreamNotFoundError):
                await reading


async def test_stream_that_was_made_again_is_told_apart(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)

    async with stream.ordered() as tail:
        await eventually_async(lambda: has_received(tail, 10))
        await take_sequences(tail, 5)
        await js.streams.delete(stream_name)
        await fill(js, stream_name, 20)

        assert await take_sequences(tail, 5) == [6, 7, 8, 9, 10]
        with pytest.raises(StreamRecreatedError):
            await anext(tail)

    # The one that was made on the new stream is deleted without waiting for the answer.
    await eventually_async(lambda: has_consumers(stream, 0))


async def test_server_that_stays_away_is_told_and_tried_again(
    fresh_server: NatsServer,
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await fill(js, "S", 10)
        async with stream.ordered() as tail:
            found = await take_sequences(tail, 10)
            await asyncio.to_thread(fresh_server.kill)
            set_patience(js, reconnect_timeout=1)
            with pytest.raises(ConnectionLostError, match="first_seq=11"):
                await anext(tail)
            set_patience(js, reconnect_timeout=30)
            await asyncio.to_thread(fresh_server.start)
            await eventually_async(lambda: is_connected(js, is_wanted=True))
            await publish(js, "S.0", b"new")
            found += await take_sequences(tail, 1)

    assert found == list(range(1, 12))
