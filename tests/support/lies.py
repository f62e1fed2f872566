"""What a lying server says: every field of an answer as something that it can not be.

The lies are made of a true answer; each names the place in it and what stands there instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    from tests.support.liars import Told

DEEP = "[" * 100_000 + "]" * 100_000
# As JSON text: json.dumps can not write all of them.
WRONG = (
    "null",
    '"x"',
    '""',
    "-1",
    "1.5",
    "1e400",
    "true",
    "{}",
    "[]",
    "[null]",
    "[5]",
    '{"a":null}',
    '{"a":[]}',
    '"\\ud800"',
    '"2026-01-01T00:00:00Z"',
    '"9999-12-31T23:59:59-23:59"',
    str(1 << 70),
    "9" * 400,
    "9" * 5_000,
    "[" * 500 + "]" * 500,
    DEEP,
)
MISSING = ""
WRONG_BODIES = (
    b"",
    b"null",
    b"5",
    b"[]",
    b"{}",
    b"{",
    b"\xff",
    b"[]" * 9,
    b"NaN",
    b'{"error":5}',
    b'{"error":{"code":"x","err_code":{},"description":5}}',
    DEEP.encode(),
)
WRONG_TOKENS = (b"x", b"-1", b"", b"1_0", "\u0664".encode(), b"\xff", b"9" * 20, b"9" * 5_000)
WRONG_VALUES = (*WRONG_TOKENS, b"9999-12-31T23:59:59-23:59", b"{}", b"=")
_MARK = "@@lie@@"

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Untruth:
    """One lie.

    Attributes:
        kind: In the place of which answers it is told.
        place: Where it stands: a path in the JSON, a header, a token of the reply, or all.
        wrong: What stands there.
    """

    kind: str
    place: tuple[str, Path]
    wrong: bytes

    def __call__(self, told: Told) -> Told:
        """Return the message with the lie in it; another kind as it is."""
        if told.kind != self.kind:
            return told
        part, path = self.place
        match part:
            case "body":
                return replace(told, payload=self.wrong)
            case "json":
                return replace(told, payload=_with_json(told.payload, path, self.wrong.decode()))
            case "token":
                tokens = told.reply.split(b".")
                place = cast("int", path[0])
                if place < len(tokens):
                    tokens[place] = self.wrong
                return replace(told, reply=b".".join(tokens))
            case "header":
                return replace(told, headers=_with_header(told.headers, str(path[0]), self.wrong))
            case _:
                return replace(told, headers=self.wrong)

    def __str__(self) -> str:
        part, path = self.place
        shown = ".".join(map(str, path))
        return f"{self.kind} {part} {shown} = {self.wrong[:40]!r} ({len(self.wrong)} bytes)"


def lies_about(told: Told) -> Iterator[Untruth]:
    """Yield all lies in the place of a true message."""
    kind = told.kind
    for wrong in WRONG_BODIES:
        yield Untruth(kind, ("body", ()), wrong)
    for path in _paths_of(told.payload):
        for text in (*WRONG, MISSING):
            yield Untruth(kind, ("json", path), text.encode())
    if told.reply.startswith(b"$JS.ACK."):
        for place in range(9):
            for wrong in WRONG_TOKENS:
                if b"\n" not in wrong:
                    yield Untruth(kind, ("token", (place,)), wrong)
    if told.headers:
        for wrong in (b"", b"NATS/1.0", b"NATS/1.0 \xff\r\n\r\n", b"HTTP/1.0\r\n\r\n"):
            yield Untruth(kind, ("headers", ()), wrong)
        for line in told.headers.split(b"\r\n"):
            name = line.partition(b":")[0].decode("latin-1")
            for wrong in WRONG_VALUES if name else ():
                yield Untruth(kind, ("header", (name,)), wrong)


def _paths_of(payload: bytes) -> Iterator[Path]:
    try:
        body: object = json.loads(payload)
    except ValueError:
        return
    yield from _paths(body, ())


def _paths(value: object, path: Path) -> Iterator[Path]:
    if path:
        yield path
    if isinstance(value, Mapping):
        for name, item in cast("Mapping[str, object]", value).items():
            yield from _paths(item, (*path, name))
    elif isinstance(value, list) and value:
        yield from _paths(cast("list[object]", value)[0], (*path, 0))


def _with_json(payload: bytes, path: Path, wrong: str) -> bytes:
    try:
        body: object = json.loads(payload)
    except ValueError:
        return payload
    found = body
    for step in path[:-1]:
        try:
            found = cast("dict[str | int, object]", found)[step]
        except (LookupError, TypeError):
            return payload  # Another answer of the same kind.
    if not isinstance(found, dict | list) or (isinstance(found, list) and not found):
        return payload
    inside = cast("dict[str | int, object]", found)
    if wrong == MISSING:
        if isinstance(found, dict):
            inside.pop(path[-1], None)
        return json.dumps(body).encode()
    if isinstance(path[-1], int) != isinstance(found, list):
        return payload
    inside[path[-1]] = _MARK
    return json.dumps(body).replace(f'"{_MARK}"', wrong).encode()


def _with_header(headers: bytes, name: str, wrong: bytes) -> bytes:
    lines = headers.split(b"\r\n")
    start = name.encode("latin-1")
    if start.startswith(b"NATS/1.0"):
        return b"\r\n".join([b"NATS/1.0 " + wrong, *lines[1:]])
    changed = [start + b": " + wrong if line.startswith(start + b":") else line for line in lines]
    return b"\r\n".join(changed)
