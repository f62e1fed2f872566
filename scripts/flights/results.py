"""The results of the quickstart: of each step, and of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scripts.flights.folder import Folder
    from scripts.flights.prove import Check

StepName: TypeAlias = Literal["publish", "spark", "ingest", "prove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the work, done.

    Attributes:
        name: Which step.
        seconds: How long it took.
        first: First row of this run, counted from 1; None when there was none, or where rows do
            not count.
        rows: Rows of this run.
        batches: Micro-batches of this run.
    """

    name: StepName
    seconds: float
    first: int | None = None
    rows: int = 0
    batches: int = 0

    @property
    def rate(self) -> float:
        """Rows in a second."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    def sentence(self) -> str:
        """Return what was done."""
        took = f"in {self.seconds:.1f} s"
        match self.name:
            case "spark":
                return f"started Spark {took}"
            case "prove":
                return f"proved {self.rows:,} rows of the table from the CSV {took}"
            case "publish" | "ingest":
                pass
        verb = "published" if self.name == "publish" else "ingested"
        if self.first is None:
            return f"{verb} nothing: no row is new"
        resumed = f", resumed at row {self.first:,}" if self.first > 1 else ""
        batches = f" in {batches_text(self.batches)}" if self.batches else ""
        return f"{verb} {self.rows:,} rows{batches} {took} ({self.rate:,.0f} rows/s){resumed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The whole run.

    Attributes:
        folder: Where everything lies.
        rows: Rows of the table.
        steps: What was done, in order.
        checks: What was proved.
    """

    folder: Folder
    rows: int
    steps: Sequence[Step]
    checks: Sequence[Check]


def batches_text(count: int) -> str:
    """Return a number of micro-batches in words."""
    return f"{count:,} batch" if count == 1 else f"{count:,} batches"
