"""The pulls of one subscription that the server is believed to hold; pure rules, time passed in.

Law: a belief ends by itself. A pull counts until its end is heard, its heartbeats have stopped, or
its time is over, whichever is first; so no reader waits for a pull that the server does not hold,
whatever was lost on the way. Messages do not name their pull, statuses and heartbeats do: messages
are counted against all pulls together, and are a sign of life of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

SILENT_HEARTBEATS = 2.5
"""Heartbeats without a word after which a pull is taken for lost: two, and a half for the way."""
# A pull whose end is not heard for so long is not waited for alone while there is time to ask anew.
_OVERDUE_S = 0.1
# Far more than are open at once: older ones were filled, which the server does not tell.
_KEPT_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PullTimes:
    """How long a pull waits at the server, in seconds.

    Attributes:
        expires_s: The server ends it after this time.
        heartbeat_s: Idle heartbeat; 0 for none.
        grace_s: How long its last status may be in flight.
    """

    expires_s: float
    heartbeat_s: float = 0.0
    grace_s: float = 0.0


class _Pull:
    __slots__ = (
        "count",
        "expires_at",
        "heard_at",
        "is_given_up",
        "max_bytes",
        "over_at",
        "quiet_s",
    )

    def __init__(self, count: int, max_bytes: int, times: PullTimes, now: float) -> None:
        self.count: int = count
        self.max_bytes: int = max_bytes
        self.heard_at: float = now
        self.expires_at: float = now + times.expires_s
        self.over_at: float = self.expires_at + times.grace_s
        self.quiet_s: float = SILENT_HEARTBEATS * times.heartbeat_s
        self.is_given_up: bool = False

    def doubt_at(self, delivered_at: float) -> float:
        """Return from when on it does not count any more if nothing is heard until then."""
        if self.quiet_s:
            quiet_at = max(self.heard_at, delivered_at) + self.quiet_s
            if quiet_at < self.expires_at:
                return quiet_at
        return self.over_at


class OpenPulls:
    """The open pulls of one subscription, by the subject that the server answers each to.

    Attributes:
        believed: The result of `left` at the last call, less the messages since; for callers that
            check in time, by `falls_silent`, and not for each message.
        delivered_at: When messages last came.
    """

    def __init__(self) -> None:
        self.delivered_at: float = -inf
        self.believed: int = 0
        self._pulls: dict[bytes, _Pull] = {}
        # Nothing has to be given up before; later than it could be never, earlier at times.
        self._doubt_at = inf

    # Beliefs.

    def left(self, now: float) -> int:
        """Return how many messages the open pulls may still bring."""
        if now >= self._doubt_at:
            self._give_up(now)
        return self.believed

    @property
    def bytes_believed(self) -> int:
        """Return the bytes that the open pulls ask for; exact where each has a limit in bytes."""
        if not self.believed:
            return 0
        return sum([pull.max_bytes for pull in self._pulls.values() if not pull.is_given_up])

    def falls_silent(self, now: float) -> bool:
        """Give up what is too old to be believed; True when that was the last, of some."""
        return self.believed > 0 and not self.left(now)

    def is_due(self, now: float) -> bool:
        """Return whether to pull: nothing is open, or its end should have been heard by now."""
        if now >= self.expires_at + _OVERDUE_S:
            self.believed = 0
            self._bound()
        return not self.left(now)

    def next_look(self, now: float, deadline: float) -> float:
        """Return when to look again if nothing is heard until then; -inf when none is open.

        Args:
            now: The time.
            deadline: Until when the reader would pull again.
        """
        if not self.left(now):
            return -inf
        overdue_at = self.expires_at + _OVERDUE_S
        return min(self._doubt_at, overdue_at) if now < overdue_at < deadline else self._doubt_at

    @property
    def has_doubts(self) -> bool:
        """True when the server may still hold a pull that does not count any more."""
        return any(pull.is_given_up for pull in self._pulls.values())

    @property
    def expires_at(self) -> float:
        """When the server has ended all open pulls; -inf when none is open."""
        open_pulls = [pull for pull in self._pulls.values() if not pull.is_given_up]
        return max([pull.expires_at for pull in open_pulls], default=-inf)

    def asked_bytes(self, reply: bytes) -> int | None:
        """Return what a pull has asked for in bytes; None when nothing is to be heard of it."""
        pull = self._pulls.get(reply)
        return pull.max_bytes if pull is not None else None

    # Events.

    def add(
        self, reply: bytes, count: int, now: float, *, times: PullTimes, max_bytes: int = 0
    ) -> None:
        """Count a pull that was sent."""
        pulls = self._pulls
        pulls[reply] = pull = _Pull(count, max_bytes, times, now)
        self.believed += count
        self._doubt_at = min(self._doubt_at, pull.doubt_at(self.delivered_at))
        if len(pulls) > _KEPT_MAX:
            del pulls[next(iter(pulls))]

    def deliver(self, count: int, now: float) -> None:
        """Count messages that came."""
        self.delivered_at = now
        if self.believed > count:
            self.believed -= count
        else:  # Below 0 they are of a pull that was given up.
            self.forget()

    def hear(self, reply: bytes, now: float) -> None:
        """Count a heartbeat of a pull."""
        pull = self._pulls.get(reply)
        if pull is not None:
            pull.heard_at = now

    def end(self, reply: bytes, unused: int | None) -> None:
        """Count the end of a pull, which has so many messages unused; None for all."""
        pull = self._pulls.pop(reply, None)
        if pull is None or pull.is_given_up:
            return
        self.believed -= pull.count if unused is None else min(unused, pull.count)
        self._bound()

    def forget(self) -> None:
        """Expect nothing of any pull any more."""
        self.believed = 0
        self._doubt_at = inf
        self._pulls.clear()

    def _give_up(self, now: float) -> None:
        """Count without the pulls that are too old; their last word is listened to still."""
        doubt_at = inf
        for pull in self._pulls.values():
            if pull.is_given_up:
                continue
            at = pull.doubt_at(self.delivered_at)
            if at <= now:
                pull.is_given_up = True
            else:
                doubt_at = min(doubt_at, at)
        self._doubt_at = doubt_at
        self._bound()

    def _bound(self) -> None:
        """Count no more than the open pulls have asked for."""
        asked = sum([pull.count for pull in self._pulls.values() if not pull.is_given_up])
        self.believed = min(max(self.believed, 0), asked)
        if not self.believed:
            for pull in self._pulls.values():
                pull.is_given_up = True
            self._doubt_at = inf
