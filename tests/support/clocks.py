"""A clock that only the test moves, in the place of a loop that is asked for timers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer:
    """What `call_later` and `call_at` return."""

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Clock:
    """An event loop of which nothing but the timers is there.

    Attributes:
        now: What time it is.
        timers: Those that have not been called, cancelled ones too.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self.call_at(self.now + delay, callback)

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(when, callback)
        self.timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass, and call what is due, the earliest first."""
        stop = self.now + seconds
        while due := [each for each in self.timers if not each.is_cancelled and each.when <= stop]:
            timer = min(due, key=lambda each: each.when)
            self.timers.remove(timer)
            self.now = max(self.now, timer.when)
            timer.callback()
        self.now = stop
