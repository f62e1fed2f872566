"""Delays before a failed message is redelivered; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from natsstream.arguments import described
from natsstream.constructors import answers_arguments
from natsstream.errors import ConfigError
from natsstream.units import NS_PER_SECOND, duration_ns

_DELAYS_MAX = 1_000


@answers_arguments
@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays after failures.

    Attributes:
        delays_s: Seconds after the first, second, ... delivery; the last one repeats.

    Raises:
        ConfigError: It is no list of durations, or an empty one.
    """

    delays_s: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "delays_s", _seconds(self.delays_s))

    def delay_s(self, delivered: int) -> float:
        """Return the seconds to wait after a message failed in its n-th delivery, from 1."""
        return self.delays_s[min(max(delivered, 1), len(self.delays_s)) - 1]


def make_backoff(delays: Sequence[float | timedelta] | Backoff | None) -> Backoff | None:
    """Return the backoff that a caller gave; None when there is none.

    Raises:
        ConfigError: It is no list of durations, or an empty one.
    """
    if delays is None or isinstance(delays, Backoff):
        return delays
    made = Backoff(_seconds(delays))
    if len(made.delays_s) > _DELAYS_MAX:
        raise ConfigError(
            f"backoff has {len(made.delays_s)} delays, at most {_DELAYS_MAX} are taken"
        )
    return made


def _seconds(delays: Sequence[float | timedelta]) -> tuple[float, ...]:
    if not isinstance(delays, Iterable) or isinstance(delays, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types.
        raise ConfigError(
            f"backoff is {described(delays)}", hint="give seconds in a list: backoff=[1, 5, 30]"
        )
    seconds = tuple(duration_ns(delay) / NS_PER_SECOND for delay in delays)
    if not seconds:
        raise ConfigError(
            "backoff is empty", hint="leave it out for the consumer's own, or give [0]"
        )
    return seconds


DEFAULT_BACKOFF = Backoff((1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0))
"""Where neither the caller nor the consumer has one: twice as long each time, at most a minute."""


def backoff_from_ns(delays_ns: Sequence[int]) -> Backoff:
    """Return the backoff of a consumer's configuration, or the default where it has none."""
    if not delays_ns:
        return DEFAULT_BACKOFF
    return Backoff(tuple(delay / NS_PER_SECOND for delay in delays_ns))
