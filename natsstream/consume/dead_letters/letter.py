"""A dead letter as it is handed out.

Law: what it holds does not change; replaying and dropping are the queue's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from natsstream.api.message import Message
from natsstream.consume.dead_letters.envelope import DeadReason
from natsstream.consume.dead_letters.subjects import LetterKey
from natsstream.units import time_from_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that a consumer could not handle.

    Attributes:
        queue: The dead-letter stream that it is in.
        number: Its sequence in the dead-letter stream: what `get`, `replay` and `drop` take.
        stream: The stream that the message was published to.
        consumer: The consumer that could not handle it.
        sequence: Its sequence in that stream.
        reason: Why it is dead; see `DeadReason`.
        error: The last error, or the reason that was given; empty for none.
        deliveries: How often it was delivered; 0 where nobody told.
        time_ns: When it was found dead, in Unix nanoseconds.
        message: The message as it was: subject, payload, headers, sequence and time. None when it
            is gone: only the server told of its failure, and its stream does not hold it any more.
        is_copy: True when a worker has stored the message itself here; False when the server told
            of it, and `message` was read from its stream.
        related: Sequences in the dead-letter stream of what else is told about the same message.
    """

    queue: str
    number: int
    stream: str
    consumer: str
    sequence: int
    reason: DeadReason
    error: str
    deliveries: int
    time_ns: int
    message: Message | None = field(compare=False)
    is_copy: bool
    related: tuple[int, ...] = field(default=(), repr=False)

    @property
    def time(self) -> datetime:
        """When it was found dead, in UTC."""
        return time_from_ns(self.time_ns)

    @property
    def is_gone(self) -> bool:
        """True when nobody has the message any more."""
        return self.message is None

    @property
    def key(self) -> LetterKey:
        """Which message it is about; the time is 0 for one that is gone."""
        time_ns = self.message.time_ns if self.message else 0
        return LetterKey(self.stream, self.consumer, self.sequence, time_ns)
