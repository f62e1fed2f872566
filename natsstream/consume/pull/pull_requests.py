"""What the pulls of one flow say: the consumer's limits kept, and the pin of its priority group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsstream._wire.headers import HeaderName, Headers
from natsstream.consume.pull.open_pulls import PullTimes
from natsstream.units import NS_PER_SECOND

if TYPE_CHECKING:
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.consume.delivery.source import ConsumerSource
    from natsstream.consume.pull.requests import ConsumeOptions

_BODIES_MAX = 64


class PullRequests:
    """The bodies of one flow's pulls.

    Attributes:
        is_pinning: True when the server delivers to one reader of the group alone.
        pin_id: What it knows this reader by; empty while it stands by.
        times: How long its pulls wait at the server.
    """

    times: PullTimes

    def __init__(self, options: ConsumeOptions, source: ConsumerSource) -> None:
        self._options = options
        has_group = bool(options.group.group)
        self.is_pinning: bool = has_group and source.priority_policy == "pinned_client"
        self.pin_id: str = ""
        # Few forms come again and again; JSON costs more than all else about a pull.
        self._bodies: dict[tuple[int, int], bytes] = {}
        self.limit_expires(source.max_expires_ns)

    def body(self, count: int, max_bytes: int) -> bytes:
        """Return the body of a pull for so many messages and bytes, 0 for any."""
        body = self._bodies.get((count, max_bytes))
        if body is None:
            if len(self._bodies) >= _BODIES_MAX:
                self._bodies.clear()
            body = self._options.body(count, max_bytes, self.times, self.pin_id)
            self._bodies[count, max_bytes] = body
        return body

    def limit_expires(self, max_expires_ns: int) -> None:
        """Take over how long the consumer lets a pull wait; 0 is no limit."""
        limit_s = max_expires_ns / NS_PER_SECOND or self._options.expires_s
        self.times = self._options.times(limit_s)
        self._bodies.clear()

    def set_pin(self, pin_id: str) -> bool:
        """Note what the server knows this reader by, empty for nothing; True when it is news."""
        if pin_id == self.pin_id:
            return False
        self.pin_id = pin_id
        self._bodies.clear()
        return True


def pin_of(message: DeliveredMessage) -> str:
    """Return the pin that a message carries; empty for none."""
    block = message.header_block
    return Headers(block).get(HeaderName.PIN_ID, "") if block else ""
