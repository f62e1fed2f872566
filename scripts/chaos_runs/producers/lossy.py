"""A way to a server that loses single frames: acks, and messages on their way to the stream.

The fault proxy breaks connections and what is on them; TCP loses nothing else. A cluster does,
between its nodes, and so does this.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

_ACKS_LOST_PART = 0.006
_MESSAGES_LOST_PART = 0.0008
_CONNECT_S = 2.0
_LINE_MAX = 1 << 20


class LossyWay:
    """Carries connections to one of several servers, and loses frames.

    Args:
        urls: The servers, which may be away.
        draw: Says what is lost.

    Attributes:
        counts: What was lost.
        is_lossy: False carries everything.
    """

    def __init__(self, urls: Sequence[str], draw: random.Random) -> None:
        self.counts: Counter[str] = Counter()
        self.is_lossy: bool = True
        self._urls = urls
        self._draw = draw
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        assert self._server is not None  # noqa: S101 - It is open.
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def open(self) -> LossyWay:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_LINE_MAX)
        return self

    async def close(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        parts = urlsplit(self._draw.choice(self._urls))
        try:
            with suppress(OSError, TimeoutError, asyncio.CancelledError):
                async with asyncio.timeout(_CONNECT_S):
                    there = await asyncio.open_connection(
                        parts.hostname, parts.port, limit=_LINE_MAX
                    )
                await self._carry_both(reader, writer, *there)
        finally:
            writer.transport.abort()

    async def _carry_both(
        self,
        from_client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        from_server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        ways = [
            asyncio.ensure_future(self._carry(from_client, to_server)),
            asyncio.ensure_future(self._carry(from_server, to_client)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_server.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            body = b""
            if line.startswith((b"PUB ", b"HPUB ", b"MSG ", b"HMSG ")):
                body = await reader.readexactly(int(line.split()[-1]) + 2)
            if self._is_lost(line, body):
                continue
            writer.write(line + body)
            await writer.drain()

    def _is_lost(self, line: bytes, body: bytes) -> bool:
        if not self.is_lossy:
            return False
        if line.startswith(b"MSG ") and body.startswith((b'{"stream":', b'{"type":')):
            what, part = "acks", _ACKS_LOST_PART
        elif line.startswith((b"HPUB p.", b"PUB p.")):
            what, part = "messages", _MESSAGES_LOST_PART
        else:
            return False
        is_lost = self._draw.random() < part
        self.counts[what] += is_lost
        return is_lost
