"""A program that speaks as much NATS as a test scripts; for what no real server does on demand."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    Script = Callable[["Peer"], Awaitable[None]]

INFO = b'INFO {"server_id":"x","version":"2.15.1","headers":true,"max_payload":1048576%b}\r\n'


class Peer:
    """The server's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def greet(self, more: bytes = b"", answer: bytes = b"PONG\r\n") -> None:
        """Do the handshake: INFO, with `more` in it, and `answer` to the first PING."""
        self.writer.write(INFO % more)
        await self.until(b"PING\r\n")
        self.writer.write(answer)

    async def until(self, start: bytes) -> bytes:
        """Return the next line that starts so; nothing when the client has hung up.

        Pings before it are answered: `connect` waits for one.
        """
        while line := await self.reader.readline():
            if line.startswith(start):
                return line
            self._answer(line)
        return b""

    async def answer_pings(self, stop: bytes = b"\n") -> None:
        """Answer pings until a line starts with `stop`, or the client has hung up."""
        while (line := await self.reader.readline()) and not line.startswith(stop):
            self._answer(line)

    def _answer(self, line: bytes) -> None:
        if line == b"PING\r\n":
            self.writer.write(b"PONG\r\n")


@asynccontextmanager
async def scripted(*scripts: Script) -> AsyncGenerator[str]:
    """Listen, and run one script for each connection, the last for all others; gives the URL.

    A connection is closed when its script ends.
    """
    left: Sequence[Script] = scripts
    serving: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        script, left = left[0], left[1:] or left
        task = asyncio.current_task()
        serving[task] = writer
        # Cancelled only below; asyncio would complain of a handler that ends so.
        with suppress(OSError, asyncio.CancelledError):
            await script(Peer(reader, writer))
        writer.close()
        with suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()
        del serving[task]

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task, writer in tuple(serving.items()):
            writer.transport.abort()
            if task is not None:
                task.cancel()
        await asyncio.gather(*filter(None, tuple(serving)))
