"""Events of the readers of a consumer."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from natsstream.read.read_events import ReadEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnected(ReadEvent):
    """The connection was lost and is back; pulling resumes."""

    LOG_LEVEL: ClassVar[int] = logging.INFO

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return "connection is back; pulling resumes"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged(ReadEvent):
    """The consumer's leader stepped down; another server takes over.

    Attributes:
        reason: The server's words.
    """

    LOG_LEVEL: ClassVar[int] = logging.INFO

    reason: str

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return f"leader stepped down: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerDeleted(ReadEvent):
    """The consumer was deleted; the reader raises `ConsumerDeletedError`.

    Attributes:
        consumer: Its name.
    """

    LOG_LEVEL: ClassVar[int] = logging.ERROR

    consumer: str

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return "consumer deleted; the reader ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRecreated(ReadEvent):
    """The consumer was deleted and created again; it delivers from its configured start.

    Attributes:
        consumer: Its name.
    """

    consumer: str

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return "consumer was deleted and created again; it delivers from its start"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitExceeded(ReadEvent):
    """A limit of the consumer was met: pulls become smaller, or wait for acks.

    Attributes:
        limit: "max_batch", "max_expires", "max_bytes", "max_waiting" or "max_ack_pending".
        reason: The server's words; for "max_ack_pending" the number of messages without an ack.
    """

    limit: str
    reason: str

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        if self.limit == "max_ack_pending":
            return self.reason
        return f"a pull exceeds {self.limit}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned(ReadEvent):
    """The server has pinned this reader of the priority group: only it gets messages.

    Attributes:
        pin_id: The server's id of this reader.
    """

    LOG_LEVEL: ClassVar[int] = logging.INFO

    pin_id: str

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return "this reader is pinned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpinned(ReadEvent):
    """Another reader of the priority group is pinned; this one stands by."""

    LOG_LEVEL: ClassVar[int] = logging.INFO

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return "another reader is pinned; this one stands by"


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

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return f"{self.count} deliveries did not arrive"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverSubjectChanged(ReadEvent):
    """The consumer's deliver subject was changed; the reader has subscribed to the new one.

    Attributes:
        subject: The new deliver subject.
    """

    LOG_LEVEL: ClassVar[int] = logging.INFO

    subject: str

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return f"deliver subject is {self.subject} now"
