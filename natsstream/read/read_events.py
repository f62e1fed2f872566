"""What happens to a read that goes on by itself, as typed objects.

Law: nobody has to listen. What nobody takes in time is dropped, oldest first, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

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
"""Why a consumer had to be made again.

"connection": the connection broke. "consumer_deleted": somebody deleted the consumer, or the
server did because nothing was asked of it for a minute. "heartbeats": nothing came for longer than
two heartbeats. "leadership_change", "server_shutdown": the consumer's server gave it up.
"no_consumer": a request found no consumer. "out_of_order": deliveries were missing or repeated.
"no_answer": a consumer could not be made, or the stream's leader did not answer. "stalled": the
leader held a message that the consumer did not deliver, such as one on a replica that is cut off.
"other": what a newer server says.
"""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvent:
    """Something happened to a read.

    Attributes:
        time: When this side learnt it, UTC.
    """

    time: datetime = field(default_factory=_now)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatsMissed(ReadEvent):
    """The server, or the way to it, was silent; the consumer is made again.

    Attributes:
        seconds: How long nothing came.
    """

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreated(ReadEvent):
    """The read goes on with a new consumer.

    Attributes:
        reason: Why the one before was given up.
        next_seq: The sequence that it goes on at.
    """

    reason: BreakReason
    next_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GapFound(ReadEvent):
    """The stream has no messages at some sequences.

    Attributes:
        gap: Which, and why.
    """

    gap: Gap


@dataclass(slots=True)
class OrderedReport(ReadReport):
    """What an ordered consumer has done so far; `resumes` counts the times it was made again.

    Attributes:
        reasons: Resumes by reason.
        events_dropped: Events that nobody took in time.
    """

    reasons: dict[BreakReason, int] = field(default_factory=dict["BreakReason", int])
    events_dropped: int = 0

    def add_reason(self, reason: BreakReason) -> None:
        """Count that the read goes on after a break, and why there was one."""
        self.add_resume()
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
