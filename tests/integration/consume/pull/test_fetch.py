"""Integration tests of `next` and `fetch`."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import (
    ConfigError,
    ConnectionLostError,
    ConsumerDeletedError,
    PullLimitError,
    UsageError,
)
from natsstream.testing import FaultProxy
from tests.support.eventually import eventually, eventually_async
from tests.support.pulling import (
    has_pulls,
    has_subscriptions,
    is_idle,
    nothing_comes,
    sequences,
    subscriptions,
    tuned,
    worker_of,
)
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import Consumer, JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest.mark.proves("1c", "fetch(n)")
async def test_fetch_returns_as_many_as_asked_for(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 10)
    found = await worker.fetch(4)

    assert sequences(found) == [1, 2, 3, 4]
    assert (found.complete, found.error) == (True, None)


@pytest.mark.proves("1c", "fetch(n)")
async def test_fetch_returns_what_came_in_time(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 3)
    found = await worker.fetch(10, timeout=0.2)

    assert sequences(found) == [1, 2, 3]
    assert (found.complete, found.error) == (False, None)


@pytest.mark.proves("1c", "fetch_no_wait")
@pytest.mark.parametrize("options", [{"no_wait": True}, {"timeout": 0}])
async def test_fetch_that_does_not_wait_takes_what_is_there(
    js: JetStream, stream_name: str, options: dict[str, Any]
) -> None:
    worker = await worker_of(js, stream_name, 3)

    assert sequences(await worker.fetch(10, **options)) == [1, 2, 3]
    assert await worker.fetch(10, **options) == []
    assert await worker.next(timeout=0) is None


async def test_fetch_waits_for_what_comes(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name)
    fetching = asyncio.ensure_future(worker.fetch(5, timeout=40))
    await fill(js, stream_name, 5)

    assert sequences(await fetching) == [1, 2, 3, 4, 5]


@pytest.mark.proves("1c", "fetch_bytes")
async def test_fetch_is_bounded_by_bytes(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 10, size=1_000)
    found = await worker.fetch(10, max_bytes=3_500)

    assert sequences(found) == [1, 2, 3]
    assert found.complete
    with pytest.raises(PullLimitError, match="larger than max_bytes=500") as told:
        await worker.fetch(10, max_bytes=500)
    assert told.value.limit == "max_bytes"


@pytest.mark.proves("1c", "pull limits max_batch / max_expires / max_bytes")
async def test_fetch_beyond_the_limits_of_the_consumer_is_done_in_parts(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 25, max_batch=10, max_expires=0.2)
    fetching = asyncio.ensure_future(worker.fetch(40, timeout=40))
    await asyncio.wait({fetching}, timeout=0.5)
    await fill(js, stream_name, 15, start=25)

    assert len(await fetching) == 40


@pytest.mark.parametrize(
    ("fields", "options", "limit"),
    [
        ({"max_batch": 5}, {"n": 6}, "max_batch"),
        ({"max_expires": 0.5}, {"n": 1, "timeout": 4}, "max_expires"),
        ({"max_bytes": 100}, {"n": 1, "max_bytes": 101}, "max_bytes"),
    ],
)
async def test_limit_that_the_handle_does_not_know_is_a_typed_error(
    js: JetStream, stream_name: str, fields: dict[str, Any], options: dict[str, Any], limit: str
) -> None:
    worker = await worker_of(js, stream_name, 1)
    stream = await js.streams.get(stream_name)
    await stream.consumers.update("work", **fields)

    with pytest.raises(PullLimitError) as told:
        await worker.fetch(**options)
    assert told.value.limit == limit


async def test_too_many_pulls_are_a_retryable_error(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, max_waiting=1)
    first = asyncio.ensure_future(worker.next(timeout=50))
    await eventually_async(lambda: has_pulls(worker))

    with pytest.raises(PullLimitError) as told:
        await worker.next(timeout=4)
    assert (told.value.limit, told.value.retryable) == ("max_waiting", True)
    await fill(js, stream_name, 1)
    assert await first is not None


async def test_push_consumer_can_not_be_pulled_from(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 1, deliver_subject=f"to.{stream_name}")
    with pytest.raises(UsageError, match="push consumer"):
        await worker.next()
    with pytest.raises(UsageError, match="push consumer"):
        async with worker.consume():
            pass


@pytest.mark.parametrize(
    "options",
    [
        {"n": 0},
        {"n": True},
        {"n": "5"},
        {"n": 1, "timeout": -1},
        {"n": 1, "timeout": "5"},
        {"n": 1, "timeout": float("nan")},
        {"n": 1, "max_bytes": 0},
        {"n": 1, "heartbeat": 4},
        {"n": 1, "no_wait": "yes"},
        {"n": 1, "priority": 1},
        {"n": 1, "group": ""},
        {"n": 1, "group": 7},
        {"n": 1, "min_pending": 0, "group": "a"},
    ],
)
async def test_options_that_can_not_work_are_refused(
    js: JetStream, stream_name: str, options: dict[str, Any]
) -> None:
    worker = await worker_of(js, stream_name)
    with pytest.raises(ConfigError):
        await worker.fetch(**options)


@pytest.mark.proves("1c", "consumer deleted -> typed error")
@pytest.mark.parametrize("what", ["consumer", "stream", "consumer before", "stream before"])
async def test_deletion_ends_a_fetch_with_a_typed_error(
    js: JetStream, stream_name: str, what: str
) -> None:
    """Nothing waits for the 50 seconds of the fetch."""
    worker = await worker_of(js, stream_name)
    stream = await js.streams.get(stream_name)
    delete = js.streams.delete(stream_name) if "stream" in what else stream.consumers.delete("work")
    if "before" in what:
        await delete
    fetching = asyncio.ensure_future(worker.fetch(5, timeout=50))
    if "before" not in what:
        await eventually_async(lambda: has_pulls(worker))
        await delete

    async with asyncio.timeout(30):
        with pytest.raises(ConsumerDeletedError) as caught:
            await fetching
    which = f"stream {stream_name}" if "stream" in what else "consumer work"
    assert caught.value.message.startswith(which)


@pytest.mark.proves("1c", "fetch(n)")
async def test_messages_before_a_deletion_are_returned_with_the_error(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 3)
    stream = await js.streams.get(stream_name)
    fetching = asyncio.ensure_future(worker.fetch(5, timeout=50))
    await eventually_async(lambda: are_out(worker, 3))
    await stream.consumers.delete("work")
    found = await fetching

    assert sequences(found) == [1, 2, 3]
    assert isinstance(found.error, ConsumerDeletedError)
    assert not found.complete


async def are_out(worker: Consumer, count: int) -> bool:
    """Tell whether so many messages were delivered, and not settled."""
    return (await worker.info()).num_ack_pending == count


@pytest.mark.proves("1c", "next(one)")
async def test_cancelled_fetches_keep_no_message_from_the_next(
    js: JetStream, stream_name: str
) -> None:
    """Each round cancels a fetch just when a message comes; none waits for the long ack_wait."""
    worker = await worker_of(js, stream_name, ack_wait=600)
    found: list[tuple[int, int]] = []
    for round_ in range(30):
        fetching = asyncio.ensure_future(worker.fetch(3, timeout=10))
        await asyncio.sleep(0)
        publishing = asyncio.ensure_future(js.publish(f"{stream_name}.0", b"x"))
        await asyncio.wait({publishing if round_ % 2 else fetching}, timeout=0.002 * (round_ % 5))
        fetching.cancel()
        await asyncio.wait({fetching, publishing})
        assert fetching.cancelled()
        messages = await worker.fetch(1, timeout=20)
        found += [(message.sequence, message.delivered) for message in messages]
        for message in messages:
            await message.ack()

    assert [sequence for sequence, _ in found] == list(range(1, 31))


async def test_message_for_a_cancelled_fetch_is_given_to_others_at_once(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name)
    other = await (await js.streams.get(stream_name)).consumers.get("work")
    fetching = asyncio.ensure_future(worker.fetch(5, timeout=30))
    await eventually_async(lambda: has_pulls(worker))
    fetching.cancel()
    await js.publish(f"{stream_name}.0", b"x")

    message = await other.next(timeout=25)
    assert message is not None


async def test_cancelled_fetch_withdraws_its_pull(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name)
    fetching = asyncio.ensure_future(worker.fetch(5, timeout=30))
    await eventually_async(lambda: has_pulls(worker))
    fetching.cancel()

    assert await eventually_async(lambda: is_idle(worker))


async def test_fetches_side_by_side_share_the_messages_and_leave_nothing(
    js: JetStream, stream_name: str
) -> None:
    worker = tuned(await worker_of(js, stream_name, 60), spare_s=0.2)
    before = subscriptions(js)
    tasks = len(asyncio.all_tasks())
    found = await asyncio.gather(*(worker.fetch(10) for _ in range(6)))

    assert sorted(message.sequence for messages in found for message in messages) == list(
        range(1, 61)
    )
    assert subscriptions(js) <= before + 1
    assert await eventually_async(lambda: has_subscriptions(js, before))
    assert len(asyncio.all_tasks()) == tasks


async def test_fetches_one_after_the_other_use_one_subscription(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 50)
    before = subscriptions(js)
    for _ in range(50):
        assert await worker.next() is not None
        assert subscriptions(js) == before + 1


@pytest.mark.parametrize("fault", ["restart", "crash"])
async def test_fetch_waits_out_a_restart(fresh_server: NatsServer, fault: str) -> None:
    async with connect(fresh_server.url) as js:
        # What a server has delivered just before it is killed, it may deliver again.
        before = 2 if fault == "restart" else 0
        worker = await worker_of(js, "S", before, durable=True)
        # Without heartbeats silence does not tell of a pull that was lost.
        fetching = asyncio.ensure_future(worker.fetch(5, timeout=50, heartbeat=0))
        await eventually_async(lambda: is_pulled(worker, before))
        if fault == "restart":
            await asyncio.to_thread(fresh_server.restart)
        else:
            fresh_server.kill()
            await asyncio.to_thread(fresh_server.start)
        await eventually_async(lambda: is_connected(js))
        await fill(js, "S", 5 - before, start=before)
        found = await fetching

    assert sequences(found) == [1, 2, 3, 4, 5]


async def is_pulled(worker: Consumer, count: int) -> bool:
    """Tell whether a pull is open that has brought so many messages."""
    info = await worker.info()
    return (info.num_waiting, info.num_ack_pending) == (1, count)


async def is_connected(js: JetStream) -> bool:
    """Tell whether a connection has a server."""
    return js.is_connected


async def test_closing_the_connection_ends_a_fetch(server: NatsServer, stream_name: str) -> None:
    async with connect(server.url) as js:
        worker = await worker_of(js, stream_name)
        fetching = asyncio.ensure_future(worker.fetch(5, timeout=50))
        await asyncio.wait({fetching}, timeout=0.1)
    done, _ = await asyncio.wait({fetching}, timeout=30)

    assert done
    assert type(fetching.exception()).__name__ == "ConnectionClosedError"


@pytest.mark.proves("1c", "heartbeats")
async def test_silent_server_is_told(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url) as js:
        worker = await worker_of(js, "S")
        await worker.next(timeout=0)
        fresh_server.pause()
        try:
            with pytest.raises(Exception, match="did not answer a pull"):
                await worker.next(timeout=0.3)
        finally:
            fresh_server.resume()
        eventually(lambda: not fresh_server.is_paused)


async def test_short_fetch_does_not_wait_for_the_pull_that_a_longer_one_has_left(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name)
    for seconds in (30, 3):
        fetching = asyncio.ensure_future(worker.fetch(5, timeout=seconds))
        await eventually_async(lambda: has_pulls(worker))
        fetching.cancel()
        await asyncio.wait({fetching})
        # One pull at the server: it goes on with the other's.
        assert await nothing_comes(worker, within_s=0.3)
    assert await eventually_async(lambda: is_idle(worker))


async def test_nothing_is_told_over_a_slow_link_as_well(
    server: NatsServer, stream_name: str
) -> None:
    with FaultProxy(server.port) as proxy:
        async with connect(proxy.url) as js:
            worker = await worker_of(js, stream_name)
            proxy.delay(0.2)
            assert await worker.next(timeout=0.2) is None
            assert await worker.fetch(5, timeout=0.2) == []


@pytest.mark.parametrize(
    ("options", "message", "limit_s"),
    [
        ({"no_wait": True}, "no reconnect within 1 s", 1.0),
        ({"timeout": 0}, "the connection is lost", 0.0),
        ({"timeout": 0.5}, "no reconnect within 0.5 s", 0.5),
    ],
)
async def test_fetch_without_a_server_ends_in_time(
    fresh_server: NatsServer,
    stream_name: str,
    options: dict[str, Any],
    message: str,
    limit_s: float,
) -> None:
    async with connect(fresh_server.url, request_timeout=1) as js:
        worker = await worker_of(js, stream_name, 1)
        fresh_server.kill()

        async def is_away() -> bool:
            return not js.is_connected

        await eventually_async(is_away)
        began = time.monotonic()
        with pytest.raises(ConnectionLostError, match=message) as told:
            await worker.fetch(1, **options)
        assert limit_s - 0.05 <= time.monotonic() - began < limit_s + 1
        assert "raise timeout" in told.value.hint
