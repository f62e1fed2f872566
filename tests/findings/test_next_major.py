"""Finding 28: a server of a major version that is yet to come.

nats-py 2.16 asks whether the second number of the version is 9 or more, which 3.0 is not.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import Expect, connect
from natsstream.testing import NatsServer
from tests.support.ordered import take_sequences

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.asyncio

# Where the account may not be asked for its API level, the version alone decides.
WITHOUT_LEVEL = """
authorization { users: [
  { user: u, password: p, permissions: { publish: { deny: ["$JS.API.INFO"] } } } ] }
"""
WITH_LEVEL = "authorization { users: [ { user: u, password: p } ] }"


@asynccontextmanager
async def calling_itself(version: str, server: NatsServer) -> AsyncGenerator[str]:
    """Stand before a server and change the version in what it says of itself; gives the URL.

    It says so when it greets and once more after the handshake, each time on one line.
    """
    pumps: set[asyncio.Task[None]] = set()
    old = b'"version":"%s"' % server.version.encode()
    new = b'"version":"%s"' % version.encode()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            try:
                async for line in reader:  # Whole ones, however they arrive.
                    writer.write(line.replace(old, new))
                    await writer.drain()
            finally:
                writer.close()
                await writer.wait_closed()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", server.port)
        pairs = ((from_server, writer), (reader, to_server))
        pumps.update(asyncio.ensure_future(pump(*pair)) for pair in pairs)

    front = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with front:
        yield f"nats://127.0.0.1:{front.sockets[0].getsockname()[1]}"
        # The client has closed its side, and each side's end is passed on to the other.
        async with asyncio.timeout(30):
            await asyncio.gather(*pumps)


@pytest.mark.sampled_variants
@pytest.mark.finding(28)
@pytest.mark.parametrize("config", [WITH_LEVEL, WITHOUT_LEVEL], ids=["level", "version"])
@pytest.mark.parametrize("version", ["3.0.0", "3.1.0-beta.2", "10.0.1", "2.100.0"])
async def test_server_of_the_next_major_version_has_every_feature(
    version: str, config: str
) -> None:
    """Streams, messages and consumers ask for what servers of 2.10 to 2.12 brought."""
    with NatsServer(config=config) as server:
        async with (
            calling_itself(version, server) as url,
            connect(url, user="u", password="p") as js,  # noqa: S106 - a test's own.
        ):
            stream = await js.streams.create(
                "S", subjects=["s.>"], allow_msg_ttl=True, allow_atomic=True, metadata={"a": "b"}
            )
            await js.publish("s.a", b"1", ttl=60)
            held = Expect(last_subject_seq=1, subject="s.a")
            await js.publish("s.b", b"2", expect=held)
            async with stream.ordered(filters=["s.a", "s.b"]) as tail:
                found = await take_sequences(tail, 2)
            since = await stream.get(start_time=stream.cached.created_ns)

            info = js._client.server_info  # pyright: ignore[reportPrivateUsage]
            assert info["version"] == version
    assert found == [1, 2]
    assert since is not None
    assert since.sequence == 1
