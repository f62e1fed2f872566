"""A run on a terminal: a bar for the running step, a line for each finished one."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from scripts.flights.results import batches_text
from scripts.flights.summary import show

if TYPE_CHECKING:
    from scripts.flights.folder import Folder
    from scripts.flights.results import Result, Step, StepName

# With the numbers beside it the whole line fits into 80 columns.
BAR_COLUMNS = 18

_TITLES: dict[StepName, str] = {
    "publish": "publishing",
    "spark": "starting Spark",
    "ingest": "ingesting",
    "prove": "proving",
}


class Bars:
    """Shows a run on a terminal; without colours where NO_COLOR is set."""

    def __init__(self) -> None:
        # A descriptor of its own: standard error is led elsewhere while Java starts (`spark.py`).
        terminal = os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8")
        self._console = Console(file=terminal, highlight=False)
        self._bar: Progress | None = None

    def start(self, folder: Folder, rows: int) -> None:
        self.note(f"folder: {folder.path} ({rows:,} rows)")

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def begin(self, name: StepName, rows: int | None = None) -> None:
        self.close()
        if rows is None:
            bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
            )
        else:
            bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=BAR_COLUMNS),
                _RowsColumn(Column(no_wrap=True)),
                TimeRemainingColumn(compact=True),
                TextColumn("left"),
                console=self._console,
                transient=True,
            )
        # Begun by the first call of `advance`: what was done before is no part of the rate.
        bar.add_task(_TITLES[name], total=rows, start=rows is None, batches=None)
        bar.start()
        self._bar = bar

    def advance(self, done: int, batches: int | None = None) -> None:
        if self._bar is None:
            return
        task = self._bar.tasks[0]
        if not task.started:
            self._bar.reset(task.id, completed=done, batches=batches)
        else:
            self._bar.update(task.id, completed=done, batches=batches)

    def end(self, step: Step) -> None:
        self.close()
        self._console.print(Text.assemble(("✓ ", "green"), step.sentence()), soft_wrap=True)

    def finish(self, result: Result) -> None:
        self.close()
        show(result)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class _RowsColumn(ProgressColumn):
    """Rows done and to do, their rate, and micro-batches where there are any."""

    def render(self, task: Task) -> Text:
        told = f"{int(task.completed):,} of {int(task.total or 0):,}"
        if task.speed:
            told += f", {task.speed:,.0f}/s"
        batches: int | None = task.fields["batches"]
        if batches:
            told += f", {batches_text(batches)}"
        return Text(told)
