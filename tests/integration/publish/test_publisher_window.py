"""The publisher's window: who waits for room is woken, and what fails is told once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import Expect, connect
from natsstream.errors import (
    ConfigError,
    ConnectionLostError,
    NatsStreamError,
    NoRespondersError,
    RequestTimeoutError,
    UsageError,
    WrongLastSequenceError,
)
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import JetStream, PubAck, Publisher
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

WRONG = Expect(last_seq=1_000_000)


@pytest.mark.proves("1b", "async, max pending, stall wait, ack timeout, handlers")
async def test_many_senders_share_a_window_of_one(js: JetStream, stream_name: str) -> None:
    """Each of them waits for room; nobody may be forgotten."""
    stream = await js.streams.create(stream_name, subjects=[stream_name])

    async with (
        js.publisher(max_pending=1) as publisher,
        asyncio.timeout(20),
        asyncio.TaskGroup() as group,
    ):
        for number in range(100):
            group.create_task(publisher.send(stream_name, b"%d" % number))

    assert (await stream.info()).state.messages == 100


async def test_sender_that_is_cancelled_while_it_waits_takes_nobody_along(
    fresh_js: JetStream, fresh_server: NatsServer, stream_name: str
) -> None:
    stream = await fresh_js.streams.create(stream_name, subjects=[stream_name])
    async with fresh_js.publisher(max_pending=1, ack_timeout=60) as publisher:
        fresh_server.pause()
        await publisher.send(stream_name, b"first")
        waiting = [asyncio.ensure_future(publisher.send(stream_name, b"x")) for _ in range(3)]
        await asyncio.wait(waiting, timeout=0.05)
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        fresh_server.resume()

        done, _ = await asyncio.wait(waiting[1:], timeout=30)

        assert len(done) == 2
        assert waiting[0].cancelled()
    assert (await stream.info()).state.messages == 3


async def test_sender_that_waits_when_the_publisher_closes_is_refused(
    fresh_js: JetStream, fresh_server: NatsServer, stream_name: str
) -> None:
    await fresh_js.streams.create(stream_name, subjects=[stream_name])
    publisher = fresh_js.publisher(max_pending=1, ack_timeout=20)
    fresh_server.pause()

    async def leave_at_once() -> asyncio.Task[asyncio.Future[PubAck]]:
        async with publisher:
            await publisher.send(stream_name, b"first")
            late = asyncio.ensure_future(publisher.send(stream_name, b"late"))
            await asyncio.wait([late], timeout=0.05)
            raise KeyError(late)

    with pytest.raises(KeyError) as caught:
        await leave_at_once()
    fresh_server.resume()

    with pytest.raises(UsageError, match="is closed"):
        async with asyncio.timeout(15):
            await caught.value.args[0]


async def fail_once(publisher: Publisher, subject: str) -> asyncio.Future[PubAck]:
    """Send what the stream refuses; returns the future when the refusal is there."""
    future = await publisher.send(subject, b"x", expect=WRONG)
    await asyncio.wait([future])
    return future


async def test_failure_that_nobody_looks_at_is_raised_when_the_context_is_left(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name])

    with pytest.raises(WrongLastSequenceError):
        async with js.publisher() as publisher:
            await fail_once(publisher, stream_name)


async def test_failure_that_nobody_looks_at_is_raised_by_the_next_send(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name])

    async with js.publisher() as publisher:
        await fail_once(publisher, stream_name)
        with pytest.raises(WrongLastSequenceError):
            await publisher.send(stream_name, b"y")
        assert (await (await publisher.send(stream_name, b"z"))).sequence == 1


@pytest.mark.parametrize("way", ["await", "exception", "gather", "wait_for", "shield"])
async def test_failure_that_was_looked_at_is_not_raised_again(
    js: JetStream, stream_name: str, way: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name])

    async with js.publisher() as publisher:
        future = await fail_once(publisher, stream_name)
        if way == "exception":
            assert isinstance(future.exception(), WrongLastSequenceError)
        elif way == "gather":
            found = await asyncio.gather(future, return_exceptions=True)
            assert isinstance(found[0], WrongLastSequenceError)
        else:
            wrapped = {
                "await": future,
                "wait_for": asyncio.wait_for(future, 5),
                "shield": asyncio.shield(future),
            }
            with pytest.raises(WrongLastSequenceError):
                await wrapped.pop(way)
            for unused in wrapped.values():
                if asyncio.iscoroutine(unused):
                    unused.close()
        await publisher.send(stream_name, b"y")


async def test_first_failure_that_nobody_has_looked_at_is_raised(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name])

    async def look_at_one_of_two() -> None:
        async with js.publisher() as publisher:
            seen = await publisher.send(stream_name, b"x", expect=WRONG)
            unseen = await publisher.send(f"{stream_name}_none", b"x")
            await asyncio.wait([seen, unseen])
            assert isinstance(seen.exception(), WrongLastSequenceError)

    with pytest.raises(NoRespondersError):
        await look_at_one_of_two()


async def test_window_is_never_exceeded(js: JetStream, stream_name: str) -> None:
    await js.streams.create(stream_name, subjects=[stream_name])
    most = 0

    async with js.publisher(max_pending=7) as publisher:
        for _ in range(500):
            await publisher.send(stream_name, b"x")
            most = max(most, publisher.pending_count)

    assert most == 7
    assert publisher.pending_count == 0


async def test_send_to_a_server_that_does_not_answer_ends_by_its_deadline(
    fresh_js: JetStream, fresh_server: NatsServer, stream_name: str
) -> None:
    await fresh_js.streams.create(stream_name, subjects=[stream_name])
    fresh_server.pause()

    async with fresh_js.publisher(max_pending=2, ack_timeout=0.5) as publisher:
        futures = [await publisher.send(stream_name, b"x") for _ in range(2)]
        async with asyncio.timeout(30):
            with pytest.raises(RequestTimeoutError):
                await publisher.send(stream_name, b"x")
        assert all(isinstance(each.exception(), RequestTimeoutError) for each in futures)
    fresh_server.resume()


@pytest.mark.proves("1b", "async, max pending, stall wait, ack timeout, handlers")
@pytest.mark.finding(5)
async def test_every_future_settles_when_the_server_dies(
    fresh_js: JetStream, fresh_server: NatsServer, stream_name: str
) -> None:
    await fresh_js.streams.create(stream_name, subjects=[stream_name])
    futures: list[asyncio.Future[PubAck]] = []

    async with fresh_js.publisher() as publisher:
        fresh_server.pause()
        futures += [await publisher.send(stream_name, b"x") for _ in range(1_000)]
        fresh_server.kill()
        async with asyncio.timeout(30):
            await asyncio.wait(futures)

        assert {type(each.exception()) for each in futures} == {ConnectionLostError}
        assert publisher.pending_count == 0


async def test_what_was_not_sent_when_the_context_failed_is_not_sent_later(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await js.streams.create(stream_name, subjects=[stream_name])

        async def fail_after_a_send() -> None:
            async with js.publisher() as publisher:
                raise KeyError(await publisher.send(stream_name, b"x"))

        async def is_lost() -> bool:
            return not js.is_connected

        fresh_server.kill()
        assert await eventually_async(is_lost)
        with pytest.raises(KeyError) as caught:
            await fail_after_a_send()
        assert isinstance(caught.value.args[0].exception(), NatsStreamError)

        fresh_server.start()
        assert (await js.publish(stream_name, b"y", timeout=30)).sequence == 1
        assert (await stream.info()).state.messages == 1


async def test_closed_publisher_refuses_to_send(js: JetStream, stream_name: str) -> None:
    publisher = js.publisher()
    with pytest.raises(UsageError, match="not open"):
        await publisher.send(stream_name, b"x")
    async with publisher:
        pass
    assert repr(publisher).endswith(", closed>")
    with pytest.raises(UsageError, match="the publisher is closed"):
        await publisher.send(stream_name, b"x")


@pytest.mark.parametrize("options", [{"max_pending": 0}, {"ack_timeout": 0}, {"ack_timeout": -1}])
async def test_window_and_timeout_are_above_zero(js: JetStream, options: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        js.publisher(**options)  # pyright: ignore[reportArgumentType] - a table of options.
