"""Runs subjects in interleaved rounds and turns their figures into ratios; pure but for `measure`.

Law: a figure is a ratio to a subject of the same round, given as median, min and max of all rounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

_SUBJECT_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Figure:
    """What one run of a subject took.

    Attributes:
        messages: Messages moved.
        seconds: Wall time without start-up.
        cpu_seconds: CPU time of the subject's process in that time.
        peak_bytes: Largest resident size of the process.
    """

    messages: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, smallest and largest of a figure over the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of some values."""
        return cls(median(values), min(values), max(values))


def measure(module: str, subject: str, *args: str) -> Figure:
    """Run one subject in a process of its own."""
    command = [sys.executable, "-m", module, subject, *args]
    done = subprocess.run(  # noqa: S603 - our own module.
        command, capture_output=True, text=True, timeout=_SUBJECT_TIMEOUT_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{subject} failed: {done.stderr[-2000:]}")
    return Figure(**json.loads(done.stdout.splitlines()[-1]))


def interleave(
    subjects: Sequence[str], rounds: int, run: Callable[[str], Figure], tell: Callable[[str], None]
) -> dict[str, list[Figure]]:
    """Run every subject once a round, so that a noisy minute meets all of them."""
    figures: dict[str, list[Figure]] = {subject: [] for subject in subjects}
    for number in range(1, rounds + 1):
        for subject in subjects:
            figure = run(subject)
            figures[subject].append(figure)
            tell(f"round {number}/{rounds}  {subject:<18} {figure.rate:>12,.0f} messages/s")
    return figures


def ratios(figures: Mapping[str, Sequence[Figure]], subject: str, base: str) -> Spread:
    """Return a subject's rate divided by the base's of the same round."""
    pairs = zip(figures[subject], figures[base], strict=True)
    return Spread.of([each.rate / other.rate for each, other in pairs])
