"""A proxy that rewrites what a real server answers, for servers that lie.

It reads both directions: what a client asks names the kind of the answer that comes to its inbox.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    Lie: TypeAlias = "Callable[[Told], Told]"

_API = b"$JS.API."
# The actions of the API that have three words; all others have two.
_LONG = (b"MSG", b"LEADER", b"PEER")


@dataclass(frozen=True, slots=True)
class Told:
    """A message from the server.

    Attributes:
        kind: The request that it answers, such as `STREAM.INFO` or `publish`; `delivery` for a
            message of a consumer.
        subject: Where it goes.
        reply: Its reply subject; empty for none.
        headers: Its header block; empty for none.
        payload: Its payload.
    """

    kind: str
    subject: bytes
    reply: bytes
    headers: bytes
    payload: bytes


def truth(told: Told) -> Told:
    """Tell no lie."""
    return told


class Liar:
    """The proxy.

    Attributes:
        url: Where clients connect.
        lie: Rewrites each message from the server.
    """

    def __init__(self, url: str) -> None:
        self.url: str = url
        self.lie: Lie = truth

    def rewritten(self, told: Told, sid: bytes) -> bytes:
        """Return the frame of a message as the client gets it."""
        told = self.lie(told)
        head = b" ".join(filter(None, (told.subject, sid, told.reply)))
        size = len(told.headers) + len(told.payload)
        if told.headers:
            line = b"HMSG %b %d %d\r\n" % (head, len(told.headers), size)
        else:
            line = b"MSG %b %d\r\n" % (head, size)
        return line + told.headers + told.payload + b"\r\n"


@asynccontextmanager
async def lying(port: int) -> AsyncGenerator[Liar]:
    """Stand before the server at a port; it tells the truth until `lie` is set."""
    serving: dict[asyncio.Task[None] | None, list[asyncio.StreamWriter]] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = serving[asyncio.current_task()] = [writer]
        asked: dict[bytes, bytes] = {}
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
            writers.append(to_server)
            pumps = (_ask(reader, to_server, asked), _answer(from_server, writer, asked, liar))
            await asyncio.gather(*pumps, return_exceptions=True)
        for each in writers:
            each.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 26)
    liar = Liar(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield liar
    finally:
        server.close()
        for task, writers in tuple(serving.items()):
            for writer in writers:
                writer.transport.abort()
            if task is not None:
                task.cancel()
        await asyncio.gather(*filter(None, tuple(serving)), return_exceptions=True)


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[bytes, bytes]
) -> None:
    """Send on what the client says; notes which reply subject belongs to which question."""
    while line := await _line(reader, writer):
        verb, *fields = line.split()
        body = b""
        if verb in (b"PUB", b"HPUB"):
            body = await reader.readexactly(int(fields[-1]) + 2)
            if len(fields) > (2 if verb == b"PUB" else 3):
                asked[fields[1]] = fields[0]
        writer.write(line + body)


async def _answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    asked: dict[bytes, bytes],
    liar: Liar,
) -> None:
    """Send on what the server says, rewritten."""
    while line := await _line(reader, writer):
        verb, *fields = line.split()
        if verb not in (b"MSG", b"HMSG"):
            writer.write(line)
            continue
        size = int(fields[-1])
        body = (await reader.readexactly(size + 2))[:-2]
        header_size = int(fields[-2]) if verb == b"HMSG" else 0
        subject, sid, *reply = fields[: -1 if verb == b"MSG" else -2]
        told = Told("", subject, b"".join(reply), body[:header_size], body[header_size:])
        told = replace(told, kind=_kind(told, asked))
        writer.write(liar.rewritten(told, sid))


async def _line(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Return the next line; where one side hangs up, so does the other."""
    try:
        line = await reader.readline()
    except OSError:
        line = b""
    if not line:
        writer.close()
    return line


def _kind(told: Told, asked: dict[bytes, bytes]) -> str:
    if told.reply.startswith(b"$JS.ACK."):
        return "delivery"
    question = asked.get(told.subject, b"")
    if question.startswith(_API):
        words = question[len(_API) :].split(b".")
        return b".".join(words[: 3 if words[1:2] and words[1] in _LONG else 2]).decode()
    if question.startswith(b"$JS.ACK."):
        return "confirm"
    return "publish" if question else "event"
