"""A dead message in its envelope: the original's headers and payload, and why it died.

Law: what was in the message comes out again, byte for byte, in the same order; and nothing of it
acts while it lies in the dead-letter stream. A server acts on `Nats-...` headers (a rollup would
purge, a message id would be a duplicate, a life time would let the letter expire), so those lie
there under another name.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from natsstream._wire.headers import VERSION_LINE, HeaderName
from natsstream.errors import ConfigError
from natsstream.units import format_rfc3339, parse_rfc3339

DeadReason: TypeAlias = Literal[
    "abandoned", "attempts", "deleted", "max_deliveries", "rejected", "terminated", "unknown"
]
"""Why a message is dead.

"rejected": the handler raised `Reject`. "attempts": the handler failed `max_attempts` times.
"abandoned": it was delivered more than `max_attempts` times, and its workers died with it.
"max_deliveries": the server gave up after the consumer's `max_deliver`. "terminated": a client
terminated it. "deleted": its stream deleted it before an ack was on record. "unknown": written by a
newer version.
"""

WRITTEN_REASONS: tuple[DeadReason, ...] = ("abandoned", "attempts", "rejected")
ERROR_CHARACTERS_MAX = 1_000

_END = b"\r\n\r\n"
_OURS = b"dead-letter-"
_ACTING = (b"nats-", _OURS)
_KEPT = b"Dead-Letter-Original-"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")

# Headers that a replay must not repeat: old conditions, the place in a finished batch, and the
# message's identity, which the stream may still remember.
_NEVER_AGAIN = (
    b"nats-expected-",
    b"nats-batch-",
    b"nats-msg-id",
    b"nats-required-api-level",
    b"nats-stream",
    b"nats-subject",
    b"nats-sequence",
    b"nats-time-stamp",
    b"nats-last-",
    b"nats-num-",
    b"nats-upto-",
    b"nats-marker-",
    b"nats-counter-",
    b"nats-msg-size",
)
# Headers that change other messages.
_EFFECTS = (b"nats-rollup", b"nats-schedule", b"nats-incr")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRecord:
    """Why and where a message died.

    Attributes:
        subject: The subject that it was stored under.
        time_ns: When the stream stored it, in Unix nanoseconds.
        stream: The stream that it was in.
        consumer: The consumer that could not handle it.
        sequence: Its sequence in that stream.
        deliveries: How often it was delivered.
        reason: Why it is dead.
        error: The last error or the reason given, one line; may be empty.
    """

    subject: str
    time_ns: int
    stream: str
    consumer: str
    sequence: int
    deliveries: int
    reason: DeadReason
    error: str = ""


def encode(block: bytes, failure: FailureRecord, *, with_error: bool = True) -> bytes:
    """Return the header block of a letter.

    Args:
        block: The original's header block; empty for none.
        failure: Why and where it died.
        with_error: False leaves the error's text out, where there is no room for it.
    """
    told = {
        HeaderName.DEAD_LETTER_STREAM: failure.stream,
        HeaderName.DEAD_LETTER_CONSUMER: failure.consumer,
        HeaderName.DEAD_LETTER_SEQUENCE: str(failure.sequence),
        HeaderName.DEAD_LETTER_SUBJECT: failure.subject,
        HeaderName.DEAD_LETTER_TIME: format_rfc3339(failure.time_ns),
        HeaderName.DEAD_LETTER_DELIVERIES: str(failure.deliveries),
        HeaderName.DEAD_LETTER_REASON: failure.reason,
    }
    if with_error and failure.error:
        told[HeaderName.DEAD_LETTER_ERROR] = one_line(failure.error)
    lines = [VERSION_LINE]
    if block and not block.startswith(VERSION_LINE):
        # Servers store whatever a publisher calls headers.
        told[HeaderName.DEAD_LETTER_HEADERS] = base64.b64encode(block).decode()
        block = b""
    for name, value in told.items():
        lines.append(f"{name}: {value}".encode("utf-8", "surrogateescape"))
    lines.extend(_KEPT + line if _acts(line) else line for line in _lines(block))
    return b"\r\n".join(lines) + _END


def decode(block: bytes) -> tuple[dict[str, str], bytes]:
    """Return a letter's own headers by name, and the original's header block.

    Lines that the dead-letter stream's server has added are in neither.
    """
    told: dict[str, str] = {}
    original: list[bytes] = []
    for line in _lines(block):
        if line.startswith(_KEPT):
            original.append(line[len(_KEPT) :])
        elif line[: len(_OURS)].lower() == _OURS:
            name, _, value = line.decode("utf-8", "surrogateescape").partition(":")
            told[name] = value.strip(" \t")
        elif not _acts(line):
            original.append(line)
    whole = told.get(HeaderName.DEAD_LETTER_HEADERS)
    if whole is not None:
        try:
            return told, base64.b64decode(whole, validate=True)
        except (ValueError, binascii.Error):  # Another client's header: use the lines.
            pass
    return told, b"\r\n".join([VERSION_LINE, *original]) + _END if original else b""


def read_failure(told: dict[str, str], stream: str, consumer: str, sequence: int) -> FailureRecord:
    """Return the failure of a letter; missing or malformed fields are empty.

    Args:
        told: The letter's own headers.
        stream: The original's stream, out of the letter's subject.
        consumer: The consumer, out of the letter's subject.
        sequence: The original's sequence, out of the letter's subject.
    """
    deliveries = told.get(HeaderName.DEAD_LETTER_DELIVERIES, "")
    try:
        time_ns = parse_rfc3339(told.get(HeaderName.DEAD_LETTER_TIME, ""))
    except ConfigError:
        time_ns = 0
    return FailureRecord(
        subject=told.get(HeaderName.DEAD_LETTER_SUBJECT, ""),
        time_ns=time_ns,
        stream=stream,
        consumer=consumer,
        sequence=sequence,
        deliveries=int(deliveries) if deliveries.isdecimal() and len(deliveries) < 20 else 0,
        reason=_read_reason(told.get(HeaderName.DEAD_LETTER_REASON, "")),
        error=told.get(HeaderName.DEAD_LETTER_ERROR, ""),
    )


def for_replay(block: bytes, *, keep_effects: bool) -> bytes:
    """Return the header block of a replayed message, without a message id.

    Args:
        block: The original's header block.
        keep_effects: True keeps also what changes other messages: rollup, schedules, counters.
    """
    if not block.startswith(VERSION_LINE):
        return b""
    out = [VERSION_LINE]
    for line in _lines(block):
        name = line.partition(b":")[0].lower()
        if name.startswith(_NEVER_AGAIN) or (name.startswith(_EFFECTS) and not keep_effects):
            continue
        out.append(line)
    return b"\r\n".join(out) + _END if len(out) > 1 else b""


def one_line(text: str) -> str:
    """Return a text as it may stand in a header or a reason: one line, cut to 1,000 characters."""
    line = _CONTROL.sub(" ", text).encode("utf-8", "replace").decode().strip()
    return line if len(line) <= ERROR_CHARACTERS_MAX else f"{line[: ERROR_CHARACTERS_MAX - 3]}..."


def described_error(error: BaseException) -> str:
    """Return an exception as one line: its type and its text."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a handler's exception may fail to describe itself.
        text = ""
    name = type(error).__name__
    return one_line(f"{name}: {text}" if text else name)


def _read_reason(text: str) -> DeadReason:
    for reason in WRITTEN_REASONS:
        if reason == text:
            return reason
    return "unknown"


def _lines(block: bytes) -> list[bytes]:
    """Return the lines between a block's first line and its end."""
    if not block.startswith(VERSION_LINE):
        return []
    return [line for line in block.partition(_END)[0].split(b"\r\n")[1:] if line]


def _acts(line: bytes) -> bool:
    """Return True if a server, or natsstream, acts on the line."""
    return line.lstrip(b" \t").lower().startswith(_ACTING)
