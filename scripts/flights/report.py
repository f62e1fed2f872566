"""How a run is shown: a bar, lines, or JSON for programs.

Law: what is under way goes to standard error, results go to standard output; JSON goes to standard
output as a whole, one object a line.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from scripts.flights.results import batches_text

if TYPE_CHECKING:
    from scripts.flights.folder import Folder
    from scripts.flights.results import Result, Step, StepName

ReportKind: TypeAlias = Literal["auto", "bar", "plain", "jsonl"]

LINE_INTERVAL_S = 5.0
"""Time between two lines about a step that is under way."""

EVENT_INTERVAL_S = 0.05


class Report(Protocol):
    """Shows a run."""

    def start(self, folder: Folder, rows: int) -> None:
        """Tell where everything lies, and how many rows there will be."""
        ...

    def note(self, text: str) -> None:
        """Tell something besides the steps."""
        ...

    def begin(self, name: StepName, rows: int | None = None) -> None:
        """Tell that a step begins; `rows` is how many it will have done at its end."""
        ...

    def advance(self, done: int, batches: int | None = None) -> None:
        """Tell how many rows are done; the first call of a step tells what was done before."""
        ...

    def end(self, step: Step) -> None:
        """Tell that the step is done."""
        ...

    def finish(self, result: Result) -> None:
        """Tell the result."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was found; for an end in the middle of a step."""
        ...


def open_report(kind: ReportKind) -> Report:
    """Return the way of showing; "auto" is a bar where standard error is a terminal."""
    if kind == "jsonl":
        return Events()
    if kind == "bar" or (kind == "auto" and sys.stderr.isatty()):
        from scripts.flights.bars import Bars  # noqa: PLC0415 - rich takes 0.1 s to import.

        return Bars()
    return Lines()


class Events:
    """One JSON object a line, for programs: the field `event` says what it is."""

    def __init__(self) -> None:
        self._pace = _Pace(EVENT_INTERVAL_S)
        self._name: StepName = "publish"
        self._rows: int | None = None

    def start(self, folder: Folder, rows: int) -> None:
        _event("start", dir=str(folder.path), table=str(folder.table), rows=rows)

    def note(self, text: str) -> None:
        _event("note", text=text)

    def begin(self, name: StepName, rows: int | None = None) -> None:
        self._name, self._rows = name, rows
        self._pace.reset()
        _event("begin", step=name, rows=rows)

    def advance(self, done: int, batches: int | None = None) -> None:
        if self._pace.is_due():
            _event("progress", step=self._name, done=done, rows=self._rows, batches=batches)

    def end(self, step: Step) -> None:
        _event("end", **_step_fields(step))

    def finish(self, result: Result) -> None:
        checks = [
            {"name": each.name, "expected": each.expected, "found": each.found}
            for each in result.checks
        ]
        steps = [_step_fields(step) for step in result.steps]
        _event("result", rows=result.rows, steps=steps, checks=checks)

    def close(self) -> None:
        pass


class Lines:
    """A few plain lines, for logs."""

    def __init__(self) -> None:
        self._pace = _Pace(LINE_INTERVAL_S)
        self._name: StepName = "publish"
        self._rows: int | None = None

    def start(self, folder: Folder, rows: int) -> None:
        self.note(f"folder: {folder.path} ({rows:,} rows)")

    def note(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def begin(self, name: StepName, rows: int | None = None) -> None:
        self._name, self._rows = name, rows
        self._pace.reset()
        # A step that is quicker than the interval tells its end only.
        self._pace.is_due()

    def advance(self, done: int, batches: int | None = None) -> None:
        # The end has a line of its own.
        if done != self._rows and self._pace.is_due():
            total = "" if self._rows is None else f" of {self._rows:,}"
            told = f", {batches_text(batches)}" if batches else ""
            self.note(f"{self._name}: {done:,}{total} rows{told}")

    def end(self, step: Step) -> None:
        self.note(step.sentence())

    def finish(self, result: Result) -> None:
        from scripts.flights.summary import show  # noqa: PLC0415 - rich takes 0.1 s to import.

        show(result)

    def close(self) -> None:
        pass


class _Pace:
    """Lets something pass once in an interval."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._next_s = 0.0

    def reset(self) -> None:
        self._next_s = 0.0

    def is_due(self) -> bool:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + self._interval_s
        return True


def _step_fields(step: Step) -> dict[str, object]:
    return {
        "step": step.name,
        "first": step.first,
        "rows": step.rows,
        "batches": step.batches,
        "seconds": round(step.seconds, 3),
    }


def _event(event: str, **fields: object) -> None:
    sys.stdout.write(f"{json.dumps({'event': event, **fields})}\n")
    sys.stdout.flush()
