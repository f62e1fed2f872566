"""When readers look whether their consumer is at `max_ack_pending`, and when they report it.

The server tells nothing: pulls stay open, and have their heartbeats. The consumer's info tells.
Law: pure rules, time passed in. A reader looks after a silence, at most once a minute; a limit that
stays is told once.
"""

from __future__ import annotations

from math import inf

from natsstream.api.consumer_info import ConsumerInfo
from natsstream.arguments import counted
from natsstream.consume.delivery.events import LimitExceeded

EVERY_S = 60.0
"""Seconds between two looks of waiting readers, and between two warnings."""


def is_held_up(info: ConsumerInfo) -> bool:
    """Return True if a consumer hands out nothing new until messages are acked.

    The server then leaves a pull unanswered, also one that does not wait.
    """
    return info.num_ack_pending >= (info.config.max_ack_pending or 0) > 0


class LimitWatch:
    """The limit, as the readers of one handle know it; times are seconds of one clock.

    Args:
        quiet_s: A silence after which a reader looks.

    Attributes:
        waited_s: How long calls that have ended had waited since the last message.
        may_look: False once the user may not ask for the consumer's info: each try is logged.
    """

    def __init__(self, quiet_s: float) -> None:
        self.waited_s: float = 0.0
        self.may_look: bool = True
        self._quiet_s = quiet_s
        self._looked_at = self._told_at = -inf
        # How far the consumer was when it was told; redeliveries are no news.
        self._told_seq: int = -1

    def look_at(self, since: float) -> float:
        """Return when a reader looks that has waited since a time."""
        if not self.may_look:
            return inf
        return max(since + self._quiet_s, max(self._looked_at, self._told_at) + EVERY_S)

    def begin(self, now: float) -> None:
        """Note that a waiting reader looks."""
        self._looked_at = now

    def find(self, info: ConsumerInfo, now: float) -> LimitExceeded | None:
        """Return the event to tell after a look; None where there is no news."""
        seq = info.delivered.stream_seq
        if not info.num_pending or not is_held_up(info):
            return None
        if seq == self._told_seq or now < self._told_at + EVERY_S:
            return None
        self._told_seq, self._told_at = seq, now
        return LimitExceeded(
            limit="max_ack_pending",
            reason=f"{counted(info.num_ack_pending, 'message')} without an ack, as many as "
            f"max_ack_pending allows, and {info.num_pending} more that wait until some are settled",
        )
