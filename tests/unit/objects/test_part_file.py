"""A part file's name can be one whatever the target and the version are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from natsstream.objects.part_file import part_path

NUIDS = ["KyCURiUhfikR8khwgvT7ni", "a/b", "..", "x" * 4000, "a\\b", "a:b", "\N{GRINNING FACE}"]


@pytest.mark.parametrize("nuid", NUIDS)
def test_a_part_stands_beside_its_target(nuid: str) -> None:
    target = Path("folder") / ("\N{GRINNING FACE}" * 63)
    path = part_path(target, nuid)
    assert path.parent == target.parent
    assert path.name.endswith(".part")
    assert len(path.name.encode()) < 240
    assert not set(path.name) & set('/\\:*?"<>|')


def test_each_version_has_a_part_of_its_own() -> None:
    assert len({part_path(Path("a"), nuid) for nuid in NUIDS}) == len(NUIDS)
