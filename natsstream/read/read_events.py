"""Events and reports of readers that recover by themselves.

Law: listening is optional. Events that are not read in time are dropped, oldest first, and counted.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Literal, TypeAlias

from natsstream.read.progress import Gap, ReadReport

BreakReason: TypeAlias = Literal[
    "connection",
    "consumer_deleted",
    "heartbeats",
    "leadership_change",
    "no_answer",
    "no_consumer",
    "other",
    "out_of_order",
    "server_shutdown",
    "stalled",
]
"""Why a consumer was recreated.

"connection": the connection broke. "consumer_deleted": the consumer was deleted, by a client or
because it was idle for a minute. "heartbeats": two heartbeats were missed. "leadership_change",
"server_shutdown": the consumer's server gave it up. "no_consumer": a pull had no responders.
"out_of_order": deliveries were missing or repeated. "no_answer": a consumer could not be created,
or the stream's leader did not answer. "stalled": the leader held a message that the consumer did
not deliver, such as one on a replica that is cut off. "other": a reason of a newer server.
"""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvent:
    """An event of a reader.

    Attributes:
        time: When the client noticed it, UTC.
    """

    LOG_LEVEL: ClassVar[int] = logging.WARNING

    time: datetime = field(default_factory=_now)

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return type(self).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatsMissed(ReadEvent):
    """No heartbeat came; the consumer is recreated or pulled from anew.

    Attributes:
        seconds: Length of the silence.
    """

    seconds: float

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return f"no heartbeat for {self.seconds:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreated(ReadEvent):
    """The read resumed with a new consumer.

    Attributes:
        reason: Why the old one was given up.
        next_seq: The sequence that it resumes at.
    """

    reason: BreakReason
    next_seq: int

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return f"consumer recreated ({self.reason}); resuming at sequence {self.next_seq}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GapFound(ReadEvent):
    """The stream has no messages at some sequences.

    Attributes:
        gap: Which, and why.
    """

    gap: Gap

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return f"sequences {self.gap.first_seq} to {self.gap.last_seq} are {self.gap.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndFound(ReadEvent):
    """A producer has ended the stream: the read came to the record that says so.

    Attributes:
        sequence: The record's sequence; what lies behind it was stored by others.
    """

    LOG_LEVEL: ClassVar[int] = logging.INFO

    sequence: int

    def describe(self) -> str:
        """Return the event as one line, as it is logged."""
        return f"a producer has ended the stream at sequence {self.sequence}"


@dataclass(slots=True)
class OrderedReport(ReadReport):
    """Counts of an ordered consumer so far; `resumes` counts its recreations.

    Attributes:
        reasons: Resumes by reason.
        events_dropped: Events that were not read in time.
    """

    reasons: dict[BreakReason, int] = field(default_factory=dict["BreakReason", int])
    events_dropped: int = 0

    def add_reason(self, reason: BreakReason) -> None:
        """Count a resume after a break, and its reason."""
        self.add_resume()
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
