"""Which tests carry a marker, read from their files: the same whatever a run has chosen."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]


class Marked(NamedTuple):
    """One marker on one test.

    Attributes:
        file: The test's file, from `tests` on.
        test: The name of the test.
        arguments: The marker's arguments.
    """

    file: Path
    test: str
    arguments: tuple[object, ...]


def marked(marker: str, under: Path = TESTS) -> list[Marked]:
    """Return every use of a marker on a test function."""
    found: list[Marked] = []
    for file in sorted(under.rglob("test_*.py")):
        text = file.read_text()
        if f"@pytest.mark.{marker}" not in text:
            continue
        for function in functions_of(ast.parse(text)):
            for decorator in function.decorator_list:
                call = decorator if isinstance(decorator, ast.Call) else None
                if ast.unparse(call.func if call else decorator) == f"pytest.mark.{marker}":
                    values = tuple(ast.literal_eval(each) for each in (call.args if call else ()))
                    found.append(Marked(file.relative_to(TESTS), function.name, values))
    return found


def functions_of(module: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the test functions that a module defines."""
    return [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    ]
