"""What happens to those who read a push consumer, beside what is in `delivery/events.py`.

Law: as there: nobody has to listen; an event tells of what was dealt with, errors are raised.
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.read.read_events import ReadEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveriesMissed(ReadEvent):
    """The server sent messages that did not arrive, as while the connection was broken.

    With acks they are delivered again after `ack_wait`; with `ack_policy="none"` they are not.

    Attributes:
        count: How many deliveries.
        next_stream_seq: Sequence in the stream of what arrived next; 0 where nothing has yet.
    """

    count: int
    next_stream_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverSubjectChanged(ReadEvent):
    """Somebody has changed where the consumer delivers to; the reader listens there now.

    Attributes:
        subject: The new deliver subject.
    """

    subject: str
