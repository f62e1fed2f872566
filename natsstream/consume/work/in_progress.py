"""The in-progress timer: extends the leases of messages that are being handled.

Law: while a handler runs and the server is there, its message is not redelivered. A lease that may
have expired is counted and reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from time import monotonic

from natsstream.consume.delivery.ack_kinds import IN_PROGRESS
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.delivery.lease_look import LOOK_EVERY_S
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.consume.work.report import WorkReport
from natsstream.errors import NatsStreamError

# A third of the lease: one reminder may be lost.
_SHARE = 3


class InProgressTimer:
    """The messages whose handlers run, and when the server last heard of each.

    Args:
        ack_sender: Sends the reminders.
        report: Where lost leases are counted.
        is_kept: Whether to remind the server at all.
    """

    def __init__(self, ack_sender: AckSender, report: WorkReport, *, is_kept: bool) -> None:
        self._ack_sender = ack_sender
        self._client = ack_sender.source.api.client
        self._lease_s = ack_sender.source.lease_s
        self._report = report
        self._is_kept = is_kept
        self._heard: dict[DeliveredMessage, float] = {}
        # Of those that wait for a free task, as far as a reminder has found them there.
        self._heard_waiting: dict[DeliveredMessage, float] = {}
        # The same of both before the last reminder.
        self._heard_before: dict[DeliveredMessage, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        # When the last reminder came too late, and by how much: the event loop ran nothing else.
        self._late_at, self._late_s = 0.0, 0.0
        self._waiting: Callable[[], Sequence[DeliveredMessage]] = tuple
        self._is_closed = False

    def open(self, waiting: Callable[[], Sequence[DeliveredMessage]]) -> None:
        """Keep up also the leases of messages that wait for a free task.

        They would be delivered again, to this worker or another one, and would use up deliveries,
        whenever handlers take longer than `ack_wait`.
        """
        self._waiting = waiting
        self._arm()

    def renew(self, source: ConsumerSource) -> None:
        """Take a changed lease over, and remind the server at once."""
        self._lease_s = source.lease_s
        known_at = self._ack_sender.lease_look.known_at
        for heard in (self._heard, self._heard_waiting):
            for message, at in heard.items():
                # The lease may have been this short before the last reminder.
                if at > known_at and at - self._heard_before.get(message, at) > self._lease_s:
                    heard[message] = -inf
        if self._timer is not None:
            self._timer.cancel()
            self._due = monotonic()
            self._remind()

    def begin(self, message: DeliveredMessage) -> None:
        """Keep up the lease of a message that a handler begins."""
        now = monotonic()
        waiting = self._heard_waiting
        # Where the server was away while it waited, its lease may be over before it begins.
        self._heard[message] = waiting.pop(message, now) if waiting else now
        self._ack_sender.lease_look.begin()  # Short handlers may fall between all reminders.

    def end(self, message: DeliveredMessage) -> None:
        """Keep it up no more."""
        self._heard.pop(message, None)

    def has(self, message: DeliveredMessage | None) -> bool:
        """Return True while a handler has the message."""
        return message in self._heard

    def is_lost(self, message: DeliveredMessage) -> bool:
        """Tell, and count, whether the server may have given a message to somebody else."""
        heard = self._heard.get(message)
        if heard is None or monotonic() - heard <= self._lease_s:
            return False
        self._report.lost_leases += 1
        return True

    def blocked_s(self, message: DeliveredMessage) -> float:
        """Return how many seconds the event loop was blocked, if that may have lost the lease."""
        heard = self._heard.get(message)
        if heard is None or heard == -inf or not self._is_kept:
            return 0.0
        # A handler that has just returned is settled before the reminder that it delayed.
        late_s = monotonic() - self._due
        if self._is_late(late_s):
            return late_s
        return self._late_s if self._late_at > heard else 0.0

    def _is_late(self, seconds: float) -> bool:
        # One reminder too many: less does not lose a lease that was kept up.
        return seconds > self._lease_s / _SHARE

    def close(self) -> None:
        """End all of it."""
        self._is_closed = True
        self._heard.clear()
        self._heard_waiting.clear()
        self._heard_before.clear()
        self._ack_sender.lease_look.end()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = min(self._lease_s / _SHARE, LOOK_EVERY_S)
        self._timer = loop.call_later(pause_s, self._remind)
        self._due = monotonic() + pause_s

    def _remind(self) -> None:
        self._timer = None
        if self._is_closed or self._client.is_closed:
            return
        now, before = monotonic(), self._heard_waiting
        if self._is_late(now - self._due):
            self._late_at, self._late_s = now, now - self._due
        self._heard_before = self._heard | before
        self._heard_waiting = {each: before.get(each, now) for each in self._waiting()}
        if self._is_kept and self._client.is_connected:
            with suppress(NatsStreamError):
                self._keep_up(self._heard, now)
                self._keep_up(self._heard_waiting, now)
        if self._heard or self._heard_waiting:
            self._ack_sender.lease_look.begin()
        self._arm()

    def _keep_up(self, heard: dict[DeliveredMessage, float], now: float) -> None:
        for message, heard_at in heard.items():
            # One whose lease is over may be another's by now, but not for certain. One that its
            # handler has settled has none any more.
            if not message.is_settled:
                self._ack_sender.send(message.reply, IN_PROGRESS)
            if now - heard_at <= self._lease_s:
                heard[message] = now
