"""`scripts/test --fast` looks into every room."""

from __future__ import annotations

from tests.support.proofs import TESTS, marked

# What needs Docker, measures, or tests the servers themselves.
LEFT_OUT = {"benchmarks", "containers", "testing"}


def test_every_room_has_a_smoke_test() -> None:
    here = TESTS / "integration"
    rooms = {file.parent.relative_to(here) for file in here.glob("**/*/test_*.py")}
    smoked = {each.file.relative_to("integration").parent for each in marked("smoke", here)}

    assert {str(room) for room in rooms - smoked} == LEFT_OUT
