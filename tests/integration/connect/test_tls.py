"""TLS to real servers with certificates made here: what is trusted, what is refused and why."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import JetStream, connect
from natsstream._wire.lane import FastLane
from natsstream.errors import AuthenticationError, ConfigError, ConnectError, TlsError
from natsstream.testing import NatsServer, find_nats_server
from natsstream.testing.ports import read_ports
from tests.support.certificates import Authority, Certificate
from tests.support.eventually import eventually, eventually_async
from tests.support.streams import fill, payload

if TYPE_CHECKING:
    from asyncio import Transport

pytestmark = pytest.mark.asyncio

KEY_PASSWORD = "k3y"  # noqa: S105 - Of a key that lives for this test.
# What the lane reads at once is 1 MiB: this is many of them, and many TLS records.
MESSAGES, MESSAGE_BYTES = 20_000, 500


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that the servers' certificates are signed by."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that nobody knows."""
    return Authority(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(scope="module")
def client(authority: Authority) -> Certificate:
    """The certificate of a client."""
    return authority.sign("client", names="email:ann@example.com")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Iterator[NatsServer]:
    """A server that insists on TLS."""
    with NatsServer(config=tls_config(authority.sign("server"))) as tls_server:
        yield tls_server


@pytest.fixture(scope="module")
def mutual(authority: Authority) -> Iterator[NatsServer]:
    """A server that wants a certificate of its clients."""
    more = f'ca_file: "{authority.ca}", verify: true'
    with NatsServer(config=tls_config(authority.sign("mutual"), more)) as tls_server:
        yield tls_server


def tls_config(own: Certificate, more: str = "") -> str:
    return f'tls {{ cert_file: "{own.cert}", key_file: "{own.key}", timeout: 5, {more} }}\n'


def transport_of(js: JetStream) -> Transport:
    nats: Any = js._client._nats  # pyright: ignore[reportPrivateUsage]
    return nats._transport._io_writer.transport


async def tls_version(url: str, **given: Any) -> str:
    """Return the TLS version of a new connection that does its work."""
    async with connect(url, **given) as js:
        await js.streams.ensure("ANY")
        return transport_of(js).get_extra_info("ssl_object").version()


async def test_server_that_a_given_authority_signed_is_trusted(
    server: NatsServer, authority: Authority
) -> None:
    for url in (server.url, server.url.replace("nats:", "tls:"), f"localhost:{server.port}"):
        assert await tls_version(url, ca=authority.ca) == "TLSv1.3"


async def test_server_of_an_unknown_authority_is_refused_with_the_option_that_names_it(
    server: NatsServer, stranger: Authority
) -> None:
    for given in ({}, {"ca": stranger.ca}):
        with pytest.raises(TlsError, match="certificate") as caught:
            await tls_version(server.url, **given)
        assert "issuer" in caught.value.detail
        assert "as ca" in caught.value.hint


async def test_server_with_another_name_is_refused(authority: Authority) -> None:
    own = authority.sign("elsewhere", names="DNS:nats.example.com,IP:127.0.0.2")
    with NatsServer(config=tls_config(own)) as elsewhere:
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(TlsError, match="mismatch") as caught:
                await tls_version(f"nats://{host}:{elsewhere.port}", ca=authority.ca)
            assert "name or address" in caught.value.hint


async def test_server_whose_certificate_has_expired_is_refused(authority: Authority) -> None:
    with NatsServer(config=tls_config(authority.sign("expired", days=-1))) as expired:
        with pytest.raises(TlsError, match="expired") as caught:
            await tls_version(expired.url, ca=authority.ca)
        assert "renew it" in caught.value.hint


@pytest.mark.parametrize("given", [{"servers": "tls"}, {"ca": True}, {"tls_first": True}])
async def test_server_without_tls_gets_no_credentials_when_tls_was_asked_for(
    authority: Authority, given: dict[str, Any]
) -> None:
    more = {"ca": authority.ca} if "ca" in given else {"tls_first": given.get("tls_first", False)}
    with NatsServer(config='trace: true, authorization { token: "secret" }') as plain:
        url = plain.url.replace("nats:", "tls:") if "servers" in given else plain.url
        with pytest.raises(TlsError):
            await tls_version(url, token="wrong", **more)  # noqa: S106 - Never sent.

        assert "CONNECT" not in plain.log_tail(1000)
        with pytest.raises(AuthenticationError):
            await tls_version(plain.url, token="wrong")  # noqa: S106 - Sent, for comparison.
        assert "CONNECT" in plain.log_tail(1000)


async def test_tls_that_is_only_offered_is_taken_when_asked_for(authority: Authority) -> None:
    config = tls_config(authority.sign("offered")) + "allow_non_tls: true\n"
    with NatsServer(config=config) as offered:
        assert await tls_version(offered.url, ca=authority.ca) == "TLSv1.3"
        async with connect(offered.url) as js:
            assert transport_of(js).get_extra_info("ssl_object") is None


async def test_client_with_a_certificate_is_let_in(
    mutual: NatsServer, authority: Authority, client: Certificate
) -> None:
    given = {"ca": authority.ca, "cert": client.cert, "key": client.key}
    assert await tls_version(mutual.url, **given) == "TLSv1.3"

    locked = authority.sign("locked", password=KEY_PASSWORD)
    given = {"ca": authority.ca, "cert": locked.cert, "key": locked.key}
    assert await tls_version(mutual.url, key_password=KEY_PASSWORD, **given) == "TLSv1.3"


async def test_client_without_a_certificate_is_told_to_give_one(
    mutual: NatsServer, authority: Authority, stranger: Authority
) -> None:
    with pytest.raises(TlsError, match="refused this client") as caught:
        await tls_version(mutual.url, ca=authority.ca)
    assert "give cert and key" in caught.value.hint

    other = stranger.sign("other")
    with pytest.raises(TlsError, match="refused this client") as caught:
        await tls_version(mutual.url, ca=authority.ca, cert=other.cert, key=other.key)
    assert "signed by a CA that the server knows" in caught.value.hint


async def test_certificate_may_name_the_user(authority: Authority, client: Certificate) -> None:
    more = f'ca_file: "{authority.ca}", verify_and_map: true'
    users = 'authorization { users: [ {user: "ann@example.com"} ] }'
    other = authority.sign("bob", names="email:bob@example.com")
    with NatsServer(config=tls_config(authority.sign("mapping"), more) + users) as mapping:
        given = {"ca": authority.ca, "cert": client.cert, "key": client.key}
        assert await tls_version(mapping.url, **given) == "TLSv1.3"
        with pytest.raises(AuthenticationError):
            await tls_version(mapping.url, ca=authority.ca, cert=other.cert, key=other.key)


def route_of(server: NatsServer) -> str:
    """Return the address that the server chose for routes."""
    (listener,) = server._listeners["cluster"]  # pyright: ignore[reportPrivateUsage]
    return f"nats://127.0.0.1:{listener.rpartition(':')[2]}"


async def test_server_that_the_cluster_told_of_is_checked_by_the_name_that_was_given(
    authority: Authority,
) -> None:
    """Servers tell each other's addresses, and certificates often hold names alone."""
    own = authority.sign("cluster", names="DNS:localhost")

    def config(*routes: str) -> str:
        cluster = f'name: c, listen: "127.0.0.1:-1", routes: {json.dumps(routes)}'
        return f"{tls_config(own)} cluster {{ {cluster} }}"

    with (
        NatsServer(config=config(), jetstream=False) as first,
        NatsServer(config=config(route_of(first)), jetstream=False) as second,
    ):
        async with connect(f"localhost:{first.port}", ca=authority.ca) as js:
            client = js._client  # pyright: ignore[reportPrivateUsage]
            told = f"127.0.0.1:{second.port}"

            async def knows_second() -> bool:
                return told in {server.netloc for server in client._nats.servers}  # pyright: ignore[reportPrivateUsage]

            await eventually_async(knows_second)
            first.kill()

            async def is_at_second() -> bool:
                return client.is_connected and js.url == f"nats://{told}"

            await eventually_async(is_at_second)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ca": "server-key.pem"}, "holds no certificates"),
        ({"cert": "server-key.pem"}, "cannot be used"),
        ({"key": "server-key.pem"}, "mismatch"),
        ({"key": "server.csr"}, "cannot be used"),
        ({"cert": "sealed.pem", "key": "sealed-key.pem"}, "key_password"),
        ({"cert": "sealed.pem", "key": "sealed-key.pem", "key_password": "no"}, "key_password"),
    ],
)
async def test_file_that_is_no_certificate_or_key_is_told_before_anything_is_sent(
    server: NatsServer,
    authority: Authority,
    client: Certificate,
    change: dict[str, str],
    said: str,
) -> None:
    authority.sign("sealed", password=KEY_PASSWORD)
    files = {"ca": authority.ca, "cert": client.cert, "key": client.key}
    changed = {
        name: value if name == "key_password" else authority.folder / value
        for name, value in change.items()
    }

    # A key with a password must not make OpenSSL ask the terminal, which would hang.
    with pytest.raises(ConfigError, match=said):
        await tls_version(server.url, **{**files, **changed})


@contextmanager
def handshake_first(own: Certificate, folder: Path, more: str = "") -> Generator[str]:
    """A server that says nothing before TLS, so that `NatsServer` would wait for it for ever."""
    config = folder / "server.conf"
    config.write_text(tls_config(own, f"handshake_first: true, {more}"))
    flags = ["-c", config, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", folder]
    files = ["--ports_file_dir", folder, "--log", folder / "log"]
    process = subprocess.Popen([find_nats_server(), *flags, *files])

    def port() -> int:
        told = read_ports(folder, process.pid)
        return int(told["nats"][0].rpartition(":")[2]) if told else 0

    try:
        yield f"nats://127.0.0.1:{eventually(port)}"
    finally:
        process.kill()
        process.wait(20)


async def test_tls_first_reaches_a_server_that_says_nothing_before(
    authority: Authority, tmp_path: Path
) -> None:
    with handshake_first(authority.sign("first"), tmp_path) as url:
        assert await tls_version(url, ca=authority.ca, tls_first=True) == "TLSv1.3"
        with pytest.raises(ConnectError) as caught:
            await tls_version(url, ca=authority.ca, connect_timeout=0.3)

    assert "tls_first=True" in caught.value.hint


async def test_a_client_certificate_is_asked_for_before_the_server_has_greeted(
    authority: Authority, tmp_path: Path
) -> None:
    more = f'ca_file: "{authority.ca}", verify: true'
    with handshake_first(authority.sign("first"), tmp_path, more) as url:
        with pytest.raises(TlsError) as caught:
            await tls_version(url, ca=authority.ca, tls_first=True)
        assert "give cert and key" in caught.value.hint

        own = authority.sign("client")
        given = {"cert": own.cert, "key": own.key}
        assert await tls_version(url, ca=authority.ca, tls_first=True, **given) == "TLSv1.3"


async def test_tls_first_to_a_server_that_greets_is_told(
    server: NatsServer, authority: Authority
) -> None:
    # Whether the greeting or the handshake is seen first is a race of the two programs.
    with pytest.raises(ConnectError) as caught:
        await tls_version(server.url, ca=authority.ca, tls_first=True, connect_timeout=0.5)

    assert "tls_first" in caught.value.hint


async def test_lane_reads_a_stream_over_tls(
    server: NatsServer, authority: Authority, stream_name: str
) -> None:
    async with connect(server.url, ca=authority.ca) as js:
        assert isinstance(transport_of(js).get_protocol(), FastLane)
        stream = await fill(js, stream_name, MESSAGES, size=MESSAGE_BYTES)

        count = 0
        async for message in stream.read():
            assert message.data == payload(count, MESSAGE_BYTES)
            count += 1

    assert count == MESSAGES


async def test_connection_over_tls_comes_back_and_has_its_lane(authority: Authority) -> None:
    with NatsServer(config=tls_config(authority.sign("restarted"))) as restarted:
        async with connect(restarted.url, ca=authority.ca) as js:
            client = js._client  # pyright: ignore[reportPrivateUsage]
            restarted.kill()
            restarted.start()

            async def is_back() -> bool:
                return client.connections > 1 and client.is_connected

            await eventually_async(is_back)
            assert isinstance(transport_of(js).get_protocol(), FastLane)
            await js.streams.ensure("AGAIN")
