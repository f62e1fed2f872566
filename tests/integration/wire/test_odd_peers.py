"""Servers that break, refuse and lie after the handshake: the connection goes on with them."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import TYPE_CHECKING, cast

import pytest

from natsstream._wire import nats_py
from natsstream._wire.client import Client
from natsstream._wire.server_info import NO_LIMIT_BYTES, URLS_MAX
from natsstream.errors import (
    AuthenticationError,
    ConnectError,
    PermissionDeniedError,
    ProtocolError,
    RequestTimeoutError,
)
from natsstream.events import Connected, Disconnected, PeerUnreadable, ServersChanged
from natsstream.options import ConnectOptions
from tests.support.eventually import eventually_async
from tests.support.peers import INFO, Peer, scripted

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream.events import ConnectionEvent
    from natsstream.testing import NatsServer
    from tests.integration.wire.conftest import Opener

pytestmark = pytest.mark.asyncio


async def good(peer: Peer) -> None:
    """Greet, answer pings, and hang up when something is published to `die`."""
    await peer.greet()
    await peer.answer_pings(stop=b"PUB die")


async def greet_and_leave(peer: Peer) -> None:
    """Greet, wait for the first command, and hang up."""
    await peer.greet()
    await peer.reader.readline()


async def reaches(client: Client, connections: int) -> None:
    """Wait until the client is connected for the n-th time."""

    async def is_there() -> bool:
        return client.is_connected and client.connections >= connections

    await eventually_async(is_there, within_s=40)


def die(client: Client) -> None:
    """Ask a `good` peer to hang up."""
    client.write(client.publish_command("die", "", b"", b""))


@pytest.mark.parametrize("line", [b"INFO {bad\r\n", b"INFO 5\r\n", b"INFO \xff\r\n"])
async def test_info_that_can_not_be_read_costs_the_connection_and_not_its_return(
    line: bytes, open_client: Opener
) -> None:
    """nats-py's read loop ends on it without a word: no ping is answered, no break seen."""

    async def spoils(peer: Peer) -> None:
        await peer.greet()
        peer.writer.write(line)
        await peer.answer_pings()

    async with scripted(spoils, good) as url, open_client(url) as (client, _):
        await reaches(client, 2)

        await client.flush(30)


@pytest.mark.parametrize("address", [b"[::1", b"h:99999", b"", b"h:x"])
@pytest.mark.parametrize("is_first", [True, False])
async def test_server_address_that_is_none_is_left_out(
    address: bytes,
    is_first: bool,  # noqa: FBT001 - a parameter.
    open_client: Opener,
) -> None:
    urls = b',"connect_urls":["%b","[::1]:4223","10.0.0.9:4222"]' % address

    async def tells(peer: Peer) -> None:
        await peer.greet(urls if is_first else b"")
        if not is_first:
            peer.writer.write(INFO % urls)
        await peer.answer_pings()

    async with scripted(tells) as url, open_client(url) as (client, _):
        await client.flush(30)

        assert client.connections == 1
        known = {server.netloc for server in client.raw.servers}
        assert known == {url.removeprefix("nats://"), "[::1]:4223", "10.0.0.9:4222"}


async def test_servers_that_left_the_cluster_are_forgotten(open_client: Opener) -> None:
    """Where addresses change with each restart, the list would grow without an end."""
    connections = 0

    async def moves(peer: Peer) -> None:
        nonlocal connections
        connections += 1
        port = cast("tuple[str, int]", peer.writer.get_extra_info("sockname"))[1]
        # Port 9 of this machine refuses at once; the server itself has a second name.
        told = f',"connect_urls":["127.0.0.{connections + 1}:9","localhost:{port}"]'
        await peer.greet(told.encode())
        await peer.answer_pings(stop=b"PUB die")

    async with scripted(moves) as url:
        named = url.replace("127.0.0.1", "u:p@localhost")
        async with open_client(named) as (client, _):
            for count in range(1, 5):
                await reaches(client, count)
                pool = [server.netloc for server in client.raw.servers]
                die(client)
                await reaches(client, count + 1)

                own = named.removeprefix("nats://")
                assert sorted(pool) == [f"127.0.0.{connections}:9", own]


async def test_sign_in_that_takes_too_long_is_tried_again(open_client: Opener) -> None:
    """A busy server says so to good credentials; it is no reason to give up."""

    async def busy(peer: Peer) -> None:
        await peer.greet(answer=b"-ERR 'Authentication Timeout'\r\n")

    scripts = [greet_and_leave, busy, busy, busy, busy, busy, good]
    async with scripted(*scripts) as url, open_client(url) as (client, _):
        await reaches(client, 2)


async def test_first_sign_in_that_takes_too_long_is_no_matter_of_credentials() -> None:
    async def busy(peer: Peer) -> None:
        await peer.greet(answer=b"-ERR 'Authentication Timeout'\r\n")

    async with scripted(busy) as url:
        with pytest.raises(ConnectError, match="no server answered") as raised:
            await Client.connect(ConnectOptions(servers=url))

    assert not isinstance(raised.value, AuthenticationError)
    assert "Timeout" in raised.value.detail


async def test_ping_before_the_pong_belongs_to_the_handshake(open_client: Opener) -> None:
    """nats-server pings two seconds after CONNECT, also one whose own ping it has not read."""

    async def pings_first(peer: Peer) -> None:
        await peer.greet(answer=b"PING\r\n")
        await peer.until(b"PONG\r\n")
        peer.writer.write(b"PONG\r\n")
        await peer.answer_pings()

    async with scripted(pings_first) as url, open_client(url) as (client, _):
        await client.flush(30)

        assert client.connections == 1


async def test_server_that_is_full_is_tried_until_it_has_room(open_client: Opener) -> None:
    async def full(peer: Peer) -> None:
        await peer.greet(answer=b"-ERR 'maximum connections exceeded'\r\n")

    scripts = [greet_and_leave, full, full, full, full, full, good]
    async with scripted(*scripts) as url, open_client(url) as (client, _):
        await reaches(client, 2)


async def test_server_that_accepts_and_says_nothing_is_left_in_time(
    server: NatsServer, open_client: Opener
) -> None:
    async def mute(peer: Peer) -> None:
        await peer.reader.read()

    async with (
        scripted(greet_and_leave, mute) as url,
        open_client(url, server.url, connect_timeout=0.3) as (client, _),
    ):
        await reaches(client, 2)

        assert client.url == server.url


async def test_error_that_does_not_close_the_connection_keeps_it(open_client: Opener) -> None:
    async def complains(peer: Peer) -> None:
        await peer.greet()
        await peer.until(b"PUB")
        peer.writer.write(b"-ERR 'Invalid Publish Subject'\r\n")
        await peer.answer_pings()

    async with scripted(complains) as url, open_client(url) as (client, events):
        client.write(client.publish_command("a", "", b"", b""))
        await client.flush(30)

        assert client.connections == 1
        assert [type(each).__name__ for each in events] == ["ServerComplaint"]


async def test_error_that_closes_the_connection_is_its_reason(open_client: Opener) -> None:
    async def closes(peer: Peer) -> None:
        await good(peer)
        peer.writer.write(b"-ERR 'Slow Consumer'\r\n")
        await peer.writer.drain()

    async with scripted(closes, good) as url, open_client(url) as (client, events):
        die(client)
        await reaches(client, 2)

        breaks = [each for each in events if isinstance(each, Disconnected)]
        assert [each.reason for each in breaks] == ["Slow Consumer"]
        assert breaks[0].url == url


async def test_reset_is_the_reason_of_a_break(open_client: Opener) -> None:
    async def resets(peer: Peer) -> None:
        await peer.greet()
        await peer.until(b"PUB")
        peer.writer.transport.abort()

    async with scripted(resets, good) as url, open_client(url) as (client, events):
        client.write(client.publish_command("a", "", b"", bytes(100_000)))
        await reaches(client, 2)

        breaks = [each for each in events if isinstance(each, Disconnected)]
        assert breaks[0].reason != ""


async def test_requests_are_possible_again_when_the_next_server_allows_answers(
    open_client: Opener,
) -> None:
    async def forbids(peer: Peer) -> None:
        await peer.greet()
        inbox = (await peer.until(b"SUB")).split()[1]
        peer.writer.write(b"-ERR 'Permissions Violation for Subscription to \"%b\"'\r\n" % inbox)
        await peer.answer_pings(stop=b"PUB die")

    async with scripted(forbids, answers) as url, open_client(url) as (client, _):
        await client.flush(30)
        with pytest.raises(PermissionDeniedError):
            await client.request("a", timeout=30)
        die(client)
        await reaches(client, 2)

        assert (await client.request("a", timeout=30))[3] == b"ok"


async def test_listener_that_raises_does_not_end_the_reconnects(open_client: Opener) -> None:
    def fails(event: ConnectionEvent) -> None:
        raise RuntimeError(type(event).__name__)

    async with scripted(good) as url, open_client(url) as (client, events):
        client.listen(fails)
        die(client)
        await reaches(client, 2)

        assert [type(each) for each in events] == [Disconnected, Connected]


async def test_nothing_grows_with_reconnects(
    monkeypatch: pytest.MonkeyPatch, open_client: Opener
) -> None:
    """An outage is many errors, a bad link many connections: neither may stay in memory."""
    monkeypatch.setattr(nats_py, "RECONNECT_WAIT_S", 0.0005)
    connections = 0

    async def short(peer: Peer) -> None:
        nonlocal connections
        connections += 1
        refuses = connections % 4 == 0  # Also attempts that fail.
        await peer.greet(answer=b"-ERR 'full'\r\n" if refuses else b"PONG\r\n")
        await peer.until(b"PING")
        peer.writer.write(b"PONG\r\n")

    async def accepted(count: int) -> None:
        # The peer counts: it hangs up so soon that the client is hardly ever seen connected.
        async def are_there() -> bool:
            return connections >= count

        await eventually_async(are_there, within_s=40)

    async with scripted(short) as url, open_client(url) as (client, events):
        await accepted(40)
        before = count_of(Exception, asyncio.Task, asyncio.Future, bytearray, nats_py.FastLane)
        await accepted(240)
        after = count_of(Exception, asyncio.Task, asyncio.Future, bytearray, nats_py.FastLane)
        events.clear()

    assert after <= before + 20
    assert len(client.raw._pongs) <= 1


def count_of(*kinds: type) -> int:
    gc.collect()
    return sum(isinstance(each, kinds) for each in gc.get_objects())


async def test_bytes_written_to_a_socket_that_has_died_wait_for_the_next_one(
    open_client: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    """Between the break and the moment at which nats-py knows; asyncio warns of each write."""
    received: list[bytes] = []

    async def note(peer: Peer) -> None:
        await peer.greet()
        while line := await peer.reader.readline():
            received.append(line)
            if line == b"PING\r\n":
                peer.writer.write(b"PONG\r\n")

    async with scripted(good, note) as url, open_client(url) as (client, _):
        client.raw.transport.abort()
        for number in range(50):
            client.write(client.publish_command(f"n.{number}", "", b"", b""))
        await reaches(client, 2)
        await client.flush(30)

    published = [line.split()[1] for line in received if line.startswith(b"PUB")]
    assert published == [b"n.%d" % number for number in range(50)]
    assert [each for each in caplog.records if each.name == "asyncio"] == []


@pytest.mark.parametrize("is_idle", [True, False])
async def test_ping_that_is_not_sent_is_not_waited_for_by_the_next_one(
    is_idle: bool,  # noqa: FBT001 - a parameter.
    open_client: Opener,
) -> None:
    """nats-py keeps one future a PING: one too many would answer each flush too early."""
    async with scripted(good) as url, open_client(url) as (client, _):
        client.raw.transport.abort()
        begin: Callable[[], None] = client._ping  # pyright: ignore[reportPrivateUsage]
        if is_idle:
            begin()
        assert client.raw._pongs == []
        await reaches(client, 2)
        await client.flush(30)

        assert client.raw._pongs == []


async def answers(peer: Peer) -> None:
    """Greet, answer pings and echo requests."""
    await peer.greet()
    sid = b""
    while line := await peer.reader.readline():
        words = line.split()
        if words[:1] == [b"SUB"]:
            sid = words[-1]
        if words[:1] == [b"PING"]:
            peer.writer.write(b"PONG\r\n")
        if words[:1] == [b"PUB"] and len(words) > 3:
            peer.writer.write(b"MSG %b %b 2\r\nok\r\n" % (words[2], sid))


NONSENSE = [
    b"x" * 20_000,
    b"x" * 20_000 + b"\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"\x16\x03\x01" * 10_000,
    b"\r\n" * 10_000,
    b"FOO bar\r\n" * 5_000,
    b"MSG a 1 999999999\r\n",
    b"MSG a\x0bb 77 " + b"5" * 5_000 + b"\r\n",
    b"MSG a\x0bb 77 5\r\nhello\r\n" * 500,
    b"INFO " + b"[" * 100_000 + b"]" * 100_000 + b"\r\n",
    b'INFO {"max_payload":"x"}\r\n',
    b'INFO {"max_payload":null}\r\n',
    b'INFO {"max_payload":-7}\r\n',
    b'INFO {"max_payload":{}}\r\n',
    b'INFO {"nonce":5}\r\n',
    b"INFO " + b" " * (2 << 20),
]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("nonsense", NONSENSE, ids=range(len(NONSENSE)))
async def test_bytes_that_are_no_nats_end_the_connection_with_a_typed_event(
    nonsense: bytes, open_client: Opener
) -> None:
    """nats-py alone would wait for ever behind more than 4 KiB of them."""

    async def spoils(peer: Peer) -> None:
        await peer.greet()
        await peer.until(b"PUB spoil")
        peer.writer.write(nonsense)
        await peer.answer_pings()

    async with scripted(spoils, answers) as url, open_client(url) as (client, events):
        client.write(client.publish_command("spoil", "", b"", b""))
        await reaches(client, 2)

        assert (await client.request("a", timeout=30))[3] == b"ok"
        assert [type(each) for each in events] == [PeerUnreadable, Disconnected, Connected]
        told = events[0]
        assert isinstance(told, PeerUnreadable)
        assert isinstance(told.error, ProtocolError)
        assert told.url == url
        assert cast("Disconnected", events[1]).reason == told.error.message


async def test_flood_that_is_no_nats_costs_no_memory(open_client: Opener) -> None:
    async def floods(peer: Peer) -> None:
        await peer.greet()
        await peer.until(b"PUB spoil")
        for _ in range(1_000):
            peer.writer.write(b"x" * 1_000_000)
            await peer.writer.drain()

    async with scripted(floods, answers) as url, open_client(url) as (client, _):
        tracemalloc.start()
        try:
            client.write(client.publish_command("spoil", "", b"", b""))
            await reaches(client, 2)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak < 64 << 20


async def test_frame_that_claims_a_gigabyte_costs_what_comes_of_it(open_client: Opener) -> None:
    async def claims(peer: Peer) -> None:
        await peer.greet(b',"max_payload":999999999')
        await peer.until(b"PUB spoil")
        peer.writer.write(b"MSG a 1 999999999\r\n" + b"x" * 1_000)
        await peer.answer_pings()

    async with scripted(claims) as url, open_client(url) as (client, _):
        tracemalloc.start()
        try:
            client.write(client.publish_command("spoil", "", b"", b""))
            await asyncio.sleep(0)
            pong = asyncio.create_task(client.flush(0.5))
            with pytest.raises(RequestTimeoutError):
                await pong  # It belongs to the payload now.
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak < 32 << 20


async def test_info_with_many_addresses_is_taken_at_once_and_in_part(open_client: Opener) -> None:
    """Counts the comparisons: nats-py alone made one for each pair of addresses."""
    urls = b",".join(
        b'"10.%d.%d.%d:4222"' % (n >> 16, n >> 8 & 255, n & 255) for n in range(20_000)
    )

    async def tells(peer: Peer) -> None:
        await peer.greet()
        await peer.until(b"PUB spoil")
        for _ in range(3):
            peer.writer.write(INFO % (b',"connect_urls":[%b]' % urls))
        await peer.answer_pings()

    async with scripted(tells) as url, open_client(url) as (client, events):
        client.write(client.publish_command("spoil", "", b"", b""))
        await client.flush(30)
        await eventually_async(lambda: _has_told(events))

        assert client.connections == 1
        assert len(client.raw.servers) == 1 + URLS_MAX


async def _has_told(events: list[ConnectionEvent]) -> bool:
    return any(isinstance(each, ServersChanged) for each in events)


async def test_limit_that_a_server_lifts_is_no_limit(open_client: Opener) -> None:
    """nats-server takes `max_payload: -1`, and says so."""
    async with (
        scripted(_greet_without_limit) as url,
        open_client(url) as (client, _),
    ):
        assert client.max_payload_bytes == NO_LIMIT_BYTES
        assert client.publish_command("a", "", b"", bytes(2 << 20))


async def _greet_without_limit(peer: Peer) -> None:
    peer.writer.write(b'INFO {"server_id":"x","version":"2.15.1","max_payload":-1}\r\n')
    await peer.until(b"PING\r\n")
    peer.writer.write(b"PONG\r\n")
    await peer.answer_pings()
