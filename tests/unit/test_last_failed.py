"""What scripts/test reads of pytest's own notes, to ask failed tests once more."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.last_failed import read_last_failed


def test_failed_tests_are_read_in_order(tmp_path: Path) -> None:
    notes = tmp_path / "lastfailed"
    notes.write_text(json.dumps({"tests/b.py::test_two[x]": True, "tests/a.py::test_one": True}))

    assert read_last_failed(notes) == ["tests/a.py::test_one", "tests/b.py::test_two[x]"]


def test_no_notes_are_no_failed_tests(tmp_path: Path) -> None:
    assert read_last_failed(tmp_path / "lastfailed") == []
