"""A stored message, as readers return it.

Law: creating one costs next to nothing; subject, sequence, time and headers are read from the
wire's bytes on access.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from natsstream._wire.acks import ack_numbers
from natsstream._wire.headers import HeaderName, Headers
from natsstream._wire.parser import Frame
from natsstream.fields import Fields
from natsstream.units import parse_life_time, time_from_ns

_NO_HEADERS = Headers()
_MSG_SIZE = HeaderName.MSG_SIZE.value.encode()
_MARKER_REASON = HeaderName.MARKER_REASON.value.encode()
_TTL = HeaderName.TTL.value.encode()
# A uint64 has at most 20 digits.
_DIGITS_MAX = 20


def stored_message(answer: Fields) -> Message:
    """Return the message in an answer to `STREAM.MSG.GET`, whose bytes are base64.

    Raises:
        ProtocolError: The answer holds no stored message.
    """
    found = answer.part("message")
    numbers = (found.integer("seq", minimum=1), found.moment("time"))
    frame = (found.text("subject").encode(), b"", found.payload("hdrs"), found.payload("data"))
    return Message(frame, numbers)


class Message:
    """One message of a stream."""

    __slots__ = ("_frame", "_numbers")

    def __init__(self, frame: Frame, numbers: tuple[int, int] | None = None) -> None:
        self._frame = frame
        self._numbers = None if numbers is None else (*numbers, 0)

    @property
    def subject(self) -> str:
        """The subject under which it is stored."""
        return self._frame[0].decode("utf-8", "surrogateescape")

    @property
    def data(self) -> bytes:
        """The payload, as stored."""
        return self._frame[3]

    @property
    def headers(self) -> Headers:
        """Its headers; empty when it has none."""
        block = self._frame[2]
        return Headers(block) if block else _NO_HEADERS

    @property
    def sequence(self) -> int:
        """Its sequence in the stream, from 1."""
        return self._numbers_of()[0]

    @property
    def pending(self) -> int:
        """Messages that its consumer had yet to deliver after it; 0 if it was read alone."""
        return self._numbers_of()[2]

    @property
    def stored_bytes(self) -> int:
        """Size of the payload in the stream, also if `headers_only` left it out."""
        block = self._frame[2]
        if block and not self._frame[3] and _MSG_SIZE in block:
            told = Headers(block).get(HeaderName.MSG_SIZE, "")
            if told.isascii() and told.isdigit() and len(told) <= _DIGITS_MAX:
                return int(told)
        return len(self._frame[3])

    @property
    def ttl(self) -> int | None:
        """Whole seconds after which it expires, as set by its publisher; -1 is never.

        None if the publisher set none; the stream's `max_age` applies as well.
        """
        block = self._frame[2]
        if not block or _TTL not in block:
            return None
        return parse_life_time(Headers(block).get(HeaderName.TTL, ""))

    @property
    def marker_reason(self) -> str | None:
        """Why the server stored it as a delete marker; None if it is not a marker.

        "MaxAge": the subject's last message expired. "Purge" and "Remove": it was removed
        (ADR-43).
        """
        block = self._frame[2]
        if not block or _MARKER_REASON not in block:
            return None
        return Headers(block).get(HeaderName.MARKER_REASON)

    @property
    def time_ns(self) -> int:
        """When the stream stored it, in Unix nanoseconds."""
        return self._numbers_of()[1]

    @property
    def time(self) -> datetime:
        """When the stream stored it, in UTC, cut to microseconds."""
        return time_from_ns(self._numbers_of()[1])

    def _numbers_of(self) -> tuple[int, int, int]:
        if self._numbers is None:
            sequence, _, time_ns, pending = ack_numbers(self._frame[1])
            self._numbers = (sequence, time_ns, pending)
        return self._numbers

    def __repr__(self) -> str:
        return f"<Message {self.sequence} {self.subject!r} {len(self.data)} bytes>"


def messages_below(messages: Sequence[Message], start: bytes) -> list[Message]:
    """Return the messages whose subjects begin with some bytes.

    Cost: 40 ns a message.
    """
    # A method or property would cost as much again.
    return [each for each in messages if each._frame[0].startswith(start)]  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def frames_of(messages: Sequence[Message]) -> list[Frame]:
    """Return messages as a consumer has delivered them."""
    return [each._frame for each in messages]  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
