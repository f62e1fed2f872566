"""When a reader asks whether its consumer waits for acks, and what it logs of the answer.

At `max_ack_pending` the server says nothing: pulls stay open and have their heartbeats. The
consumer's info tells it, and costs a request. Law: a silence costs a waiting reader one request,
more only while the limit is reached, and none follows another within `AGAIN_S`. A limit that stays
is logged once.
"""

from __future__ import annotations

from math import inf

from natsstream.api.consumer_info import ConsumerInfo
from natsstream.arguments import counted

STILL_S = 5.0
"""Seconds without a message, spent waiting, after which a reader asks."""
AGAIN_S = 60.0
"""Seconds between two requests of a reader that waits."""


def is_held_up(info: ConsumerInfo) -> bool:
    """Return True if a consumer hands out nothing new until messages are acked.

    The server then leaves a pull unanswered, also one that does not wait.
    """
    return info.num_ack_pending >= (info.config.max_ack_pending or 0) > 0


def held_up(info: ConsumerInfo) -> str:
    """Return what a consumer that is held up holds back; empty for nothing."""
    if not info.num_pending or not is_held_up(info):
        return ""
    return (
        f"{counted(info.num_ack_pending, 'message')} without an ack, as many as max_ack_pending "
        f"allows, and {info.num_pending} more that wait until some are settled"
    )


class AckLimitWatch:
    """When one reader asks; times are seconds of one clock.

    Attributes:
        may_ask: False once the user may not ask for the consumer's info.
    """

    def __init__(self) -> None:
        self.may_ask: bool = True
        self._left_s = STILL_S
        self._not_before = -inf
        # How far the consumer was when that was logged; redeliveries change nothing.
        self._logged_seq = 0

    def restart(self) -> None:
        """Note that messages came."""
        self._left_s = STILL_S

    def wait(self, seconds: float) -> None:
        """Note that the reader has waited; the time between its calls does not count."""
        self._left_s -= seconds

    def due_in(self, now: float) -> float:
        """Return after how many seconds of waiting the reader asks; infinity for never."""
        return max(self._left_s, self._not_before - now, 0.0) if self.may_ask else inf

    def begin(self, now: float) -> None:
        """Note that the reader asks, whether it gets an answer or not."""
        self._left_s, self._not_before = inf, now + AGAIN_S

    def learn(self, info: ConsumerInfo) -> str:
        """Take an answer; return what has not been logged yet, or an empty text."""
        if is_held_up(info):
            self._left_s = 0.0
        reason, seq = held_up(info), info.delivered.stream_seq
        if not reason or seq == self._logged_seq:
            return ""
        self._logged_seq = seq
        return reason
