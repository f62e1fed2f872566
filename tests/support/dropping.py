"""A relay between a client and its server that keeps chosen frames to itself.

A network of TCP loses nothing, a cluster does: what a server has sent to another one that dies, or
to an interest that the other has just forgotten.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    Wanted: TypeAlias = Callable[[bytes, bytes], bool]


class Relay:
    """A way to a server; `drop` says what gets lost on it.

    Attributes:
        url: Where clients connect to.
        dropped: The lines of the frames that were lost.
    """

    def __init__(self, port: int) -> None:
        self.url = ""
        self.dropped: list[bytes] = []
        self._port = port
        self._wanted: Wanted | None = None
        self._left = 0
        self._tasks: set[asyncio.Task[None] | None] = set()
        self._has_dropped = asyncio.Event()

    def drop(self, wanted: Wanted, *, count: int = 1) -> None:
        """Lose the next frames of the server for which `wanted(line, body)` is true."""
        self._wanted, self._left = wanted, count
        self._has_dropped.clear()

    async def wait_dropped(self) -> None:
        """Wait until all that was to be lost is lost."""
        async with asyncio.timeout(30):
            await self._has_dropped.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        self._tasks.add(asyncio.current_task())
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
        carrying = {
            asyncio.ensure_future(_carry(reader, server_writer)),
            asyncio.ensure_future(self._carry_frames(server_reader, writer)),
        }
        # Cancelled at the end only; asyncio would complain of a handler that ends so.
        with suppress(asyncio.CancelledError):
            await asyncio.wait(carrying, return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, server_writer):
            end.transport.abort()
        for each in carrying:
            each.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)
        self._tasks.discard(asyncio.current_task())

    async def close(self) -> None:
        """End all connections."""
        tasks = [task for task in self._tasks if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry_frames(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while line := await reader.readline():
            body = b""
            if line.startswith((b"MSG ", b"HMSG ")):
                body = await reader.readexactly(int(line.split()[-1]) + 2)
            if self._left and self._wanted is not None and self._wanted(line, body):
                self._left -= 1
                self.dropped.append(line)
                if not self._left:
                    self._has_dropped.set()
                continue
            writer.write(line + body)
            await writer.drain()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    raise asyncio.IncompleteReadError(b"", None)


def is_pull_end(line: bytes, body: bytes) -> bool:
    """Tell whether a frame is a status that ends a pull."""
    return line.startswith(b"HMSG") and body.startswith((b"NATS/1.0 4", b"NATS/1.0 5"))


def is_heartbeat(line: bytes, body: bytes) -> bool:
    """Tell whether a frame says that a pull is open."""
    return line.startswith(b"HMSG") and body.startswith(b"NATS/1.0 100")


def is_delivery(line: bytes, body: bytes) -> bool:
    """Tell whether a frame is a message of a consumer."""
    return b" $JS.ACK." in line and not body.startswith(b"NATS/1.0 ")


@asynccontextmanager
async def dropping(port: int) -> AsyncGenerator[Relay]:
    """Carry connections to a server's port on 127.0.0.1."""
    relay = Relay(port)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield relay
    finally:
        server.close()
        await relay.close()
