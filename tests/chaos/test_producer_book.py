"""The book of a producer finds each broken promise in doctored records, and none in good ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scripts.chaos_runs.ledger import Findings
from scripts.chaos_runs.producers.book import Held, ProducerBook, make_item

GOOD = [Held(10 + 2 * number, 1 + number // 5, make_item("p", number)) for number in range(10)]


def judged(
    held: list[Held],
    *,
    checkpoint: object = 10,
    count: int = 10,
    flushed: int = 8,
    has_turns: bool = False,
) -> list[str]:
    """Return the laws that records break: items 3 and 4 were told as stored, item 9 as refused."""
    findings = Findings()
    book = ProducerBook("p", findings, has_turns=has_turns)
    book.flush(flushed)
    book.tell(1, 3, "stored", 16)
    book.tell(1, 4, "stored", None)
    book.tell(1, 9, "refused")
    book.tell(1, 7, "unknown")
    book.judge(held, checkpoint, count)
    return [finding.law for finding in findings.kept]


def test_good_records_break_no_law() -> None:
    assert judged(GOOD) == []
    assert judged([], checkpoint=None, count=0, flushed=0) == ["acked", "acked"]


def test_item_that_is_stored_twice_or_missing_or_early_is_found() -> None:
    for wrong in (
        [*GOOD[:4], GOOD[3], *GOOD[4:]],
        [*GOOD[:4], *GOOD[5:]],
        [*GOOD[:4], GOOD[5], GOOD[4], *GOOD[6:]],
        [*GOOD[:4], replace(GOOD[4], data=b"other"), *GOOD[5:]],
    ):
        assert judged(wrong) == ["exactly once"]


def test_flushed_items_that_are_missing_at_the_end_are_found() -> None:
    assert judged(GOOD[:7], checkpoint=7, count=7) == ["kept"]


@pytest.mark.parametrize(("checkpoint", "count"), [(9, 10), (10, 9), (None, 10), (11, 11)])
def test_state_that_is_not_where_the_data_end_is_found(checkpoint: object, count: int) -> None:
    assert judged(GOOD, checkpoint=checkpoint, count=count) == ["checkpoint"]


def test_zombie_that_stores_behind_its_heir_is_found() -> None:
    wrong = [*GOOD[:8], replace(GOOD[8], life=1), GOOD[9]]
    assert judged(wrong) == ["fenced"]
    assert judged(wrong, has_turns=True) == []


def test_answers_that_are_not_true_are_found() -> None:
    assert judged([*GOOD[:3], replace(GOOD[3], sequence=15), *GOOD[4:]]) == ["acked"]
    refused = [*GOOD[:9], replace(GOOD[9], life=1)]
    assert judged(refused, has_turns=True) == ["refused"]
