"""The tables of what a client can do are whole, and each test that they name is there."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.features.proof import NOT_YET, PROOF, ROWS

ROOT = Path(__file__).parents[2]
NODE_IDS = sorted({each for proof in PROOF.values() for ids in proof.values() for each in ids})


@cache
def names_in(file: Path) -> set[str]:
    """Return the names of the tests that a file defines, without importing it."""
    body = ast.parse(file.read_text()).body
    functions = (node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


@pytest.mark.parametrize("table", ROWS)
def test_every_proof_is_of_a_row_of_its_table(table: str) -> None:
    assert PROOF[table].keys() <= set(ROWS[table])
    assert len(set(ROWS[table])) == len(ROWS[table])
    assert all(PROOF[table].values())


@pytest.mark.parametrize("table", ROWS)
def test_every_row_has_a_test_or_is_known_to_have_none(table: str) -> None:
    assert set(ROWS[table]) - PROOF[table].keys() == NOT_YET[table]


@pytest.mark.parametrize("node_id", NODE_IDS)
def test_named_test_exists(node_id: str) -> None:
    file, _, name = node_id.partition("::")

    assert name in names_in(ROOT / file)
