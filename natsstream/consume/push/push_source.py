"""Which push consumer is read, and what the server says of it now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from natsstream.errors import UsageError

if TYPE_CHECKING:
    from natsstream.consume.delivery.source import ConsumerSource


@dataclass(frozen=True, slots=True)
class PushState:
    """A push consumer at one moment.

    Attributes:
        deliver_subject: Where it delivers.
        is_bound: True while somebody listens there.
        consumer_seq: The number of its last delivery.
    """

    deliver_subject: str
    is_bound: bool
    consumer_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSource:
    """One push consumer, as its reader sees it.

    Attributes:
        consumer: The consumer.
        group: Its deliver group; empty for none.
        heartbeat_ns: Its idle heartbeat in nanoseconds; 0 for none.
    """

    consumer: ConsumerSource
    group: str
    heartbeat_ns: int

    async def look(self) -> PushState:
        """Ask the server for the consumer.

        Raises:
            UsageError: It does not push.
            ConsumerNotFoundError: It is gone.
            StreamNotFoundError: Its stream is gone.
            TransportError: There was no answer in time.
        """
        answer = await self.consumer.info()
        deliver_subject = answer.part("config").text("deliver_subject", "")
        delivered = answer.part("delivered").count("consumer_seq")
        if not deliver_subject:
            raise UsageError(
                f"{self.consumer.what} does not push",
                hint="consume(), fetch() and next() pull from it",
            )
        return PushState(deliver_subject, answer.flag("push_bound"), delivered)
