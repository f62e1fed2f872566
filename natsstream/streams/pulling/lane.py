"""The way in for messages: one subscription, and the pulls that are open on it.

What lives here: sending pulls and counting what is still to come of them. What must not: when to
send one (`flow.py`), and what to do when one ends.

Law: one subscription, because two would lose the order of what the server sends. Messages do not
tell which pull they answer, statuses and heartbeats do: so messages are counted against all open
pulls together, and a pull that ends, or of which nothing is heard any more, takes its rest out of
the count. When none is open the count is 0, whatever was lost on the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from natsstream._wire import api as subjects
from natsstream._wire.headers import HeaderName
from natsstream._wire.status import parse_status
from natsstream.streams.delivery.delivered import DeliveredMessage
from natsstream.streams.pulling.ends import End, PullStatus, read_status

if TYPE_CHECKING:
    from natsstream._wire.client import Subscription
    from natsstream._wire.parser import Frame
    from natsstream.errors import NatsStreamError
    from natsstream.streams.delivery.settling import Settling

OnMessages = Callable[[list[DeliveredMessage]], None]
OnStatus = Callable[[PullStatus], None]

# Far more than are open at once: older ones were filled, which the server does not tell.
_KEPT_MAX = 64
# A server that answers no ping for so long has lost what it had sent, or is lost itself.
_LINGER_MAX_S = 30.0
# These end all pulls that the consumer has of this client.
_BREAKS = frozenset({End.MOVED, End.DELETED, End.WRONG_PIN, End.LIMIT})


class _Pull:
    __slots__ = ("count", "heard_at", "max_bytes")

    def __init__(self, count: int, max_bytes: int, heard_at: float) -> None:
        self.count: int = count
        self.max_bytes: int = max_bytes
        self.heard_at: float = heard_at


class Lane:
    """A subscription and its open pulls.

    Args:
        settling: Settles the messages.
        on_messages: Called with what arrived together, in the server's order; must not wait.
        on_status: Called with each status of an open pull, which is counted out by then unless it
            is a heartbeat.
        on_failed: Called when the user may not pull or listen.

    Attributes:
        left: Messages that the open pulls may still bring.
        heard_at: When something last came, on the loop's clock.
        delivered_at: When messages last came.
    """

    def __init__(
        self,
        settling: Settling,
        *,
        on_messages: OnMessages,
        on_status: OnStatus,
        on_failed: Callable[[NatsStreamError], None],
    ) -> None:
        self.left: int = 0
        self.heard_at: float = 0.0
        self.delivered_at: float = 0.0
        self._settling = settling
        self._on_messages = on_messages
        self._on_status = on_status
        self._on_failed = on_failed
        self._client = settling.source.api.client
        self._inbox = self._client.new_inbox()
        self._number = 0
        self._pulls: dict[bytes, _Pull] = {}
        self._subscription: Subscription | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._time = asyncio.get_running_loop().time
        source = settling.source
        self._subject = source.api.subject(subjects.consumer_next(source.stream, source.consumer))

    async def open(self) -> None:
        """Subscribe.

        Raises:
            ConnectionClosedError: The connection was closed.
            ConnectionLostError: There is none, and too much waits for one.
        """
        self._subscription = await self._client.subscribe(
            f"{self._inbox}.*", self._on_frames, on_denied=self._on_failed
        )

    @property
    def bytes_left(self) -> int:
        """Bytes that the open pulls ask for; exact where each pull has a limit in bytes."""
        return sum([pull.max_bytes for pull in self._pulls.values()]) if self.left else 0

    def pull(
        self, count: int, body: bytes, *, max_bytes: int = 0, subject: str | None = None
    ) -> None:
        """Ask for messages.

        Args:
            count: How many the body asks for.
            body: The request.
            max_bytes: How many bytes the body asks for, 0 for any.
            subject: Where to, when it is not the consumer's subject for pulls.

        Raises:
            ConnectionClosedError: The connection was closed.
            ConnectionLostError: There is none, and too much waits for one.
        """
        self._number += 1
        reply = f"{self._inbox}.{self._number}"
        client = self._client
        client.write(client.publish_command(subject or self._subject, reply, b"", body))
        self.heard_at = self._time()
        pulls = self._pulls
        pulls[reply.encode()] = _Pull(count, max_bytes, self.heard_at)
        self.left += count
        if len(pulls) > _KEPT_MAX:
            del pulls[next(iter(pulls))]

    def is_about(self, subject: str) -> bool:
        """Tell whether a publish to the subject is a pull of this lane, or has its reply."""
        is_pull = subjects.is_same_request(self._subject, subject)
        return is_pull or subject.startswith(f"{self._inbox}.")

    def is_silent(self, since: float) -> bool:
        """Tell whether nothing was heard of any open pull; single ones are counted out."""
        if not self.left or self.delivered_at >= since:
            return False
        alive = {reply: pull for reply, pull in self._pulls.items() if pull.heard_at >= since}
        if not alive:
            self.forget()
            return True
        self._pulls = alive
        self.left = min(self.left, sum([pull.count for pull in alive.values()]))
        return False

    def forget(self) -> None:
        """Expect nothing of the open pulls any more; what comes all the same is taken."""
        self.left = 0
        self._pulls.clear()

    def stop(self) -> None:
        """Withdraw the open pulls: the server sends no more; what is under way is still taken."""
        self.forget()
        if self._subscription is not None:
            self._subscription.stop()

    def linger(self, on_end: Callable[[], None] | None = None) -> None:
        """Withdraw the open pulls, and close when the server has no more on its way.

        Its PONG tells, however long it or this process stands still; nobody waits for it. When the
        connection breaks first, there is nothing on its way any more.

        Args:
            on_end: Called then, once; without it the lane is closed.
        """
        self.stop()
        end = on_end or self.close
        if self._client.when_flushed(lambda: self._end_linger(end)):
            loop = asyncio.get_running_loop()
            self._lingering = loop.call_later(_LINGER_MAX_S, self._end_linger, end)
        else:
            end()

    def _end_linger(self, end: Callable[[], None]) -> None:
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
            end()

    def close(self) -> None:
        """End the subscription here and on the server; closing twice is fine."""
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        self.forget()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def _on_frames(self, frames: list[Frame]) -> None:
        # The sink of the fast lane: it must not wait and must not raise.
        settling = self._settling
        self.heard_at = self._time()
        # A status has no reply; a message's reply is its ack subject.
        messages = [DeliveredMessage(frame, settling) for frame in frames if frame[1]]
        count = len(messages)
        if count:
            self.delivered_at = self.heard_at
            if self.left > count:
                self.left -= count
            else:  # Below 0 they are of a pull that was forgotten.
                self.forget()
        if count < len(frames):
            said = [self._read(frame) for frame in frames if not frame[1]]
            if count:
                self._on_messages(messages)
            for each in said:
                if each is not None:
                    self._on_status(each)
        else:
            self._on_messages(messages)

    def _read(self, frame: Frame) -> PullStatus | None:
        """Return the status of an open pull, which is counted out when it ends."""
        status = parse_status(frame[2])
        pull = self._pulls.get(frame[0])
        if status is None or pull is None:
            return None  # Of a pull that is over or forgotten.
        said = read_status(status, asked_bytes=pull.max_bytes)
        if said.end is End.HEARTBEAT:
            pull.heard_at = self.heard_at
            return said
        if said.end in _BREAKS:
            self.forget()
            return said
        del self._pulls[frame[0]]
        unused = status.number(HeaderName.PENDING_MESSAGES)
        self.left -= pull.count if unused is None else unused
        if self.left <= 0 or not self._pulls:
            self.forget()
        return said
