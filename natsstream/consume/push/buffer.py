"""The buffered messages of a push consumer; pure.

Law: a flow-control request is answered when the reader has taken all messages before it, not when
it arrives; so the server's window is what the reader holds. A message without room is dropped and
counted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from natsstream._wire.acks import ack_numbers
from natsstream._wire.headers import HeaderName
from natsstream._wire.parser import Frame
from natsstream._wire.status import StatusCode, parse_status
from natsstream.core.bounded_queue import BoundedQueue

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The server has nothing to send, or waits.

    Attributes:
        last_consumer_seq: The last delivery that it made; None where it does not tell.
        stalled: The subject that it waits for an answer on; empty where it does not wait.
    """

    last_consumer_seq: int | None
    stalled: str


@dataclass(frozen=True, slots=True)
class FlowRequest:
    """The server asks to be told when what it has sent was taken.

    Attributes:
        subject: Where it wants the answer.
    """

    subject: str


Control: TypeAlias = Heartbeat | FlowRequest


def read_control(frame: Frame) -> Control | None:
    """Return what the server says with a frame that is no message; None for anything else."""
    status = parse_status(frame[2])
    if status is None or status.code != StatusCode.CONTROL:
        return None
    if status.is_heartbeat:
        stalled = status.headers.get(HeaderName.CONSUMER_STALLED, "")
        return Heartbeat(status.number(HeaderName.LAST_CONSUMER), stalled)
    if not frame[1]:
        return None
    return FlowRequest(frame[1].decode("utf-8", "surrogateescape"))


class DeliveryCount:
    """Whether deliveries are missing, by the consumer's numbers.

    Attributes:
        missed: Deliveries that did not arrive.
    """

    def __init__(self) -> None:
        self.missed: int = 0
        self._last: int | None = None

    def begin(self, last: int) -> None:
        """Take a delivery as the last one before the reader was there."""
        self._last = last

    def add(self, replies: list[bytes]) -> int:
        """Count messages that arrived together, by their ack subjects; returns how many are missing
        before or between them.

        A number that is not above the last one is no loss: a consumer that was reset, or has
        another leader, counts again.

        Raises:
            ProtocolError: One is no ack subject; nothing was counted.
        """
        first, last = ack_numbers(replies[0])[1], ack_numbers(replies[-1])[1]
        if last - first + 1 == len(replies) and self._last is not None and first == self._last + 1:
            self._last = last
            return 0
        missing = 0
        for number in [ack_numbers(reply)[1] for reply in replies]:
            if self._last is not None and number > self._last:
                missing += number - self._last - 1
            self._last = number
        self.missed += missing
        return missing

    def hear(self, last: int | None) -> int:
        """Compare with a heartbeat's number; returns how many deliveries are missing."""
        if last is None:
            return 0
        missing = max(last - self._last, 0) if self._last is not None else 0
        self._last = last
        self.missed += missing
        return missing


class PushBuffer(Generic[Item]):
    """The messages that wait for the reader.

    Args:
        max_count: Messages that may wait.
        max_bytes: Bytes that may wait; one larger message is taken alone.

    Attributes:
        queue: The messages.
    """

    def __init__(self, *, max_count: int, max_bytes: int) -> None:
        self.queue: BoundedQueue[Item] = BoundedQueue(max_count=max_count, max_bytes=max_bytes)
        self._taken = 0
        # Subjects to answer on, each once so many messages were taken.
        self._requests: deque[tuple[int, str]] = deque()

    def ask(self, subject: str) -> None:
        """Add a request for flow control behind the messages that wait; repeats add nothing."""
        if all(subject != asked for _, asked in self._requests):
            self._requests.append((self._taken + len(self.queue), subject))

    def take(self) -> Item | None:
        """Return the next message; None when none waits."""
        item = self.queue.take()
        self._taken += item is not None
        return item

    def due(self) -> list[str]:
        """Return the subjects to answer on now: all messages before them were taken."""
        subjects: list[str] = []
        while self._requests and self._requests[0][0] <= self._taken:
            subjects.append(self._requests.popleft()[1])
        return subjects

    def take_all(self) -> list[Item]:
        """Return all messages that wait, and forget the requests among them."""
        self._requests.clear()
        return self.queue.take_all()
