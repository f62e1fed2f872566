"""Header blocks: the names that JetStream uses, and reading and writing them.

Law: lenient with what comes, strict with what goes out; nothing is rewritten silently. Names are
case-sensitive and keep their case, a name may have several values, and their order is kept.

Reading takes every line that has a name and a colon. Lines without a colon or without a name are
passed over, as nats.js does (nats.go drops the whole block for the first and skips the second);
`Headers.source` still has them. Spaces and tabs around a value do not belong to it.

Source: ADR-4; nats-server's stream.go and consumer.go for the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import TypeAlias, cast

from natsstream.errors import HeaderError

VERSION_LINE = b"NATS/1.0"

HeaderValues: TypeAlias = Mapping[str, str | Sequence[str]]
"""Header values by name, as a caller gives them; a list sends the header more than once."""

_END = b"\r\n\r\n"
# ADR-4: printable ASCII without the colon. nats.go refuses 18 more, such as brackets; we write
# only what a caller asks for, so we take the standard's word.
_NAME = re.compile(r"[!-9;-~]+")
_LINE_BREAK = re.compile(r"[\r\n]")
_REPR_NAMES_MAX = 4
# The first names that were written, each known to be legal, with what their lines begin with; names
# that come later take the long way, so that no caller can make it grow.
_STARTS: dict[str, str] = {}
_STARTS_MAX = 1_024
_REPR_VALUE_CHARACTERS_MAX = 40


class HeaderName(StrEnum):
    """The headers that JetStream and its views read or write; each is its name on the wire."""

    # A publisher asks for something (ADR-43 TTL, ADR-49 counters, ADR-50 batches, ADR-51
    # schedules, ADR-44 API level).
    MSG_ID = "Nats-Msg-Id"
    EXPECTED_STREAM = "Nats-Expected-Stream"
    EXPECTED_LAST_SEQUENCE = "Nats-Expected-Last-Sequence"
    EXPECTED_LAST_SUBJECT_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"
    EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
    EXPECTED_LAST_MSG_ID = "Nats-Expected-Last-Msg-Id"
    ROLLUP = "Nats-Rollup"
    TTL = "Nats-TTL"
    INCREMENT = "Nats-Incr"
    BATCH_ID = "Nats-Batch-Id"
    BATCH_SEQUENCE = "Nats-Batch-Sequence"
    BATCH_COMMIT = "Nats-Batch-Commit"
    SCHEDULE = "Nats-Schedule"
    SCHEDULE_TARGET = "Nats-Schedule-Target"
    SCHEDULE_TTL = "Nats-Schedule-TTL"
    SCHEDULE_SOURCE = "Nats-Schedule-Source"
    SCHEDULE_TIME_ZONE = "Nats-Schedule-Time-Zone"
    SCHEDULE_ROLLUP = "Nats-Schedule-Rollup"
    SCHEDULE_NEXT = "Nats-Schedule-Next"
    SCHEDULER = "Nats-Scheduler"
    REQUIRED_API_LEVEL = "Nats-Required-Api-Level"
    # The server says where a message is from (ADR-28 RePublish, ADR-31 direct get).
    STREAM = "Nats-Stream"
    SUBJECT = "Nats-Subject"
    SEQUENCE = "Nats-Sequence"
    TIME_STAMP = "Nats-Time-Stamp"
    LAST_SEQUENCE = "Nats-Last-Sequence"
    NUM_PENDING = "Nats-Num-Pending"
    UP_TO_SEQUENCE = "Nats-UpTo-Sequence"
    STREAM_SOURCE = "Nats-Stream-Source"
    COUNTER_SOURCES = "Nats-Counter-Sources"
    MARKER_REASON = "Nats-Marker-Reason"
    MSG_SIZE = "Nats-Msg-Size"
    RESPONSE_TYPE = "Nats-Response-Type"
    STREAM_IDENTITY = "Nats-Stream-Identity"
    # The server reports on a consumer and its pulls (ADR-13 pulls, ADR-15, ADR-42 priority groups).
    LAST_CONSUMER = "Nats-Last-Consumer"
    LAST_STREAM = "Nats-Last-Stream"
    CONSUMER_STALLED = "Nats-Consumer-Stalled"
    PENDING_MESSAGES = "Nats-Pending-Messages"
    PENDING_BYTES = "Nats-Pending-Bytes"
    PIN_ID = "Nats-Pin-Id"
    # Key-value buckets (ADR-8).
    KV_OPERATION = "KV-Operation"
    # natsstream's chains: who wrote a link, its number, the hash before it and its own.
    CHAIN_WRITER = "Chain-Writer"
    CHAIN_COUNT = "Chain-Count"
    CHAIN_PREVIOUS = "Chain-Previous"
    CHAIN_HASH = "Chain-Hash"
    # natsstream's exclusive producers: who wrote a message, and the position stored with it.
    PRODUCER = "Producer"
    PRODUCER_CHECKPOINT = "Producer-Checkpoint"
    # natsstream's dead letters: where a message was, and why nobody could handle it.
    DEAD_LETTER_SUBJECT = "Dead-Letter-Subject"
    DEAD_LETTER_TIME = "Dead-Letter-Time"
    DEAD_LETTER_STREAM = "Dead-Letter-Stream"
    DEAD_LETTER_CONSUMER = "Dead-Letter-Consumer"
    DEAD_LETTER_SEQUENCE = "Dead-Letter-Sequence"
    DEAD_LETTER_DELIVERIES = "Dead-Letter-Deliveries"
    DEAD_LETTER_REASON = "Dead-Letter-Reason"
    DEAD_LETTER_ERROR = "Dead-Letter-Error"
    DEAD_LETTER_HEADERS = "Dead-Letter-Headers"


class Headers(Mapping[str, str]):
    """The headers of one message: immutable, and parsed when they are first asked for.

    As a mapping it has one entry a name, with the first of its values; `all` and `items_all` give
    the others. Two are equal when they have the same names with the same values in the same order;
    the order of different names does not count. Bytes that are not UTF-8 become surrogate escapes
    and turn into the same bytes again when they are encoded.

    Servers store any bytes as headers. A block that does not begin with `NATS/1.0` stands whole
    under the empty name: one message must not make all the others unreadable.
    """

    __slots__ = ("_parsed", "_source")

    def __init__(self, source: bytes = b"") -> None:
        """Take a header block; empty for no headers."""
        self._source = source
        self._parsed: dict[str, list[str]] | None = None

    @property
    def source(self) -> bytes:
        """The block as it stood on the wire."""
        return self._source

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value of a name in wire order, empty when the name is absent."""
        return tuple(self._values().get(name, ()))

    def items_all(self) -> list[tuple[str, str]]:
        """Return every `(name, value)` pair in wire order."""
        if self._source and not self._source.startswith(VERSION_LINE):
            return [("", self._source.decode("utf-8", "surrogateescape"))]
        text = self._source.partition(_END)[0].decode("utf-8", "surrogateescape")
        pairs: list[tuple[str, str]] = []
        for line in text.split("\r\n")[1:]:
            name, colon, value = line.partition(":")
            if colon and name:
                pairs.append((name, value.strip(" \t")))
        return pairs

    def _values(self) -> dict[str, list[str]]:
        """Return the values by name, parsing the block the first time."""
        if self._parsed is None:
            values: dict[str, list[str]] = {}
            for name, value in self.items_all():
                values.setdefault(name, []).append(value)
            self._parsed = values
        return self._parsed

    def __getitem__(self, name: str) -> str:
        return self._values()[name][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Headers):
            return self._values() == other._values()
        if isinstance(other, Mapping):
            # The cast names what isinstance cannot see: any mapping, of anything.
            plain = dict(cast("Mapping[object, object]", other))
            return len(self.items_all()) == len(self) and dict(self.items()) == plain
        return NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset((name, tuple(values)) for name, values in self._values().items()))

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}: {_shortened(' | '.join(values))}"
            for name, values in islice(self._values().items(), _REPR_NAMES_MAX)
        )
        more = len(self) - _REPR_NAMES_MAX
        return f"Headers({shown}{f', {more} more' if more > 0 else ''})"

    def __reduce__(self) -> tuple[type[Headers], tuple[bytes]]:
        return Headers, (self._source,)


def encode_headers(headers: HeaderValues) -> bytes:
    """Return the block that carries the headers, empty when there are none.

    Every value becomes a line of its own, in the mapping's order; `Headers` keep the order they
    came in. Values are written as they are: spaces around them go out, and readers drop them.

    Raises:
        HeaderError: A name is empty or has other characters than printable ASCII without colon, or
            a value is no text or has a line break. Nothing is repaired.
    """
    if isinstance(headers, Headers):
        return _block(headers.items_all())
    parts = ["NATS/1.0\r\n"]
    # Measured: 0.7 instead of 4 microseconds for a header or two. Anything else takes
    # the long way, which checks it.
    for name, value in headers.items():
        start = _STARTS.get(name)
        if start is None or type(value) is not str or "\n" in value or "\r" in value:
            return _block(_pairs(headers))
        parts.append(start)
        parts.append(value)
        parts.append("\r\n")
    if len(parts) == 1:
        return b""
    parts.append("\r\n")
    try:
        return "".join(parts).encode()
    except UnicodeEncodeError:
        return _block(_pairs(headers))


def _block(pairs: Iterable[tuple[object, object]]) -> bytes:
    """Return the block of name and value pairs, each of which is looked at."""
    lines = [_line(name, value) for name, value in pairs]
    if not lines:
        return b""
    return b"".join((VERSION_LINE, b"\r\n", *lines, b"\r\n"))


def _pairs(headers: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield one pair for each value; what is neither text nor a sequence is left to `_line`."""
    for name, value in headers.items():
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            # The cast names what isinstance cannot see: items of any type, for `_line` to check.
            yield from ((name, one) for one in cast("Sequence[object]", value))
        else:
            yield name, value


def _line(name: object, value: object) -> bytes:
    """Return one line of the block with its line end."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise HeaderError(
            f"not a header name: {_shortened(name)}",
            hint="use printable ASCII without spaces and colons",
        )
    if not isinstance(value, str):
        raise HeaderError(
            f"header {name}: a value of type {type(value).__name__}",
            hint="pass text, or a list of texts",
        )
    if _LINE_BREAK.search(value):
        raise HeaderError(
            f"header {name}: a line break in {_shortened(value)}",
            hint="encode the value (JSON, base64) or move it into the payload",
        )
    if len(_STARTS) < _STARTS_MAX:
        # As plain text: the name may be of a class of its own.
        _STARTS[f"{name!s}"] = f"{name!s}: "
    try:
        return f"{name}: {value}\r\n".encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise HeaderError(
            f"header {name}: {_shortened(value)} is not valid text", detail=str(error)
        ) from error


def _shortened(value: object) -> str:
    """Return the repr of a value, cut to what fits into a message."""
    shown = repr(value)
    if len(shown) <= _REPR_VALUE_CHARACTERS_MAX:
        return shown
    return f"{shown[:_REPR_VALUE_CHARACTERS_MAX]}..."
