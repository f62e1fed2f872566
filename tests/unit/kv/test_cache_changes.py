"""What readers of a mirror's changes are told when they are slow."""

from __future__ import annotations

import gc

from natsstream.kv.cache.changes import ChangeReader, Changes
from natsstream.kv.entry import Entry, Operation


def entry(key: str, revision: int, operation: Operation = "PUT") -> Entry:
    """Make a revision."""
    return Entry("b", key, b"", revision, 0, operation)


def taken(reader: ChangeReader) -> list[tuple[str, int, Operation]]:
    """Take all that waits."""
    found: list[tuple[str, int, Operation]] = []
    while (each := reader.take()) is not None:
        found.append((each.key, each.revision, each.operation))
    return found


def test_the_newest_entry_of_a_key_stands_for_those_before() -> None:
    reader = ChangeReader()
    reader.tell(entry("a", 1), had_value=False)
    reader.tell(entry("b", 2), had_value=False)
    reader.tell(entry("a", 3), had_value=True)
    assert taken(reader) == [("b", 2, "PUT"), ("a", 3, "PUT")]
    assert taken(reader) == []


def test_a_key_that_came_and_went_is_not_told() -> None:
    reader = ChangeReader()
    for number in range(1_000):
        reader.tell(entry(f"k{number}", 2 * number), had_value=False)
        reader.tell(entry(f"k{number}", 2 * number + 1, "DEL"), had_value=True)
        assert len(reader) == 0


def test_a_key_that_the_reader_knew_is_told_as_gone_once() -> None:
    reader = ChangeReader()
    reader.tell(entry("a", 1), had_value=True)
    reader.tell(entry("a", 2, "PURGE"), had_value=True)
    reader.tell(entry("a", 3, "PURGE"), had_value=False)
    assert taken(reader) == [("a", 3, "PURGE")]
    reader.tell(entry("a", 4, "PURGE"), had_value=False)
    assert taken(reader) == []


def test_a_reader_that_nobody_holds_is_forgotten() -> None:
    changes = Changes()
    kept, _ = changes.add(), changes.add()
    del _
    gc.collect()
    changes.tell(entry("a", 1), had_value=False)
    assert len(kept) == 1
    assert len(changes) == 1
