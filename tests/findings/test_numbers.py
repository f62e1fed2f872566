"""Every finding of nats-py has a test that carries its number."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.proofs import TESTS, functions_of, marked

FINDINGS = set(range(1, 35))
"""Faults of nats-py 2.16 that were shown on a real server; the tests make the same situation."""


def test_every_finding_has_a_test() -> None:
    assert {number for each in marked("finding") for number in each.arguments} == FINDINGS


def test_every_test_of_this_folder_proves_a_finding() -> None:
    proving = {(each.file, each.test) for each in marked("finding")}
    here = {
        (file.relative_to(TESTS), function.name)
        for file in Path(__file__).parent.glob("test_*.py")
        if file != Path(__file__)
        for function in functions_of(ast.parse(file.read_text()))
    }

    assert here - proving == set()
