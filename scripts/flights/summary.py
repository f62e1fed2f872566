"""The end of a run, for people: what was done, what was proved, and where the table lies."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from scripts.flights.results import Result, Step

# Pipes and files have no width; this keeps every line of the tables whole.
_PIPE_COLUMNS = 100

_TITLES = {
    "publish": "publish into the stream",
    "spark": "start Spark",
    "ingest": "ingest into the table",
    "prove": "prove from the CSV",
}


def show(result: Result) -> None:
    """Print the result on standard output."""
    width = None if sys.stdout.isatty() else _PIPE_COLUMNS
    console = Console(highlight=False, width=width)
    console.print(_steps(result), _checks(result))
    folder = result.folder
    lines = [
        f"The folder {folder.path} holds the stream's store, the checkpoint and the table:",
        f"  {folder.table}",
        f"Open the table with {sys.executable}:",
        "  import pandas",
        f"  flights = pandas.read_parquet({str(folder.table)!r})",
    ]
    console.print("\n".join(lines), markup=False, soft_wrap=True)


def _steps(result: Result) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("step")
    for title in ("rows", "seconds", "rows/s"):
        table.add_column(title, justify="right")
    table.add_column("")
    for step in result.steps:
        has_rows = step.name != "spark"
        rows = f"{step.rows:,}" if has_rows else ""
        rate = f"{step.rate:,.0f}" if step.rows else ""
        table.add_row(_TITLES[step.name], rows, f"{step.seconds:.1f}", rate, _remark(step))
    return table


def _remark(step: Step) -> str:
    if step.name not in ("publish", "ingest"):
        return ""
    if step.first is None:
        return "nothing was new"
    return f"resumed at row {step.first:,}" if step.first > 1 else ""


def _checks(result: Result) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("proof", "CSV", "table", ""):
        table.add_column(title)
    for check in result.checks:
        told = "same" if check.has_passed else "DIFFERS"
        table.add_row(check.name, check.expected, check.found, told)
    return table
