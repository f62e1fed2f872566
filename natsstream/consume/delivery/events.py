"""What happens to those who read a consumer, as typed objects."""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.read.read_events import HeartbeatsMissed, ReadEvent

__all__ = [
    "ConsumerDeleted",
    "ConsumerRecreated",
    "DeliverSubjectChanged",
    "DeliveriesMissed",
    "HeartbeatsMissed",
    "LeaderChanged",
    "LimitExceeded",
    "Pinned",
    "ReadEvent",
    "Reconnected",
    "Unpinned",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnected(ReadEvent):
    """The connection was lost and is back; messages are asked for again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged(ReadEvent):
    """The consumer's server gave it up, and another one has it or will have it.

    Attributes:
        reason: The server's words.
    """

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerDeleted(ReadEvent):
    """The consumer is gone; the reader gets `ConsumerDeletedError`.

    Attributes:
        consumer: Its name.
    """

    consumer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRecreated(ReadEvent):
    """A consumer of the same name was made anew; what it delivers begins as it is configured.

    Attributes:
        consumer: Its name.
    """

    consumer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitExceeded(ReadEvent):
    """The server refused a pull by a limit of the consumer; smaller ones are sent.

    Attributes:
        limit: "max_batch", "max_expires", "max_bytes" or "max_waiting".
        reason: The server's words.
    """

    limit: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned(ReadEvent):
    """The server has chosen this reader of the priority group: it alone gets messages.

    Attributes:
        pin_id: What the server knows it by.
    """

    pin_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpinned(ReadEvent):
    """Another reader of the priority group is chosen; this one stands by."""


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
