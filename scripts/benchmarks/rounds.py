"""Runs subjects in interleaved rounds and turns their figures into ratios.

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
    """The measurement of one run of a subject.

    Attributes:
        messages: Messages moved.
        seconds: Wall time without start-up.
        cpu_seconds: CPU time of the subject's process in that time.
        peak_bytes: Largest resident size of the process.
        p50_us: Half of the operations took at most this long; 0 where it was not measured.
        p99_us: So did 99 in 100.
        checksum: Sum over the messages that the subject read; 0 where it looks at none.
    """

    messages: int
    seconds: float
    cpu_seconds: float = 0
    peak_bytes: int = 0
    p50_us: float = 0
    p99_us: float = 0
    checksum: int = 0

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


def measure(command: Sequence[str]) -> Figure:
    """Run one subject in a process of its own, which ends with a figure in JSON."""
    return Figure(**json.loads(run(command).splitlines()[-1]))


def python(module: str, *args: str) -> list[str]:
    """Return the command that runs a module with subjects in it."""
    return [sys.executable, "-m", module, *args]


def run(command: Sequence[str]) -> str:
    """Run a program to its end and return its output."""
    done = subprocess.run(  # noqa: S603 - our own programs, and the pinned tools.
        command, capture_output=True, text=True, timeout=_SUBJECT_TIMEOUT_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
    return done.stdout


def interleave(
    subjects: Sequence[str], rounds: int, run: Callable[[str], Figure], tell: Callable[[str], None]
) -> dict[str, list[Figure]]:
    """Run every subject once a round, so that a noisy minute hits all of them."""
    figures: dict[str, list[Figure]] = {subject: [] for subject in subjects}
    for number in range(1, rounds + 1):
        for subject in subjects:
            figure = run(subject)
            figures[subject].append(figure)
            tell(f"round {number}/{rounds}  {subject:<22} {figure.rate:>12,.0f} messages/s")
    return figures


def ratios(
    figures: Mapping[str, Sequence[Figure]], subject: str, base: str, of: str = "rate"
) -> Spread:
    """Return the ratio of a subject to its base, round by round."""
    pairs = zip(figures[subject], figures[base], strict=True)
    return Spread.of([getattr(each, of) / getattr(other, of) for each, other in pairs])
