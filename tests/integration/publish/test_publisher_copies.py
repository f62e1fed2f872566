"""Publishers at their edges: used again, late second copies, ids and sizes at the limit."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from natsstream import NatsStreamError, UsageError, connect
from natsstream.errors import ConnectionClosedError, ProtocolError, TransportError
from natsstream.testing import FaultProxy, NatsServer
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from typing import Any

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


async def test_publisher_that_is_entered_again_hears_its_acks(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name], storage="memory")
    publisher = js.publisher()

    async with publisher:
        await publisher.send(stream_name, b"x")
        with pytest.raises(UsageError, match="open already"):
            await publisher.__aenter__()
    async with publisher:
        future = await publisher.send(stream_name, b"y")

    assert future.result().sequence == 2


async def test_failures_of_a_block_are_not_told_by_the_next(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name], storage="memory")
    publisher = js.publisher()

    await publisher.__aenter__()
    await publisher.send(stream_name, b"x")
    error = RuntimeError("left by an error")
    await publisher.__aexit__(RuntimeError, error, None)
    async with publisher:
        future = await publisher.send(stream_name, b"y")

    assert future.result().stream == stream_name


async def test_second_copy_is_not_sent_once_the_stream_forgets_the_first(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    """It waits for a connection until its time is over; `ack_timeout` has not passed by then."""
    stream = await js.streams.create(
        stream_name,
        subjects=[stream_name],
        storage="memory",
        duplicate_window=timedelta(seconds=1.5),
    )

    async def count() -> int:
        return (await stream.info()).state.messages

    async def is_stored() -> bool:
        return await count() == 2

    async def is_forgotten() -> bool:
        return not (await js.publish(stream_name, b"", msg_id="probe")).duplicate

    with FaultProxy(server.port) as proxy:
        async with (
            connect(proxy.url) as far,
            far.publisher(retry_for=1.4, ack_timeout=15, stream=stream_name) as publisher,
        ):
            await (await publisher.send(stream_name, b"before"))
            proxy.stall(direction="to_client")
            future = await publisher.send(stream_name, b"x")
            await eventually_async(is_stored)
            await js.publish(stream_name, b"", msg_id="probe")
            proxy.cut()
            await eventually_async(is_forgotten)
            proxy.heal()
            with pytest.raises(TransportError):
                await future

    assert await count() == 4


@pytest.mark.parametrize("value", ["mine", ["mine"]])
async def test_id_that_is_given_as_a_header_is_kept(
    js: JetStream, stream_name: str, value: str | list[str]
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name], storage="memory")

    async with js.publisher(retry_for=30) as publisher:
        first = await publisher.send(stream_name, b"x", headers={"Nats-Msg-Id": value})
        second = await publisher.send(stream_name, b"x", headers={"Nats-Msg-Id": value})

    assert [first.result().duplicate, second.result().duplicate] == [False, True]


async def test_answer_with_an_endless_number_ends_its_message(
    js: JetStream, stream_name: str
) -> None:
    async def answer(message: Any) -> None:
        await message.respond(b'{"stream":"S","seq":1,"val":Infinity}')

    await js.raw.subscribe(stream_name, cb=answer)
    async with js.publisher() as publisher:
        with pytest.raises(ProtocolError):
            await (await publisher.send(stream_name, b"x"))
        assert publisher.pending_count == 0


async def test_refusals_of_a_closed_connection_do_not_grow(server: NatsServer) -> None:
    async with connect(server.url) as js:
        publisher = await js.publisher().__aenter__()
    depths: list[int] = []
    for _ in range(5):
        with pytest.raises(ConnectionClosedError) as caught:
            await publisher.send("s", b"x")
        depths.append(_depth(caught.value))

    assert depths[0] == depths[-1]
    with pytest.raises(NatsStreamError):
        await publisher.send_many([("s", b"x")])
    await publisher.__aexit__(None, None, None)


def _depth(error: BaseException) -> int:
    """Return over how many calls an error came."""
    depth, trace = 0, error.__traceback__
    while trace is not None:
        depth, trace = depth + 1, trace.tb_next
    return depth
