"""The headers of a core stream's messages; pure rules.

Law: headers of users are JSON in one header, so no user can write `Nats-*` headers. All values are
ASCII. A header that cannot be read makes one message unreadable, never the stream.

| header | value |
|---|---|
| `CN-Enc` | 0 MessagePack, 1 JSON; absent: another program's message, whose value is its bytes |
| `CN-Hdr` | the user's headers, a JSON object |
| `CN-Key` | the key, a JSON string |
| `CN-TTL` | milliseconds to live, if `Nats-TTL` is there too |
| `CN-Blob` | the value is in another stream: JSON with id, n (chunks), size (bytes), sha256 (hex) |
| `CN-Tombstone` | 1: the message deletes its key |

Source: core-stream.md sections 3, 5.2 and 5.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from natsstream.api.headers import HeaderName, Headers, deletion_of
from natsstream.arguments import described
from natsstream.conat.values import Encoding, decode_value, json_text
from natsstream.errors import CodecError, ConfigError, HeaderError
from natsstream.fields import Fields
from natsstream.streams.chunks.value import ChunkedValue
from natsstream.units import parse_life_time
from natsstream.values import from_json, to_json

TOMBSTONE = "CN-Tombstone"
"""The header of a tombstone, in the user's headers too, as in Conat."""
TOMBSTONE_HEADERS: Mapping[str, bool] = {TOMBSTONE: True}
"""The user's headers of a tombstone."""
HEADER_BYTES_MAX = 65_535 - 1_024
"""Bytes of our headers; servers take 65,535, and 1,024 are kept for the headers of JetStream."""

_ENCODING, _USER, _KEY, _TTL, _BLOB = "CN-Enc", "CN-Hdr", "CN-Key", "CN-TTL", "CN-Blob"
_TOMBSTONE_LINE = f"\r\n{TOMBSTONE}:".encode()
_BLOB_LINE = f"\r\n{_BLOB}:".encode()
_TTL_LINE = f"\r\n{HeaderName.TTL}:".encode()
_ENDING_NAMES = tuple(
    name.encode()
    for name in (TOMBSTONE, HeaderName.TTL, HeaderName.KV_OPERATION, HeaderName.MARKER_REASON)
)
_LINE_OVERHEAD, _BLOCK_OVERHEAD = len(": \r\n"), len("NATS/1.0\r\n\r\n")
# Milliseconds of 3,000 years; a longer number is no time to live.
_TTL_DIGITS_MAX = 14


@dataclass(frozen=True, slots=True)
class Blob:
    """A big value, whose bytes are chunks in the stream for blobs.

    Attributes:
        id: The last token of the chunks' subject.
        chunks: Number of chunks.
        size: Bytes in all.
        sha256: Digest over all bytes.
    """

    id: str
    chunks: int
    size: int
    sha256: bytes

    def under(self, subject: str) -> ChunkedValue:
        """Return the value under the subject of its chunks."""
        return ChunkedValue(subject=subject, size=self.size, chunks=self.chunks, digest=self.sha256)


def header_values(
    encoding: Encoding,
    *,
    headers: Mapping[str, object] | None = None,
    key: str | None = None,
    ttl_ms: int | None = None,
    blob: Blob | None = None,
) -> dict[str, str]:
    """Return the headers to publish a message with.

    Args:
        encoding: The format of the value.
        headers: The user's headers, nested or not; `CN-Tombstone` in them makes a tombstone.
        key: The key.
        ttl_ms: Milliseconds to live.
        blob: Where the value is, if it is big.

    Raises:
        ConfigError: The headers are no mapping, or JSON cannot write them.
        HeaderError: The headers are too large.
    """
    values = {_ENCODING: str(int(encoding))}
    if headers is not None:
        if not isinstance(headers, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types.
            raise ConfigError(
                f"headers is {described(headers)}", hint='give a dict: headers={"from": "Ann"}'
            )
        user = dict(headers)
        if user.get(TOMBSTONE):
            del user[TOMBSTONE]
            values[TOMBSTONE] = "1"
        if user or TOMBSTONE not in values:
            values[_USER] = json_text(user, ascii_only=True)
    if key is not None:
        values[_KEY] = to_json(key, ascii_only=True)
    if ttl_ms is not None:
        values[_TTL] = str(ttl_ms)
    if blob is not None:
        fields = {"id": blob.id, "n": blob.chunks, "size": blob.size, "sha256": blob.sha256.hex()}
        values[_BLOB] = to_json(fields, ascii_only=True)
    size = sum(len(name) + len(value) + _LINE_OVERHEAD for name, value in values.items())
    if size + _BLOCK_OVERHEAD > HEADER_BYTES_MAX:
        raise HeaderError(
            f"the headers have {size + _BLOCK_OVERHEAD:,} bytes, {HEADER_BYTES_MAX:,} is the limit",
            detail="; ".join(f"{name}: {len(value):,}" for name, value in values.items()),
            hint="move data from the headers into the value, or shorten the key",
        )
    return values


def is_tombstone(block: bytes) -> bool:
    """Return True if a message with this header block deletes its key.

    Markers of servers and of buckets' clients count too.
    """
    return _TOMBSTONE_LINE in block or deletion_of(block) is not None


def is_big(block: bytes) -> bool:
    """Return True if the value of a message with this header block is in another stream."""
    return _BLOB_LINE in block


def ttl_ms_of(block: bytes) -> int | None:
    """Return the milliseconds that a message lives; None if it does not expire.

    Only a message that the server expires too counts: `CN-TTL` alone is a note.
    """
    if _TTL_LINE not in block:
        return None
    headers = Headers(block)
    exact = headers.get(_TTL, "")
    if exact.isascii() and exact.isdigit() and len(exact) <= _TTL_DIGITS_MAX:
        return int(exact)
    seconds = parse_life_time(headers.get(HeaderName.TTL, ""))
    return seconds * 1_000 if seconds is not None and seconds > 0 else None


def may_end(blocks: bytes) -> bool:
    """Return True if a message with one of these header blocks may delete its key, or expire.

    Args:
        blocks: Header blocks, joined.
    """
    return any(name in blocks for name in _ENDING_NAMES)


def decode_record(block: bytes, data: bytes, *, stream: str = "", sequence: int = 0) -> object:
    """Return the value of a stored message; None for a tombstone.

    Args:
        block: The header block, as stored; empty for no headers.
        data: The payload, or the bytes of the blob.
        stream: The stream's name, for errors.
        sequence: The message's sequence, for errors.

    Raises:
        CodecError: The value or its encoding cannot be read.
    """
    encoding: Encoding | None = _MSGPACK
    if block != _PLAIN_BLOCK:
        if is_tombstone(block):
            return None
        encoding = RecordHeaders.parse(block, stream=stream, sequence=sequence).encoding
    return decode_value(data, encoding, stream=stream, sequence=sequence)


class RecordHeaders:
    """The headers of one stored message, each read when it is asked for.

    Raises:
        CodecError: A header cannot be read.
    """

    __slots__ = ("_headers", "_sequence", "_stream")

    def __init__(self, headers: Headers, stream: str, sequence: int) -> None:
        self._headers = headers
        self._stream = stream
        self._sequence = sequence

    @classmethod
    def parse(cls, block: bytes, *, stream: str = "", sequence: int = 0) -> RecordHeaders:
        """Return the headers of a block; equal plain blocks share one object.

        Args:
            block: The header block, as stored; empty for no headers.
            stream: The stream's name, for errors.
            sequence: The message's sequence, for errors.
        """
        if block == _PLAIN_BLOCK:
            return _PLAIN
        headers = Headers(block)
        return cls(headers, stream, sequence)

    @property
    def encoding(self) -> Encoding | None:
        """The format of the value; None for another program's message."""
        # The bytes first: parsing all headers costs more than decoding a small value.
        for line, encoding in _ENCODING_LINES:
            if line in self._headers.source:
                return encoding
        text = self._headers.get(_ENCODING)
        if text is None:
            return None
        if text not in _ENCODINGS:
            raise self._unreadable(f"unknown encoding {text[:20]!r}", hint="upgrade natsstream")
        return _ENCODINGS[text]

    @property
    def is_tombstone(self) -> bool:
        """True if the message deletes its key."""
        return is_tombstone(self._headers.source)

    @property
    def user(self) -> dict[str, object] | None:
        """The user's headers, `CN-Tombstone` too; None if there are none."""
        text = self._headers.get(_USER)
        user: dict[str, object] | None = None
        if text is not None:
            value = self._json(_USER, text)
            if not isinstance(value, dict):
                raise self._unreadable(f"{_USER} is no object", detail=described(value))
            user = cast("dict[str, object]", value)
        if TOMBSTONE in self._headers:
            return {**(user or {}), **TOMBSTONE_HEADERS}
        return user

    @property
    def key(self) -> str | None:
        """The key; None if there is none, or another program left it out."""
        text = self._headers.get(_KEY)
        if text is None:
            return None
        value = self._json(_KEY, text)
        if not isinstance(value, str):
            raise self._unreadable(f"{_KEY} is no text", detail=described(value))
        return value

    @property
    def blob(self) -> Blob | None:
        """Where the value is, if it is big."""
        text = self._headers.get(_BLOB)
        if text is None:
            return None
        fields = Fields.parse(text, _BLOB, error=self._unreadable)
        try:
            digest = bytes.fromhex(fields.text("sha256"))
        except ValueError as error:
            raise self._unreadable(f"{_BLOB} has no digest", detail=str(error)) from None
        chunks, size = fields.integer("n", minimum=0), fields.integer("size", minimum=0)
        return Blob(fields.text("id"), chunks, size, digest)

    @property
    def msg_id(self) -> str | None:
        """The message id that it was published with."""
        return self._headers.get(HeaderName.MSG_ID)

    def _json(self, name: str, text: str) -> object:
        try:
            return from_json(text)
        except (ValueError, RecursionError) as error:
            raise self._unreadable(f"{name} is no JSON", detail=str(error)) from None

    def _unreadable(self, message: str, /, *, detail: str = "", hint: str = "") -> CodecError:
        return CodecError(
            f"message {self._sequence} of stream {self._stream}: {message}",
            bucket=self._stream,
            key="",
            revision=self._sequence,
            detail=detail,
            hint=hint or "another program wrote it; delete the message",
        )


# The members of an enumeration are slow to name.
_MSGPACK: Final = Encoding.MSGPACK
_ENCODINGS: Final = {str(int(each)): each for each in Encoding}
_ENCODING_LINES: Final = tuple(
    (f"\r\n{_ENCODING}: {text}\r\n".encode(), each) for text, each in _ENCODINGS.items()
)
_PLAIN_BLOCK: Final = f"NATS/1.0\r\n{_ENCODING}: {int(Encoding.MSGPACK)}\r\n\r\n".encode()
_PLAIN: Final = RecordHeaders(Headers(_PLAIN_BLOCK), "", 0)
