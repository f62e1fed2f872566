"""The answers of a direct get: messages, their numbers, and how a run of them ends; pure rules.

Law: a run is whole only when each message names the one before it, and the end names the last. A
status is believed only of a frame that does not say which stream stored it.

Source: ADR-31; nats-server's stream.go getDirectRequest and getDirectMulti.
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream._wire.headers import HeaderName, Headers
from natsstream._wire.parser import Frame
from natsstream._wire.status import Status, StatusCode, parse_status
from natsstream.api.message import Message
from natsstream.arguments import counted
from natsstream.errors import (
    IncompleteReadError,
    NatsStreamError,
    ProtocolError,
    ServerError,
    UnsupportedServerError,
)
from natsstream.units import parse_rfc3339

# The server's own headers stand behind those of the message, and begin with this.
_ADDED = b"\r\n" + HeaderName.STREAM.value.encode() + b": "
_VERSION_LINE = b"NATS/1.0"


@dataclass(frozen=True, slots=True)
class DirectBatch:
    """Messages of one direct read.

    Attributes:
        messages: In the order of their sequences.
        num_pending: How many more the replica had behind them, for the same question.
        last_seq: Sequence of the last one; 0 for none. The next read begins behind it.
        up_to_seq: For `latest`: the stream's last sequence at which this is its state.
    """

    messages: tuple[Message, ...]
    num_pending: int = 0
    last_seq: int = 0
    up_to_seq: int = 0

    def __len__(self) -> int:
        return len(self.messages)


@dataclass(frozen=True, slots=True)
class Stored:
    """One message of an answer, with what the server says of its place in the run."""

    message: Message
    previous_seq: int | None
    num_pending: int | None


def read_stored(frame: Frame, what: str) -> Stored:
    """Return the message in a frame, with the headers that it was stored with.

    Raises:
        ProtocolError: The frame does not say what it is.
    """
    _, _, block, payload = frame
    # The server's own come last: a message may have been stored with the same names.
    added = block.rfind(_ADDED)
    tail = Headers(_VERSION_LINE + block[added:])
    try:
        subject = tail[HeaderName.SUBJECT].encode("utf-8", "surrogateescape")
        sequence = _number(tail[HeaderName.SEQUENCE])
        time_ns = parse_rfc3339(tail[HeaderName.TIME_STAMP])
        previous, pending = None, None
        if HeaderName.NUM_PENDING in tail:
            previous = _number(tail.get(HeaderName.LAST_SEQUENCE, "0"))
            pending = _number(tail[HeaderName.NUM_PENDING])
    except (KeyError, ValueError) as error:
        raise ProtocolError(
            f"{what}: the answer is no stored message", detail=repr(block[:120])
        ) from error
    kept = block[:added]
    own = b"" if kept == _VERSION_LINE else kept + b"\r\n\r\n"
    message = Message((subject, b"", own, payload), (sequence, time_ns))
    return Stored(message, previous, pending)


def _number(text: str) -> int:
    # A uint64 has at most 20 digits.
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise ValueError(f"no number: {text[:40]!r}")
    return int(text)


def read_status(frame: Frame) -> Status | None:
    """Return the status that a frame has in the place of a message."""
    if frame[3] or not frame[2] or _ADDED in frame[2]:
        return None
    return parse_status(frame[2])


def refusal(status: Status, what: str) -> NatsStreamError:
    """Return the error for a status that is neither the end nor "nothing there"."""
    text = f"{what}: {status.description or 'the server gave no reason'} ({status.code})"
    if status.code == StatusCode.API_LEVEL:
        return UnsupportedServerError(text, code=status.code, hint="upgrade the server")
    return ServerError(text, code=status.code, description=status.description)


class Run:
    """Puts the frames of one answer together, and refuses a hole in it.

    Args:
        what: The read's name in error texts.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._messages: list[Message] = []
        self._pending = 0
        self.has_batches: bool = True

    def add(self, frame: Frame) -> DirectBatch | None:
        """Take the next frame; returns the batch when it was the last one.

        Raises:
            IncompleteReadError: Something is missing before this frame.
            ServerError: The server refuses the question.
        """
        status = read_status(frame)
        if status is None:
            self._add_message(frame)
            return None if self.has_batches else self.batch(None)
        if status.code == StatusCode.NOT_FOUND and not self._messages:
            return DirectBatch(())
        if status.code != StatusCode.END_OF_BATCH:
            raise refusal(status, self._what)
        if status.number(HeaderName.LAST_SEQUENCE) != self.last_seq:
            raise self.broken("its end names another last message")
        return self.batch(status)

    def _add_message(self, frame: Frame) -> None:
        stored = read_stored(frame, self._what)
        if stored.previous_seq is None:
            # A server that knows no batches answers with one message, and no end.
            self.has_batches = False
        elif stored.previous_seq != self.last_seq:
            raise self.broken(f"message {stored.previous_seq} is missing")
        self._messages.append(stored.message)
        self._pending = stored.num_pending or 0

    @property
    def last_seq(self) -> int:
        """Sequence of the last message so far; 0 for none."""
        return self._messages[-1].sequence if self._messages else 0

    def batch(self, end: Status | None) -> DirectBatch:
        """Return what has come."""
        if end is None:
            return DirectBatch(tuple(self._messages), self._pending, self.last_seq)
        return DirectBatch(
            tuple(self._messages),
            end.number(HeaderName.NUM_PENDING) or 0,
            self.last_seq,
            end.number(HeaderName.UP_TO_SEQUENCE) or 0,
        )

    def broken(self, why: str) -> IncompleteReadError:
        """Return the error for an answer that is not whole."""
        return IncompleteReadError(
            f"{self._what}: the answer broke off after "
            f"{counted(len(self._messages), 'message')}: {why}",
            last_seq=self.last_seq,
            hint="ask again",
        )
