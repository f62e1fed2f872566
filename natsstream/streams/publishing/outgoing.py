"""What a message carries into a stream: payload, headers, identity, expectation, life time.

What lives here: the shapes and their header block. What must not: sending.

Law: what the server would do otherwise than asked is refused here; the caller's objects are never
changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from natsstream._wire.headers import HeaderName, Headers, HeaderValues, encode_headers
from natsstream.errors import ConfigError
from natsstream.streams.features import EXPECT_SUBJECT, MESSAGE_TTL, Feature
from natsstream.streams.names import check_stream_name, check_subject
from natsstream.units import NS_PER_SECOND, duration_ns

Payload: TypeAlias = bytes | bytearray | memoryview
Ttl: TypeAlias = float | timedelta | Literal["never"]

# The server keeps a message's life time as nanoseconds in 64 bits.
_TTL_SECONDS_MAX = (2**63 - 1) // NS_PER_SECOND
_SEQUENCE_MAX = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What must hold when the message reaches the stream; otherwise it is refused.

    Attributes:
        stream: The stream that captures the subject.
        last_seq: Sequence of the stream's last message; 0 for an empty stream.
        last_subject_seq: Sequence of the last message of the same subject; 0 for none.
        subject: The subject that `last_subject_seq` is about, when it is not the message's own;
            needs a server of 2.11. No wildcards: replicated streams do not check those reliably.
        last_msg_id: Message id of the stream's last message.
    """

    stream: str | None = None
    last_seq: int | None = None
    last_subject_seq: int | None = None
    subject: str | None = None
    last_msg_id: str | None = None

    def __post_init__(self) -> None:
        for name in ("last_seq", "last_subject_seq"):
            value = getattr(self, name)
            # The server takes a number that is too large for none at all, and stores the message.
            if value is not None and not 0 <= value <= _SEQUENCE_MAX:
                raise ConfigError(f"{name} must be 0 or more and fit into 64 bits, got {value}")
        if self.stream is not None:
            check_stream_name(self.stream)
        if self.last_msg_id is not None:
            _check_msg_id(self.last_msg_id, "last_msg_id")
        if self.subject is not None:
            check_subject(self.subject)
            if self.last_subject_seq is None:
                raise ConfigError(
                    f"subject {self.subject!r} is expected to have no particular sequence",
                    hint="give last_subject_seq as well",
                )

    @property
    def is_about_order(self) -> bool:
        """True when it says what stands before the message, so that a second copy would fail."""
        return not (self.last_seq is self.last_subject_seq is self.last_msg_id is None)

    def headers(self) -> dict[str, str]:
        """Return the headers that say so."""
        values = {
            HeaderName.EXPECTED_STREAM: self.stream,
            HeaderName.EXPECTED_LAST_SEQUENCE: self.last_seq,
            HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE: self.last_subject_seq,
            HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT: self.subject,
            HeaderName.EXPECTED_LAST_MSG_ID: self.last_msg_id,
        }
        return {name.value: str(value) for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class PublishMessage:
    """A message for `Publisher.send_many`; the arguments of `send` as a value.

    Attributes:
        subject: Where to; no wildcards.
        data: The payload.
        headers: Header values by name; a list sends the header more than once.
        msg_id: Identity for the stream's duplicate window.
        expect: What must hold in the stream.
        ttl: Whole seconds after which the stream forgets the message, or "never".
    """

    subject: str
    data: Payload = b""
    headers: HeaderValues | None = None
    msg_id: str | None = None
    expect: Expect | None = None
    ttl: Ttl | None = None


def message_headers(
    headers: HeaderValues | None = None,
    msg_id: str | None = None,
    expect: Expect | None = None,
    ttl: Ttl | None = None,
) -> bytes:
    """Return the header block of a message; empty when it needs none.

    Raises:
        HeaderError: A header would break the wire.
        ConfigError: The message id or the life time is not what the server would take.
    """
    if msg_id is None and expect is None and ttl is None:
        return encode_headers(headers) if headers else b""
    merged: dict[str, str | Sequence[str]] = {} if not headers else _copied(headers)
    if msg_id is not None:
        merged["Nats-Msg-Id"] = _check_msg_id(msg_id, "msg_id")
    if ttl is not None:
        merged["Nats-TTL"] = ttl_text(ttl)
    if expect is not None:
        merged.update(expect.headers())
    return encode_headers(merged)


def needed_features(expect: Expect | None, ttl: Ttl | None) -> tuple[Feature, ...]:
    """Return what the server must have: an older one would take no notice and store the message."""
    needed: list[Feature] = []
    if ttl is not None:
        needed.append(MESSAGE_TTL)
    if expect is not None and expect.subject is not None:
        needed.append(EXPECT_SUBJECT)
    return tuple(needed)


def add_header(block: bytes, name: HeaderName, value: str | int) -> bytes:
    """Return a block with one more line; name and value are legal."""
    # As in `encode_headers`: an id that was read from a header may have bytes that are no UTF-8.
    line = f"{name.value}: {value}\r\n\r\n".encode("utf-8", "surrogateescape")
    return (block[:-2] if block else b"NATS/1.0\r\n") + line


def ttl_text(ttl: Ttl) -> str:
    """Return the value of Nats-TTL.

    Raises:
        ConfigError: The server knows no such life time: it counts whole seconds, from 1, and cuts
            off what is beyond them.
    """
    if ttl == "never":
        return "never"
    if isinstance(ttl, str):
        raise ConfigError(f"ttl {ttl!r} is neither seconds nor 'never'")
    seconds, rest = divmod(duration_ns(ttl), NS_PER_SECOND)
    if rest or not 1 <= seconds <= _TTL_SECONDS_MAX:
        raise ConfigError(
            f"ttl {ttl!r} is not a whole number of seconds from 1 on",
            hint="the server counts whole seconds and would cut off the rest; round it",
        )
    return str(seconds)


def payload_bytes(data: object) -> bytes:
    """Return the payload as bytes, which nobody changes while it waits for its ack.

    Raises:
        ConfigError: It is no bytes.
    """
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray):
        return bytes(data)
    if isinstance(data, memoryview):
        return data.tobytes()
    raise ConfigError(
        f"the payload is of type {type(data).__name__}", hint="encode it: text.encode(), json, ..."
    )


def _copied(headers: HeaderValues) -> dict[str, str | Sequence[str]]:
    """Return all values of a mapping, also of one that shows only the first of each name."""
    if isinstance(headers, Headers):
        return {name: headers.all(name) for name in headers}
    return dict(headers)


def _check_msg_id(msg_id: str, what: str) -> str:
    # The server takes no notice of an empty one, and cuts off spaces: ids would become equal.
    if not msg_id or msg_id != msg_id.strip():
        raise ConfigError(
            f"{what} {msg_id!r} is empty or has spaces around it",
            hint="the server would drop them, and no duplicate would be found",
        )
    return msg_id
