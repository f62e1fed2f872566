"""How much the peer has not taken yet, told by real sockets."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream._wire.watchdog import unsent_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.asyncio

MIB = 1 << 20


@pytest_asyncio.fixture
async def connection() -> AsyncIterator[tuple[asyncio.Transport, socket.socket]]:
    """A transport that has more written than fits on its way, and the peer's end."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        transport, _ = await loop.create_connection(asyncio.Protocol, host, port)
        far, _ = listener.accept()
    far.settimeout(0)
    while not transport.get_write_buffer_size():
        transport.write(bytes(MIB))
    yield transport, far
    transport.abort()
    far.close()


async def test_bytes_that_the_peer_has_not_taken_fall_to_none_while_it_reads(
    connection: tuple[asyncio.Transport, socket.socket],
) -> None:
    transport, far = connection
    loop = asyncio.get_running_loop()
    before = unsent_bytes(transport)

    async with asyncio.timeout(30):
        while unsent_bytes(transport):
            # All may be read already, and only the peer's word of it be missing.
            with suppress(TimeoutError):
                await asyncio.wait_for(loop.sock_recv(far, MIB), 0.05)

    assert before > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what its kernel holds")
async def test_what_the_kernel_holds_is_counted_too(
    connection: tuple[asyncio.Transport, socket.socket],
) -> None:
    transport, _ = connection

    assert unsent_bytes(transport) > transport.get_write_buffer_size()


async def test_connection_that_is_gone_has_nothing_unsent(
    connection: tuple[asyncio.Transport, socket.socket],
) -> None:
    connection[0].abort()

    assert unsent_bytes(connection[0]) == 0
    assert unsent_bytes(None) == 0
