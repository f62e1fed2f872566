"""A server that has frozen is left in time, and nothing waits for it for ever."""

from __future__ import annotations

import asyncio
import select
import time
from typing import TYPE_CHECKING, cast

import pytest

from natsstream.errors import ConnectionClosedError, ConnectionLostError, RequestTimeoutError
from natsstream.events import Closed, Connected, Disconnected, PeerSilent
from natsstream.testing import FaultProxy
from tests.support.eventually import eventually_async
from tests.support.peers import Peer, scripted

if TYPE_CHECKING:
    from natsstream._wire.client import Client
    from natsstream._wire.parser import Frame
    from natsstream.testing import NatsServer
    from tests.integration.wire.conftest import Opener

pytestmark = pytest.mark.asyncio

MIB = 1 << 20


async def fill_the_socket(client: Client) -> None:
    """Write until the peer, which reads nothing, has filled every buffer on the way."""
    transport = client.raw._transport._io_writer.transport
    while not transport.get_write_buffer_size() > 2 * MIB:
        client.write(client.publish_command("nobody.listens", "", b"", bytes(MIB)))


def is_answered(client: Client) -> bool:
    """Tell whether an answer to the last ping was heard or lies in the socket, if one was sent."""
    if not client.raw._pongs or client._state.watchdog._has_heard:  # pyright: ignore[reportPrivateUsage]
        return True
    own = client.raw.transport.get_extra_info("socket")
    return bool(select.select([own], [], [], 0)[0])


@pytest.mark.finding(7)
@pytest.mark.parametrize("bytes_wait", [False, True])
async def test_frozen_server_is_left_for_another_one(
    server: NatsServer,
    fresh_server: NatsServer,
    open_client: Opener,
    bytes_wait: bool,  # noqa: FBT001 - a parameter.
) -> None:
    """nats-py waits until the frozen peer has taken its bytes, a quarter of an hour (finding 7)."""
    urls = (fresh_server.url, server.url)
    async with open_client(*urls, ping_interval=0.2) as (client, events):
        assert client.url == fresh_server.url
        fresh_server.pause()
        if bytes_wait:
            await fill_the_socket(client)

        async def is_elsewhere() -> bool:
            return client.is_connected and client.url == server.url

        await eventually_async(is_elsewhere)
        await client.flush(30)
        fresh_server.resume()

    kinds = [type(event) for event in events]
    assert kinds == [PeerSilent, Disconnected, Connected, Closed]
    assert [event.url for event in events[:2]] == [fresh_server.url] * 2
    assert cast("Connected", events[2]).is_reconnect


async def test_server_that_only_says_nothing_is_asked_and_kept(
    server: NatsServer, open_client: Opener
) -> None:
    # A server that has no CPU for a while is not given up here: what is looked at is whether its
    # answers end the count of what is missing, which never falls otherwise.
    async with open_client(server.url, ping_interval=0.1, max_missed_pings=100) as opened:
        client, events = opened
        answered = client.raw._pongs_received

        async def was_asked_and_heard() -> bool:
            dog = client._state.watchdog  # pyright: ignore[reportPrivateUsage]
            is_heard = dog._has_heard and dog._missed == 0  # pyright: ignore[reportPrivateUsage]
            return client.raw._pongs_received >= answered + 5 and is_heard

        await eventually_async(was_asked_and_heard)

        assert client.connections == 1
        assert events == []


async def test_server_is_not_given_up_because_this_program_was_busy(
    server: NatsServer, open_client: Opener
) -> None:
    """What lies in the socket after a call that blocks the loop is heard before the next look."""
    async with open_client(server.url, ping_interval=0.02) as (client, events):
        for turn in range(30):
            # Three looks long, and until the answer to the last ping is there to be heard.
            busy_until = time.monotonic() + 0.06
            while time.monotonic() < busy_until or not is_answered(client):
                pass
            for _ in range(turn % 5):
                await asyncio.sleep(0)

        await client.flush(10)

        assert client.connections == 1
        assert events == []


async def test_message_that_takes_long_to_arrive_is_no_silence(open_client: Opener) -> None:
    size = 200

    async def drips(peer: Peer) -> None:
        await peer.greet()
        sid = (await peer.until(b"SUB a ")).split()[-1]
        peer.writer.write(b"MSG a %b %d\r\n" % (sid, size))
        never = asyncio.get_running_loop().create_future()
        for _ in range(size):
            peer.writer.write(b"x")
            await asyncio.wait([never], timeout=0.005)
        peer.writer.write(b"\r\n")
        await peer.answer_pings()

    frames: list[Frame] = []
    async with scripted(drips) as url, open_client(url, ping_interval=0.1) as (client, events):
        await client.subscribe("a", frames.extend)

        async def is_there() -> bool:
            return bool(frames)

        await eventually_async(is_there)

        assert len(frames[0][3]) == size
        assert events == []


async def test_request_to_a_frozen_server_fails_when_the_server_is_given_up(
    server: NatsServer, fresh_server: NatsServer, open_client: Opener
) -> None:
    urls = (fresh_server.url, server.url)
    async with open_client(*urls, ping_interval=0.2) as (client, _):
        fresh_server.pause()

        with pytest.raises(ConnectionLostError, match="connection lost") as raised:
            await client.request("$SYS.REQ.USER.INFO", timeout=30)

        assert "nothing came from the server" in raised.value.detail
        fresh_server.resume()


async def test_flush_of_a_frozen_server_ends_at_its_deadline_and_the_next_one_works(
    fresh_server: NatsServer, open_client: Opener
) -> None:
    async with open_client(fresh_server.url) as (client, _):
        fresh_server.pause()
        with pytest.raises(RequestTimeoutError, match="did not answer a ping"):
            await client.flush(0.1)
        fresh_server.resume()

        # The late answer to the first ping must not be taken for that of the second.
        await client.flush(30)
        frame = await client.request("$SYS.REQ.USER.INFO", timeout=30)

        assert b"server" in frame[3]
        assert client.connections == 1


async def test_question_that_a_break_interrupts_is_asked_again_within_its_time(
    server: NatsServer, open_client: Opener
) -> None:
    asked: list[Frame] = []
    async with open_client(server.url) as (other, _):
        await other.subscribe("q", asked.extend)
        await other.flush(30)
        with FaultProxy(server.port) as proxy:
            async with open_client(proxy.url) as (client, _):
                asking = asyncio.create_task(client.request("q", timeout=5, repeats=True))

                async def is_asked() -> bool:
                    return bool(asked)

                await eventually_async(is_asked)
                proxy.reset()
                # Of the time that its caller has given, not of what was left of it.
                with pytest.raises(RequestTimeoutError, match="no answer on q within 5 s"):
                    await asking
                assert client.connections == 2
        assert len({frame[1] for frame in asked}) == 2


async def test_close_frees_those_who_wait(fresh_server: NatsServer, open_client: Opener) -> None:
    async with open_client(fresh_server.url) as (client, _):
        fresh_server.pause()
        request = asyncio.ensure_future(client.request("a", timeout=60))
        flush = asyncio.ensure_future(client.flush(60))
        await asyncio.wait([request], timeout=0.05)

        await client.close()

        async with asyncio.timeout(30):
            for waiting in (request, flush):
                with pytest.raises(ConnectionClosedError):
                    await waiting
        with pytest.raises(ConnectionClosedError):
            await client.flush(1)
        fresh_server.resume()


@pytest.mark.finding(27)
async def test_closing_leaves_no_task_and_no_connection(
    server: NatsServer, open_client: Opener
) -> None:
    """nats-py's own tasks outlive its close (finding 27)."""
    before = asyncio.all_tasks()
    async with open_client(server.url) as (client, _):
        await client.flush(30)
    transport = client.raw._transport._io_writer.transport

    async def is_clean() -> bool:
        return asyncio.all_tasks() <= before and transport._sock is None

    await eventually_async(is_clean)
