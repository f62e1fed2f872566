"""Every row of the tables of what a client can do has a test that proves it."""

from __future__ import annotations

import pytest

from tests.features.rows import ROWS
from tests.support.proofs import marked

PROVED = {each.arguments for each in marked("proves")}


@pytest.mark.parametrize("table", ROWS)
def test_every_row_has_a_test(table: str) -> None:
    assert len(set(ROWS[table])) == len(ROWS[table])
    assert {(table, row) for row in ROWS[table]} - PROVED == set()


def test_every_proof_is_of_a_row() -> None:
    assert PROVED - {(table, row) for table, rows in ROWS.items() for row in rows} == set()
