"""Runs the tour notebook: each cell prints and shows what the notebook says."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

TOUR = Path(__file__).parents[2] / "docs" / "notebooks" / "spark-tour.ipynb"
# Only a hang may reach it; see test_snippets.py.
TIMEOUT_S = 600


@pytest.mark.spark
@pytest.mark.timeout(TIMEOUT_S)
def test_tour_shows_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if SparkSession.getActiveSession() is not None:
        # That of other tests, which `local_session` returns.
        monkeypatch.setattr(SparkSession, "stop", keep)
    cells = code_cells(json.loads(TOUR.read_text()))
    assert len(cells) > 5
    scope: dict[str, Any] = {}
    try:
        for number, (source, wanted) in enumerate(cells):
            assert run_cell(source, scope) == wanted, f"cell {number}: {source}"
        assert (tmp_path / "table").is_dir()  # And not where Java was started.
    finally:
        # A cell that failed leaves them open.
        for name, end in (("spark", "stop"), ("connection", "close"), ("server", "stop")):
            with contextlib.suppress(Exception):
                getattr(scope[name], end)()


def keep(_: SparkSession) -> None:
    """Leave a session open."""


def code_cells(notebook: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the program of each code cell, and the text that it shows."""
    return [
        ("".join(cell["source"]), "".join(shown(each) for each in cell["outputs"]))
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def shown(output: dict[str, Any]) -> str:
    """Return the text of an output: what was printed, or the value of the last line."""
    if "text" in output:
        return "".join(output["text"])
    data = output["data"]
    return (
        masked("".join(data["text/html"])) if "text/html" in data else "".join(data["text/plain"])
    )


def masked(html: str) -> str:
    """Return a table without its numbers and ids, which differ from run to run."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+(\.[0-9]+)?", "N", html)


def told(value: object) -> str:
    """Return what Jupyter shows for a value: its table if it has one."""
    if value is None:
        return ""
    table = getattr(value, "_repr_html_", None)
    return repr(value) if table is None else masked(table())


def run_cell(source: str, scope: dict[str, Any]) -> str:
    """Run a cell as Jupyter does; return what it prints, and the value of its last line."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), scope)  # noqa: S102 - Our notebook.
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), scope)  # noqa: S307
    return printed.getvalue() + told(value)
