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
        count: Messages that wait.
        bytes: Their bytes.
        dropped: Messages that found no room.
    """

    def __init__(self, *, max_count: int, max_bytes: int) -> None:
        self.count: int = 0
        self.bytes: int = 0
        self.dropped: int = 0
        self._max_count = max_count
        self._max_bytes = max_bytes
        # A text is a subject to answer on, once all before it was taken.
        self._queue: deque[tuple[Item, int] | str] = deque()
        self._unanswered: set[str] = set()
        self._due: list[str] = []

    def put(self, item: Item, size: int) -> bool:
        """Add a message of `size` bytes; False when there is no room and it was dropped."""
        is_full = self.count >= self._max_count
        if is_full or (self.count and self.bytes + size > self._max_bytes):
            self.dropped += 1
            return False
        self._queue.append((item, size))
        self.count += 1
        self.bytes += size
        return True

    def ask(self, subject: str) -> None:
        """Add a request for flow control behind the messages that wait; repeats add nothing."""
        if subject not in self._unanswered:
            self._unanswered.add(subject)
            self._queue.append(subject)
            self._pass_requests()

    def take(self) -> Item | None:
        """Return the next message; None when none waits."""
        if not self._queue:
            return None
        entry = self._queue.popleft()
        assert not isinstance(entry, str)  # noqa: S101 - `_pass_requests` left a message in front.
        self.count -= 1
        self.bytes -= entry[1]
        if self._unanswered:
            self._pass_requests()
        return entry[0]

    def due(self) -> list[str]:
        """Return the subjects to answer on now: all messages before them were taken."""
        subjects, self._due = self._due, []
        return subjects

    def take_all(self) -> list[Item]:
        """Return all messages that wait, and forget the requests among them."""
        items = [entry[0] for entry in self._queue if not isinstance(entry, str)]
        self._queue.clear()
        self._unanswered.clear()
        self._due.clear()
        self.count = self.bytes = 0
        return items

    def _pass_requests(self) -> None:
        while self._queue and isinstance(subject := self._queue[0], str):
            self._queue.popleft()
            self._unanswered.discard(subject)
            self._due.append(subject)
