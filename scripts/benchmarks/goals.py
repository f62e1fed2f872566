"""The goals of the benches, and the lines of the table; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scripts.benchmarks.rounds import Figure, Spread, ratios


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A wanted ratio between two subjects.

    Attributes:
        subject: Name of the subject.
        base: Name of the subject that it is divided by.
        of: The compared field of `Figure`.
        at_least: The ratio wanted; None where there is no lower bound.
        at_most: The ratio allowed; None where there is no upper bound.
    """

    subject: str
    base: str
    of: str = "rate"
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table.

    Attributes:
        figure: The label, as benchmarks.md has it.
        median: Median of the rounds; `low` and `high` are the smallest and the largest.
        goal: The goal in words; empty where there is none.
        reached: Whether the median is.
    """

    figure: str
    median: float
    low: float
    high: float
    goal: str
    reached: bool


def row(
    label: str, spread: Spread, *, at_least: float | None = None, at_most: float | None = None
) -> Row:
    """Return the line for a spread; without a bound it is always reached."""
    bounds = [f">= {at_least:g}"] if at_least is not None else []
    bounds += [f"<= {at_most:g}"] if at_most is not None else []
    reached = (at_least is None or spread.median >= at_least) and (
        at_most is None or spread.median <= at_most
    )
    return Row(label, spread.median, spread.low, spread.high, " ".join(bounds), reached)


def rows(
    figures: Mapping[str, Sequence[Figure]], goals: Sequence[Goal], what: str = ""
) -> list[Row]:
    """Return a line for each goal."""
    lines: list[Row] = []
    for goal in goals:
        spread = ratios(figures, goal.subject, goal.base, goal.of)
        unit = "" if goal.of == "rate" else f" {goal.of.partition('_')[0]}"
        label = f"{goal.subject}{unit} / {goal.base}{what}"
        lines.append(row(label, spread, at_least=goal.at_least, at_most=goal.at_most))
    return lines
