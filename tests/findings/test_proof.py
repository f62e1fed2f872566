"""The table of proofs is whole, and each test that it names is there."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.findings.proof import DEMANDED, PROOF

ROOT = Path(__file__).parents[2]
NODE_IDS = sorted({node_id for node_ids in PROOF.values() for node_id in node_ids})


@cache
def names_in(file: Path) -> set[str]:
    """Return the names of the tests that a file defines, without importing it."""
    body = ast.parse(file.read_text()).body
    functions = (node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


def test_every_demanded_finding_has_a_proof() -> None:
    assert PROOF.keys() == DEMANDED
    assert all(PROOF.values())


@pytest.mark.parametrize("node_id", NODE_IDS)
def test_named_test_exists(node_id: str) -> None:
    file, _, name = node_id.partition("::")

    assert name in names_in(ROOT / file)


def test_every_test_of_this_folder_proves_a_finding() -> None:
    files = set(Path(__file__).parent.glob("test_*.py")) - {Path(__file__)}
    here = {f"{file.relative_to(ROOT)}::{name}" for file in files for name in names_in(file)}

    assert here - set(NODE_IDS) == set()
