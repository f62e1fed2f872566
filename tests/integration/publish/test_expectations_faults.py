"""An expectation makes a message safe to send again: through cuts, kills and changes of leaders."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import Expect, NatsStreamError, connect
from natsstream.errors import RequestTimeoutError, TransportError, WrongLastSequenceError
from natsstream.testing import FaultProxy, NatsCluster
from tests.support.clusters import connect_to, step_down
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream import JetStream, Stream
    from natsstream.testing import NatsServer, ServerOptions

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

COUNT = 90


@pytest.fixture
def own_cluster(nats_server_options: ServerOptions) -> Iterator[NatsCluster]:
    """A cluster for one test, which kills its servers."""
    with NatsCluster(**nats_server_options) as cluster:
        yield cluster


async def last_of(stream: Stream, subject: str) -> tuple[int, int]:
    """Return sequence and number of a subject's last message; zeros for none."""
    found = await stream.get(last_by_subject=subject)
    return (found.sequence, int(found.data)) if found else (0, 0)


async def store_next(stream: Stream, subject: str, number: int) -> None:
    """Store a number behind the one before it, until it is there."""
    while True:
        try:
            sequence, held = await last_of(stream, subject)
            if held == number:
                return
            expect = Expect(last_subject_seq=sequence)
            await stream.publish(subject, b"%d" % number, expect=expect, timeout=1)
        except WrongLastSequenceError:  # An earlier attempt was stored, or is on its way.
            await asyncio.sleep(0.01)
        except NatsStreamError as error:
            if not error.retryable:
                raise
            await asyncio.sleep(0.01)
        else:
            return


async def test_numbers_are_stored_once_and_in_order_through_kills_of_leaders(
    own_cluster: NatsCluster,
) -> None:
    async with connect_to(own_cluster) as js:
        stream = await js.streams.create("S", subjects=["s.>"], replicas=3)
        leader = await asyncio.to_thread(own_cluster.wait_for_leader, "S")
        for number in range(1, COUNT + 1):
            if number == COUNT // 3:
                await asyncio.to_thread(leader.kill)
            if number == 2 * COUNT // 3:
                await asyncio.to_thread(leader.start)
                await step_down(js, own_cluster, "S")
            await store_next(stream, "s.a", number)

        await asyncio.to_thread(
            own_cluster.wait_until_ready
        )  # Who chooses a leader answers nobody.
        stored = [int(message.data) async for message in stream.read()]
        assert stored == list(range(1, COUNT + 1))


async def test_timeout_is_also_that_of_looking_at_the_stream(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    """What asks the stream first would wait for `request_timeout` more than once."""
    stream = await js.streams.create(stream_name, subjects=[stream_name], storage="memory")

    with FaultProxy(server.port) as proxy:
        async with connect(proxy.url, request_timeout=50) as far:
            await far.account()
            proxy.stall()
            with pytest.raises(RequestTimeoutError, match="was not sent"):
                await far.publish(stream_name, b"", expect=Expect(last_msg_id="x"), timeout=0.2)

    assert (await stream.info()).state.messages == 0


async def test_message_whose_ack_was_cut_off_is_not_stored_twice(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name], storage="memory")
    expect = Expect(last_subject_seq=0)

    async def is_stored() -> bool:
        return (await stream.info()).state.last_seq == 1

    with FaultProxy(server.port) as proxy:
        async with connect(proxy.url, request_timeout=50) as far:
            await far.account()
            proxy.stall(direction="to_client")
            sending = asyncio.ensure_future(far.publish(stream_name, b"1", expect=expect))
            await eventually_async(is_stored)
            proxy.cut()
            with pytest.raises(TransportError):
                await sending
            proxy.heal()
            with pytest.raises(WrongLastSequenceError) as caught:
                await far.publish(stream_name, b"1", expect=expect, timeout=50)

    assert caught.value.last_seq == 1
    assert (await stream.info()).state.messages == 1
