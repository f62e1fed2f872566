"""A stored message as readers hand it out.

Law: making one costs next to nothing; subject, sequence, time and headers are read from the wire's
bytes when they are asked for.
"""

from __future__ import annotations

from datetime import datetime

from natsstream._wire.acks import ack_numbers
from natsstream._wire.headers import Headers
from natsstream._wire.parser import Frame
from natsstream.units import time_from_ns

_NO_HEADERS = Headers()


class Message:
    """One message of a stream."""

    __slots__ = ("_frame", "_numbers")

    def __init__(self, frame: Frame, numbers: tuple[int, int] | None = None) -> None:
        self._frame = frame
        self._numbers = numbers

    @property
    def subject(self) -> str:
        """The subject that it is stored under."""
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
    def time_ns(self) -> int:
        """When the stream stored it, in Unix nanoseconds."""
        return self._numbers_of()[1]

    @property
    def time(self) -> datetime:
        """When the stream stored it, in UTC, cut to microseconds."""
        return time_from_ns(self._numbers_of()[1])

    def _numbers_of(self) -> tuple[int, int]:
        if self._numbers is None:
            sequence, _, time_ns, _ = ack_numbers(self._frame[1])
            self._numbers = (sequence, time_ns)
        return self._numbers

    def __repr__(self) -> str:
        return f"<Message {self.sequence} {self.subject!r} {len(self.data)} bytes>"
