"""A publisher that may send again is for one stream: elsewhere a second copy would be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream import ConfigError, Republish, connect
from natsstream.errors import CounterError, WrongStreamError
from natsstream.testing import FaultProxy
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest.mark.proves("1b", "expect stream")
async def test_message_for_another_stream_is_refused(js: JetStream, stream_name: str) -> None:
    mine, other = f"{stream_name}-1", f"{stream_name}-2"
    for name in (mine, other):
        await js.streams.create(name, subjects=[name], storage="memory")

    async with js.publisher(retry_for=30) as publisher:
        first = await publisher.send(mine, b"")
        with pytest.raises(WrongStreamError, match="nothing was sent"):
            await publisher.send(other, b"")
        third = await publisher.send(mine, b"")

    assert [first.result().sequence, third.result().sequence] == [1, 2]
    assert (await (await js.streams.get(other)).info()).state.messages == 0


async def test_ack_of_another_stream_is_told_without_retries_too(
    js: JetStream, stream_name: str
) -> None:
    mine, other = f"{stream_name}-1", f"{stream_name}-2"
    for name in (mine, other):
        await js.streams.create(name, subjects=[name], storage="memory")

    async with js.publisher(stream=mine) as publisher:
        first = await publisher.send(mine, b"")
        second = await publisher.send(other, b"")
        third = await publisher.send(mine, b"")
        with pytest.raises(WrongStreamError, match=f"stream {other} has stored the message as 1"):
            await second
    assert [first.result().sequence, third.result().sequence] == [1, 2]


@pytest.mark.parametrize(
    "headers",
    [
        {"Nats-Expected-Last-Sequence": "0"},
        {"Nats-Expected-Last-Subject-Sequence": "0"},
        {"Nats-Expected-Last-Msg-Id": "x"},
    ],
)
async def test_expectation_of_an_order_is_refused_also_where_a_header_says_it(
    js: JetStream, stream_name: str, headers: dict[str, str]
) -> None:
    """The second copy would be refused because of the first, and told as not stored."""
    stream = await js.streams.create(stream_name, subjects=[stream_name], storage="memory")

    async with js.publisher(retry_for=30) as publisher:
        with pytest.raises(ConfigError, match="allows no expectation"):
            await publisher.send(stream_name, b"", headers=headers)
        await publisher.send(stream_name, b"", headers={"Nats-Expected-Stream": stream_name})

    assert (await stream.info()).state.messages == 1


async def test_message_that_another_stream_has_taken_over_is_told_with_its_place(
    js: JetStream, stream_name: str
) -> None:
    """Nothing in a message says which stream it is for; the ack says which one has it."""
    mine, subject = f"{stream_name}-1", f"{stream_name}.a"
    stream = await js.streams.create(mine, subjects=[f"{stream_name}.>"], storage="memory")

    async with js.publisher(retry_for=30) as publisher:
        await (await publisher.send(subject, b"mine"))
        await js.streams.update(mine, subjects=[f"{stream_name}.b"])
        await js.streams.create(f"{stream_name}-2", subjects=[subject], storage="memory")
        future = await publisher.send(subject, b"moved")
        with pytest.raises(WrongStreamError, match=f"stream {stream_name}-2 .* as 1"):
            await future
        with pytest.raises(WrongStreamError, match=f"stream {stream_name}-2 .* as 2"):
            await stream.publish(subject, b"moved")

    with pytest.raises(WrongStreamError, match="nothing was sent"):
        await (await js.streams.get(mine)).publish(subject, b"moved")


async def test_stream_that_is_made_anew_elsewhere_gets_no_second_copy(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    """The first copy is stored and its ack held back; then another stream takes the subject."""
    old = await js.streams.create(stream_name, subjects=[stream_name], storage="memory")

    async def is_stored() -> bool:
        return (await old.info()).state.messages == 2

    with FaultProxy(server.port) as proxy:
        async with (
            connect(proxy.url) as far,
            far.publisher(retry_for=30, stream=stream_name) as publisher,
        ):
            await (await publisher.send(stream_name, b"before"))
            proxy.stall(direction="to_client")
            future = await publisher.send(stream_name, b"x")
            await eventually_async(is_stored)
            await js.streams.delete(stream_name)
            new = await js.streams.create(
                f"{stream_name}-new", subjects=[stream_name], storage="memory"
            )
            proxy.cut()
            proxy.heal()
            with pytest.raises(WrongStreamError, match="not sent again"):
                await future

    assert (await new.info()).state.messages == 0


async def test_stream_that_republishes_into_another_keeps_its_copies_free(
    js: JetStream, stream_name: str
) -> None:
    """A copy that named this stream would be refused by the one that captures it."""
    origin, copies = f"{stream_name}-1", f"{stream_name}-2"
    stream = await js.streams.create(
        origin,
        subjects=[f"{origin}.>"],
        republish=Republish(source=f"{origin}.>", destination=f"{copies}.>"),
        storage="memory",
    )
    other = await js.streams.create(copies, subjects=[f"{copies}.>"], storage="memory")

    async with js.publisher(retry_for=30) as publisher:
        await publisher.send(f"{origin}.a", b"by a publisher")
    await stream.publish(f"{origin}.a", b"by the stream")

    async def are_copied() -> bool:
        return (await other.info()).state.messages == 2

    await eventually_async(are_copied)


async def test_counters_take_retried_messages(js: JetStream, stream_name: str) -> None:
    """A counter refuses every expectation, that of its own stream too."""
    counters = await js.counters.ensure(stream_name, subjects=[stream_name], storage="memory")

    async with js.publisher(retry_for=30) as publisher:
        for _ in range(3):
            await publisher.send(stream_name, b"", headers={"Nats-Incr": "2"}, msg_id="once")
        with pytest.raises(CounterError, match="incr"):
            await (await publisher.send(stream_name, b""))

    held = await counters.get(stream_name)
    assert held is not None
    assert held.value == 2
