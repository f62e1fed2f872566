"""The book of Spark finds each broken promise in doctored records, and its schedule is fair."""

from __future__ import annotations

import pytest

from scripts.chaos_runs.ledger import Findings
from scripts.chaos_runs.spark.book import Row, digest_of, judge_order, judge_rows
from scripts.chaos_runs.spark.schedule import KINDS, make_kills

SOURCE = {sequence: digest_of(b"%d" % sequence) for sequence in range(1, 9)}
GOOD = [Row(sequence, digest) for sequence, digest in SOURCE.items()]


def laws(rows: list[Row]) -> list[str]:
    findings = Findings()
    judge_rows("rows", rows, SOURCE, findings)
    return [finding.law for finding in findings.kept]


def test_good_rows_in_any_order_break_no_law() -> None:
    assert laws(GOOD) == []
    assert laws(GOOD[::-1]) == []


@pytest.mark.parametrize(
    ("rows", "law"),
    [
        (GOOD[:-1], "missing"),
        ([*GOOD, GOOD[3]], "repeated"),
        ([*GOOD, Row(9, digest_of(b"9"))], "foreign"),
        ([*GOOD[:-1], Row(8, digest_of(b"other"))], "differing"),
    ],
)
def test_row_that_should_not_be_or_is_not_there_is_found(rows: list[Row], law: str) -> None:
    assert laws(rows) == [law]


def test_partitions_may_mix_but_each_stands_in_its_order() -> None:
    findings = Findings()
    judge_order("copy", [(0, 1), (1, 3), (0, 2), (1, 4), (0, 5)], findings)
    assert not findings.count
    judge_order("copy", [(0, 1), (1, 3), (0, 2), (1, 4), (1, 4)], findings)
    judge_order("copy", [(0, 2), (1, 3), (0, 1)], findings)
    assert [finding.law for finding in findings.kept] == ["order", "order"]


@pytest.mark.parametrize("replicas", [1, 3])
def test_each_round_has_every_kind_of_kill_once_and_a_seed_repeats_them(replicas: int) -> None:
    rounds = [make_kills(7, number, replicas) for number in range(1, 30)]
    assert all({kill.kind for kill in kills} == {*KINDS} for kills in rounds)
    assert all(len(kills) == len(KINDS) for kills in rounds)
    assert rounds == [make_kills(7, number, replicas) for number in range(1, 30)]
    assert len({tuple(kill.kind for kill in kills) for kills in rounds}) > 1
