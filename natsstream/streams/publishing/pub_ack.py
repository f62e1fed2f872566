"""What a stream answers to a published message.

What lives here: the shape and how it is read. What must not: waiting for it.

Law: an answer that is not a stream's ack is never taken for one. The fast way of reading gives what
the slow one gives.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from natsstream._wire.parser import Frame
from natsstream._wire.requests import check_responders
from natsstream.errors import NoRespondersError, ProtocolError
from natsstream.streams.api import decode
from natsstream.streams.publishing.digits import read_number

# Sequences have 64 bits: longer runs of digits are for JSON to judge.
_DIGITS_MAX = 20
_ZERO = ord("0")


@dataclass(frozen=True, slots=True)
class PubAck:
    """The stream's word that it has a message.

    Attributes:
        stream: The stream.
        sequence: The message's sequence; for a duplicate, that of the first copy.
        duplicate: True when a message with the same id was stored before.
        domain: The JetStream domain of the server, None where there is none.
        value: The counter's total, on a stream with `allow_msg_counter`.
    """

    stream: str
    sequence: int
    duplicate: bool = False
    domain: str | None = None
    value: int | None = None


class AckReader:
    """Reads answers one after another; those that differ only in their sequence without JSON."""

    def __init__(self) -> None:
        self._start = b""
        self._size = 0
        self._stream = ""
        self._domain: str | None = None

    def read(self, frame: Frame, subject: str) -> PubAck:
        """Return the ack in an answer, or raise what it says instead; see `read_ack`."""
        payload = frame[3]
        size = self._size
        if size and payload.startswith(self._start):
            digits = payload[size:-1]
            if (
                digits.isdigit()
                and digits[0] != _ZERO
                and len(digits) <= _DIGITS_MAX
                and payload.endswith(b"}")
            ):
                return PubAck(self._stream, int(digits), domain=self._domain)
        ack = read_ack(frame, subject)
        self._learn(payload, ack)
        return ack

    def _learn(self, payload: bytes, ack: PubAck) -> None:
        """Remember what stands before the sequence, when nothing but the sequence can differ."""
        start = payload[: payload.rfind(b":") + 1]
        if payload != b"%b%d}" % (start, ack.sequence):
            return
        pairs = cast("list[tuple[str, object]]", json.loads(start + b"1}", object_pairs_hook=list))
        names = [name for name, _ in pairs]
        if names in (["stream", "seq"], ["stream", "domain", "seq"]):
            self._start, self._size = start, len(start)
            self._stream, self._domain = ack.stream, ack.domain


def read_ack(frame: Frame, subject: str) -> PubAck:
    """Return the ack in an answer, or raise what it says instead.

    Raises:
        NoRespondersError: No stream captures the subject.
        ServerError: The stream refused the message.
        ProtocolError: It is not the answer of a stream.
    """
    what = f"publish to {subject}"
    try:
        check_responders(frame, subject)
    except NoRespondersError as error:
        raise no_stream(subject) from error
    try:
        answer = decode(frame[3], what)
    except RecursionError:
        answer = {}
    stream, sequence = answer.get("stream"), answer.get("seq")
    domain, value = answer.get("domain"), answer.get("val")
    if not isinstance(stream, str) or type(sequence) is not int or sequence < 0:
        raise _no_ack(what, frame)
    if domain is not None and not isinstance(domain, str):
        raise _no_ack(what, frame)
    total = None
    if value is not None:
        try:
            total = read_number(value) if isinstance(value, str) else int(cast("int", value))
        except (TypeError, ValueError, OverflowError):  # JSON's Infinity is a number to Python.
            raise _no_ack(what, frame) from None
    return PubAck(stream, sequence, answer.get("duplicate") is True, domain, total)


def no_stream(subject: str) -> NoRespondersError:
    """Return the error of a subject that no stream captures, or none that has a leader now."""
    return NoRespondersError(
        f"publish to {subject}: no stream captures the subject",
        hint="create one: await js.streams.ensure(name, subjects=[...]); if there is one, its "
        "leader is away, or JetStream is off here",
        retryable=True,
    )


def _no_ack(what: str, frame: Frame) -> ProtocolError:
    return ProtocolError(
        f"{what}: the answer is no ack of a stream",
        detail=repr(frame[3][:80]),
        hint="does some other program listen on the subject?",
    )
