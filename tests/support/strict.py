"""A parser of what clients send, as strict as nats-server, and a proxy that keeps it all.

Written from nats-server's own grammar (`server/parser.go`), not from ours: a line feed ends a line,
space and tab end a word, a payload has the size that its line says and CR LF behind it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

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
        is_wide = verb.endswith(b"PUB") and not {b"*", b">"}.isdisjoint(tokens)
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
