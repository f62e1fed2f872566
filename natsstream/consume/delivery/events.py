"""Events of the readers of a consumer."""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.read.read_events import ReadEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnected(ReadEvent):
    """The connection was lost and is back; pulling resumes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged(ReadEvent):
    """The consumer's leader stepped down; another server takes over.

    Attributes:
        reason: The server's words.
    """

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerDeleted(ReadEvent):
    """The consumer was deleted; the reader raises `ConsumerDeletedError`.

    Attributes:
        consumer: Its name.
    """

    consumer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRecreated(ReadEvent):
    """The consumer was deleted and created again; it delivers from its configured start.

    Attributes:
        consumer: Its name.
    """

    consumer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitExceeded(ReadEvent):
    """A pull exceeded a limit of the consumer; smaller pulls follow.

    Attributes:
        limit: "max_batch", "max_expires", "max_bytes" or "max_waiting".
        reason: The server's words.
    """

    limit: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned(ReadEvent):
    """The server has pinned this reader of the priority group: only it gets messages.

    Attributes:
        pin_id: The server's id of this reader.
    """

    pin_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpinned(ReadEvent):
    """Another reader of the priority group is pinned; this one stands by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveriesMissed(ReadEvent):
    """Deliveries did not arrive, as while the connection was broken.

    With acks they are redelivered after `ack_wait`; with `ack_policy="none"` they are lost.

    Attributes:
        count: How many deliveries.
        next_stream_seq: Stream sequence of the next message that arrived; 0 if none has yet.
    """

    count: int
    next_stream_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverSubjectChanged(ReadEvent):
    """The consumer's deliver subject was changed; the reader has subscribed to the new one.

    Attributes:
        subject: The new deliver subject.
    """

    subject: str
