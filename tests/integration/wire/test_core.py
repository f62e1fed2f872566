"""Plain NATS over the connection: publish, subscribe, request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest
import pytest_asyncio

from natsstream import connect
from natsstream.core.core import Core
from natsstream.errors import (
    ConfigError,
    ConnectionClosedError,
    HeaderError,
    NoRespondersError,
    PayloadTooLargeError,
    RequestTimeoutError,
    SlowReaderError,
    SubjectError,
    UsageError,
)
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream._wire.client import Client
    from natsstream.testing import NatsServer
    from tests.integration.wire.conftest import Opener

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def client(server: NatsServer, open_client: Opener) -> AsyncIterator[Client]:
    """A connection to the server that the whole run shares."""
    async with open_client(server.url) as (client, _):
        yield client


@pytest.fixture
def core(client: Client) -> Core:
    """Plain NATS over that connection."""
    return Core(client)


async def test_reading_a_subscription_that_is_not_open_is_refused(
    core: Core, stream_name: str
) -> None:
    messages = core.subscribe(stream_name)

    with pytest.raises(UsageError, match="is not open"):
        await anext(messages)
    with pytest.raises(UsageError, match="is not open"):
        await messages.next(1)


async def test_message_arrives_with_everything_that_it_was_sent_with(
    core: Core, stream_name: str
) -> None:
    async with core.subscribe(f"{stream_name}.>") as messages:
        headers = {"A": ["1", "2"], "b": "é"}
        await core.publish(f"{stream_name}.x", b"\x00data", headers=headers, reply="some.where")
        message = await anext(messages)

    assert (message.subject, message.reply) == (f"{stream_name}.x", "some.where")
    assert message.data == b"\x00data"
    assert message.headers.all("A") == ("1", "2")
    assert message.headers["b"] == "é"


async def test_messages_arrive_in_order(core: Core, stream_name: str) -> None:
    async with core.subscribe(stream_name) as messages:
        for number in range(5_000):
            await core.publish(stream_name, b"%d" % number)
        await core.flush()

        found = [int((await anext(messages)).data) for _ in range(5_000)]

    assert found == list(range(5_000))


async def test_request_gets_its_answer_and_headers(core: Core, stream_name: str) -> None:
    async def answer() -> None:
        message = await anext(questions)
        await message.respond(message.data * 2, headers={"Status-Of-Mine": "ok"})

    async with core.subscribe(stream_name) as questions:
        answering = asyncio.ensure_future(answer())
        reply = await core.request(stream_name, b"ab")
        await answering

    assert reply.data == b"abab"
    assert reply.headers["Status-Of-Mine"] == "ok"
    with pytest.raises(ConfigError, match="expects no answer"):
        await reply.respond(b"x")


async def test_request_that_nobody_hears_fails_at_once_and_one_unanswered_at_its_deadline(
    core: Core, stream_name: str
) -> None:
    with pytest.raises(NoRespondersError):
        await core.request(stream_name, timeout=30)
    async with core.subscribe(stream_name):
        with pytest.raises(RequestTimeoutError):
            await core.request(stream_name, timeout=0.05)


async def test_queue_group_gives_each_message_to_one_member(core: Core, stream_name: str) -> None:
    async with (
        core.subscribe(stream_name, queue="workers") as one,
        core.subscribe(stream_name, queue="workers") as two,
    ):
        for _ in range(200):
            await core.publish(stream_name)
        await core.flush()

        assert one.pending_count + two.pending_count == 200
        assert one.pending_count
        assert two.pending_count


@pytest.mark.parametrize("limits", [{"max_pending": 10}, {"max_pending_bytes": 10 * 107}])
async def test_reader_that_is_too_slow_is_told_how_much_was_dropped(
    core: Core, stream_name: str, limits: dict[str, int]
) -> None:
    name = stream_name[-7:]  # A subject of 7 bytes, so that a message counts 107.
    async with core.subscribe(name, **cast("Any", limits)) as messages:
        for number in range(25):
            await core.publish(name, (b"%d" % number).ljust(100))
        await core.flush()

        found = [int((await anext(messages)).data) for _ in range(10)]
        with pytest.raises(SlowReaderError, match="15 messages") as raised:
            await anext(messages)
        await core.publish(name, b"25")
        after = await messages.next(30)

    assert found == list(range(10))
    assert (raised.value.dropped, messages.dropped) == (15, 15)
    assert after is not None
    assert after.data == b"25"


async def test_dropping_is_only_counted_when_asked(core: Core, stream_name: str) -> None:
    async with core.subscribe(stream_name, max_pending=2, on_slow="drop") as messages:
        for number in range(5):
            await core.publish(stream_name, b"%d" % number)
        await core.flush()
        found = [message.data for message in [await anext(messages), await anext(messages)]]

        assert await messages.next(0.01) is None

    assert (found, messages.dropped) == ([b"0", b"1"], 3)


async def test_drain_keeps_what_has_arrived_and_then_ends(core: Core, stream_name: str) -> None:
    messages = await core.subscribe(stream_name).open()
    for number in range(100):
        await core.publish(stream_name, b"%d" % number)

    await messages.drain()
    await core.publish(stream_name, b"too late")
    await core.flush()
    found = [int(message.data) async for message in messages]

    assert found == list(range(100))
    assert await messages.next(0.01) is None


async def test_a_loop_of_next_ends_by_an_error_and_does_not_stop_the_event_loop(
    core: Core, stream_name: str
) -> None:
    """Behind the end a call has nothing to wait for: such a loop would never give a turn."""
    messages = await core.subscribe(stream_name).open()

    async def read() -> None:
        while True:
            await messages.next(1)

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    await messages.drain()
    with pytest.raises(UsageError, match="has ended") as told:
        await reading
    assert "leave the loop" in told.value.hint
    assert [message async for message in messages] == []


@pytest.mark.finding(27)
async def test_drain_of_the_connection_keeps_what_is_under_way_and_waits_for_no_reader(
    server: NatsServer, core: Core, stream_name: str
) -> None:
    """nats-py burns its whole drain_timeout on a subscription that nobody reads (finding 27)."""
    js = await connect(server.url).open()
    read, unread = [await js.core.subscribe(stream_name).open() for _ in range(2)]
    for number in range(1_000):
        await core.publish(stream_name, b"%d" % number)
    await core.flush()

    await js.drain()
    found = [int(message.data) async for message in read]

    assert found == list(range(1_000))
    assert unread.pending_count == 1_000
    assert not js.is_connected
    with pytest.raises(ConnectionClosedError):
        await js.core.publish(stream_name)


@pytest.mark.finding(26)
async def test_iteration_ends_when_the_subscription_is_closed(core: Core, stream_name: str) -> None:
    """nats-py leaves it waiting for ever (finding 26)."""
    messages = await core.subscribe(stream_name).open()
    reading = asyncio.ensure_future(anext(messages, None))
    await asyncio.wait([reading], timeout=0.01)

    await messages.close()
    await messages.close()

    async with asyncio.timeout(30):
        assert await reading is None


async def test_iteration_fails_when_the_connection_is_closed(
    client: Client, core: Core, stream_name: str
) -> None:
    messages = await core.subscribe(stream_name).open()
    reading = asyncio.ensure_future(anext(messages))
    await asyncio.wait([reading], timeout=0.01)

    await client.close()

    async with asyncio.timeout(30):
        with pytest.raises(ConnectionClosedError):
            await reading


async def test_subscription_goes_on_after_the_server_came_back(
    fresh_server: NatsServer, open_client: Opener
) -> None:
    async with open_client(fresh_server.url) as (client, _):
        core = Core(client)
        async with core.subscribe("a") as messages:
            await asyncio.to_thread(fresh_server.kill)
            await asyncio.to_thread(fresh_server.start)

            async def is_back() -> bool:
                return client.connections == 2

            await eventually_async(is_back)
            await core.publish("a", b"again")
            message = await messages.next(30)

    assert message is not None
    assert message.data == b"again"


async def test_cancelled_reader_leaves_the_next_message_for_the_next_one(
    core: Core, stream_name: str
) -> None:
    async with core.subscribe(stream_name) as messages:
        reading = asyncio.ensure_future(anext(messages))
        await asyncio.wait([reading], timeout=0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await core.publish(stream_name, b"1")

        message = await messages.next(30)

    assert message is not None
    assert message.data == b"1"


async def test_nothing_is_left_of_subscriptions(
    client: Client, core: Core, stream_name: str
) -> None:
    before = len(client.parser.sinks)
    for _ in range(40):
        async with core.subscribe(stream_name) as messages:
            await core.publish(stream_name)
            assert await messages.next(30)

    assert len(client.parser.sinks) == before
    assert len(client.raw._subs) == before


@pytest.mark.parametrize("subject", ["", "a b", "a..b", "a.*", ">", "a\r\nPUB x 0\r\n", "x" * 4000])
async def test_illegal_subject_is_refused_before_anything_is_sent(core: Core, subject: str) -> None:
    with pytest.raises(SubjectError):
        await core.publish(subject)
    with pytest.raises(SubjectError):
        await core.request(subject)
    with pytest.raises(SubjectError):
        await core.publish("a", reply=subject or "a b")


async def test_what_the_server_would_not_take_is_refused(core: Core) -> None:
    with pytest.raises(PayloadTooLargeError):
        await core.publish("a", bytes(64 << 20))
    with pytest.raises(HeaderError):
        await core.publish("a", headers={"A": "b\r\nC: d"})
    with pytest.raises(SubjectError):
        core.subscribe("a b")
    with pytest.raises(ConfigError):
        core.subscribe("a", queue="two words")
    with pytest.raises(ConfigError, match="'' is not a legal queue group"):
        core.subscribe("a", queue="")  # An unset variable: each member would get each message.
    with pytest.raises(ConfigError):
        core.subscribe("a", max_pending=0)


async def test_rtt_is_a_duration(core: Core) -> None:
    assert 0 < await core.rtt(timeout=30) < 30
