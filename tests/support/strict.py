"""A parser of what clients send, as strict as nats-server, and a proxy that keeps it all.

Written from nats-server's own grammar (`server/parser.go`), not from ours: a line feed ends a line,
space and tab end a word, a payload has the size that its line says and CR LF behind it.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

CONTROL_LINE_BYTES_MAX = 4_096
_WORD = re.compile(rb"[^\x00\t\n\r ]+")
_SUBJECT = re.compile(rb"[^\x00-\x20\x7f]+")
_COUNTS = {b"PUB": (2, 3), b"HPUB": (3, 4), b"SUB": (2, 3), b"UNSUB": (1, 2)}
_BARE = (b"PING", b"PONG")


class GrammarError(AssertionError):
    """The client sent what a server would end the connection for, or what could mislead it."""


@dataclass(frozen=True)
class Command:
    """One command of a client.

    Attributes:
        words: The words of its line.
        headers: Its header block.
        payload: Its payload.
    """

    words: tuple[bytes, ...]
    headers: bytes = b""
    payload: bytes = b""

    @property
    def subject(self) -> bytes:
        """Subject of a PUB, HPUB or SUB."""
        return self.words[1]


@dataclass
class StrictParser:
    """Reads the bytes of one client.

    Attributes:
        checks_subjects: Whether subjects must be such as a server stores and routes.
        commands: What was read so far, without CONNECT, PING and PONG.
    """

    checks_subjects: bool = True
    commands: list[Command] = field(default_factory=list)
    _rest: bytes = b""

    @property
    def is_at_start(self) -> bool:
        """True when no part of a command is left."""
        return not self._rest

    def feed(self, data: bytes) -> None:
        """Read more.

        Raises:
            GrammarError: It is no legal command.
        """
        self._rest += data
        while (end := self._rest.find(b"\n")) >= 0:
            stop = self._read(self._rest[: end + 1], end + 1)
            if stop < 0:
                return
            self._rest = self._rest[stop:]
        if len(self._rest) > CONTROL_LINE_BYTES_MAX and not self._rest.startswith(b"CONNECT"):
            raise GrammarError(f"a line without an end: {self._rest[:80]!r}")

    def _read(self, line: bytes, start: int) -> int:
        """Read a command; return where it stops, -1 where its payload is not whole yet."""
        if not line.endswith(b"\r\n"):
            raise GrammarError(f"a line ends without CR: {line[:80]!r}")
        if line.startswith(b"CONNECT "):
            json.loads(line[8:])
            return start
        words = tuple(line[:-2].split(b" "))
        verb, args = words[0], tuple(word for word in words[1:] if word)
        if verb in _BARE and not args:
            return start
        if verb not in _COUNTS or len(line) > CONTROL_LINE_BYTES_MAX:
            raise GrammarError(f"no command: {line[:80]!r}")
        low, high = _COUNTS[verb]
        if not low <= len(args) <= high or not all(map(_WORD.fullmatch, args)):
            raise GrammarError(f"malformed: {line[:200]!r}")
        tokens = args[0].split(b".")
        is_legal = _SUBJECT.fullmatch(args[0]) and all(tokens) and b">" not in tokens[:-1]
        # A request to JetStream's API may end in a filter.
        is_published = verb.endswith(b"PUB") and tokens[0] != b"$JS"
        is_wide = is_published and not {b"*", b">"}.isdisjoint(tokens)
        if self.checks_subjects and (not is_legal or is_wide):
            raise GrammarError(f"malformed: {line[:200]!r}")
        if not verb.endswith(b"PUB"):
            self.commands.append(Command((verb, *args)))
            return start
        return self._read_payload(verb, args, start)

    def _read_payload(self, verb: bytes, args: tuple[bytes, ...], start: int) -> int:
        header_size, size = (int(args[-2]) if verb == b"HPUB" else 0), int(args[-1])
        stop = start + size
        if len(self._rest) < stop + 2:
            return -1
        headers = self._rest[start : start + header_size]
        is_block = (
            headers.startswith(b"NATS/1.0\r\n") and headers.find(b"\r\n\r\n") + 4 == header_size
        )
        if self._rest[stop : stop + 2] != b"\r\n" or not 0 <= header_size <= size:
            raise GrammarError(f"payload of another size: {verb!r} {args!r}")
        if verb == b"HPUB" and not is_block:
            raise GrammarError(f"header block: {headers[:200]!r}")
        payload = self._rest[start + header_size : stop]
        self.commands.append(Command((verb, *args), headers, payload))
        return stop + 2


class StrictProxy:
    """Stands before a server: reads what clients send with a `StrictParser`, and may lie to them.

    Attributes:
        commands: Every command of every connection, in order.
        faults: What was no command, in words.
        checks_subjects: Whether its parsers do so, for what comes from now on.
        lie: Makes of each message to a client another one; None forwards them as they are.
        port: Where it listens.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.commands: list[Command] = []
        self.faults: list[str] = []
        self.checks_subjects = True
        self.lie: Callable[[Message], Message] | None = None
        self.port: int = 0

    @property
    def url(self) -> str:
        """Address for clients."""
        return f"nats://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        to_server: asyncio.StreamWriter | None = None
        with suppress(OSError, asyncio.CancelledError, asyncio.IncompleteReadError):
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target_port)
            back = asyncio.create_task(self._answer(from_server, writer))
            try:
                await self._listen(reader, to_server)
            finally:
                back.cancel()
                await asyncio.gather(back, return_exceptions=True)
        for each in (writer, to_server):
            if each is not None:
                each.transport.abort()

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parser = StrictParser(commands=self.commands)
        while data := await reader.read(1 << 16):
            parser.checks_subjects = self.checks_subjects
            try:
                parser.feed(data)
            except GrammarError as error:
                self.faults.append(str(error))
                return
            writer.write(data)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if not line.startswith((b"MSG ", b"HMSG ")):
                writer.write(line)
                continue
            words = line.split()
            size = int(words[-1])
            body = await reader.readexactly(size + 2)
            if self.lie is None:
                writer.write(line + body)
                continue
            header_size = int(words[-2]) if words[0] == b"HMSG" else 0
            count = len(words) - (2 if header_size else 1)
            reply = words[3] if count > 3 else b""
            told = Message(words[1], reply, body[:header_size], body[header_size:-2])
            writer.write(self.lie(told).frame(words[2]))


@dataclass(frozen=True)
class Message:
    """What a server delivers."""

    subject: bytes
    reply: bytes
    headers: bytes
    payload: bytes

    def frame(self, sid: bytes) -> bytes:
        """Return its bytes for a subscription."""
        words = [b"HMSG" if self.headers else b"MSG", self.subject, sid]
        words += [self.reply] if self.reply else []
        words += [b"%d" % len(self.headers)] if self.headers else []
        words.append(b"%d" % (len(self.headers) + len(self.payload)))
        return b"%b\r\n%b%b\r\n" % (b" ".join(words), self.headers, self.payload)
