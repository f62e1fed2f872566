"""The subscription of pulls: it sends them and receives their messages and statuses.

Law: one subscription, because two would lose the order of what the server sends. `open_pulls.py`
counts how much is still to come, `window.py` decides when to pull.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from natsstream._wire.acks import is_ack_subject
from natsstream._wire.client import Subscription
from natsstream._wire.headers import HeaderName
from natsstream._wire.parser import Frame
from natsstream._wire.status import parse_status
from natsstream._wire.subjects import is_same_request
from natsstream.api.consumer_requests import next_subject
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.pull.open_pulls import OpenPulls, PullTimes
from natsstream.consume.pull.outcomes import PullOutcome, PullStatus, read_status
from natsstream.errors import NatsStreamError

_log = logging.getLogger("natsstream.consumer")

OnMessages = Callable[[list[DeliveredMessage]], None]
OnStatus = Callable[[PullStatus], None]

# These end all pulls that the consumer has of this client.
_BREAKS = frozenset(
    {
        PullOutcome.LEADER_CHANGED,
        PullOutcome.CONSUMER_DELETED,
        PullOutcome.WRONG_PIN,
        PullOutcome.LIMIT,
    }
)


class PullSubscription:
    """A subscription and its open pulls.

    Args:
        ack_sender: Settles the messages.
        on_messages: Called with what arrived together, in the server's order; must not wait.
        on_status: Called with each status of an open pull, which is counted out by then unless it
            is a heartbeat.
        on_failed: Called when the user may not pull or listen.

    Attributes:
        pulls: The pulls that the server is believed to hold; its clock is the loop's.
    """

    def __init__(
        self,
        ack_sender: AckSender,
        *,
        on_messages: OnMessages,
        on_status: OnStatus,
        on_failed: Callable[[NatsStreamError], None],
    ) -> None:
        self.pulls: OpenPulls = OpenPulls()
        self._ack_sender = ack_sender
        self._on_messages = on_messages
        self._on_status = on_status
        self._on_failed = on_failed
        self._client = ack_sender.source.api.client
        self._inbox = self._client.new_inbox()
        self._number = 0
        self._subscription: Subscription | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._time = asyncio.get_running_loop().time
        source = ack_sender.source
        self._subject = next_subject(source.api, source.stream, source.consumer)

    async def open(self) -> None:
        """Subscribe.

        Raises:
            ConnectionClosedError: The connection was closed.
            ConnectionLostError: There is none, and too much waits for one.
        """
        self._subscription = await self._client.subscribe(
            f"{self._inbox}.*",
            self._on_frames,
            on_denied=self._on_failed,
            what=self._ack_sender.source.what,
        )

    def pull(
        self,
        count: int,
        body: bytes,
        *,
        times: PullTimes,
        max_bytes: int = 0,
        subject: str | None = None,
    ) -> None:
        """Ask for messages.

        Args:
            count: How many the body asks for.
            body: The request.
            times: How long the body lets the pull wait.
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
        self.pulls.add(reply.encode(), count, self._time(), times=times, max_bytes=max_bytes)

    def is_about(self, subject: str) -> bool:
        """Return True if a publish to the subject is a pull of this one, or has its reply."""
        is_pull = is_same_request(self._subject, subject)
        return is_pull or subject.startswith(f"{self._inbox}.")

    def stop(self) -> None:
        """Withdraw the open pulls: the server sends no more; messages in flight still arrive."""
        self.pulls.forget()
        if self._subscription is not None:
            self._subscription.stop()

    def linger(self, on_end: Callable[[], None] | None = None) -> None:
        """Withdraw the open pulls, and close once nothing is in flight any more.

        The server's PONG says so, however late it comes; no caller waits for it. After a disconnect
        nothing is in flight.

        Args:
            on_end: Called then, once; without it the subscription is closed.
        """
        self.stop()
        end = on_end or self.close
        if self._client.when_flushed(lambda: self._end_linger(end)):
            limit_s = self._ack_sender.source.tuning.withdrawn_s
            loop = asyncio.get_running_loop()
            self._lingering = loop.call_later(limit_s, self._end_linger, end)
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
        self.pulls.forget()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def _on_frames(self, frames: list[Frame]) -> None:
        # The sink of the fast subscription: it must not wait and must not raise.
        ack_sender = self._ack_sender
        # A status has no reply; a message's reply is its ack subject.
        messages = [
            DeliveredMessage(frame, ack_sender) for frame in frames if is_ack_subject(frame[1])
        ]
        count = len(messages)
        if count:
            self.pulls.deliver(count, self._time())
        if count < len(frames):
            said = [self._read(frame) for frame in frames if not is_ack_subject(frame[1])]
            if count:
                self._on_messages(messages)
            for each in said:
                if each is not None:
                    self._on_status(each)
        else:
            self._on_messages(messages)

    def _read(self, frame: Frame) -> PullStatus | None:
        """Return the status of a pull, which is counted out when it ends."""
        if frame[1]:  # Anybody may publish here.
            _log.warning("%s: a message is not the server's", self._ack_sender.source.what)
            return None
        pulls, reply = self.pulls, frame[0]
        status, asked_bytes = parse_status(frame[2]), pulls.asked_bytes(reply)
        if status is None or asked_bytes is None:
            return None  # Of a pull that is over or forgotten.
        said = read_status(status, asked_bytes=asked_bytes)
        if said.end is PullOutcome.HEARTBEAT:
            pulls.hear(reply, self._time())
        elif said.end in _BREAKS:
            pulls.forget()
        else:
            pulls.end(reply, status.number(HeaderName.PENDING_MESSAGES))
        return said
