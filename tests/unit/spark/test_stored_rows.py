"""Rows that are stored are skipped when a task runs again, only if they are the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark_natsstream.rows import Row
from pyspark_natsstream.stored_rows import InputChangedError, RowCheck, StoredRows

from natsstream import PublishMessage

rows = st.lists(st.binary(max_size=3), max_size=12)


def row(data: bytes) -> Row:
    return Row(PublishMessage("s", data), data, "")


def attempt(stored: StoredRows, given_rows: list[bytes]) -> tuple[list[bytes], RowCheck]:
    """Return the rows that an attempt stores."""
    check = RowCheck(stored, "prices")
    return [each for each in given_rows if not check.is_stored(row(each))], check


@given(rows, st.data())
def test_attempts_that_end_anywhere_store_each_row_once(
    all_rows: list[bytes], data: st.DataObject
) -> None:
    stored, held = StoredRows(7), list[bytes]()
    for _ in range(data.draw(st.integers(0, 4))):
        until = data.draw(st.integers(0, len(all_rows)))
        new, check = attempt(stored, all_rows[:until])
        if until > stored.rows:
            held += new
            stored = StoredRows.of(json.loads(json.dumps(check.so_far().to_json())), 7)
    new, check = attempt(stored, all_rows)
    held += new
    check.end()
    assert held == all_rows
    assert attempt(check.so_far(), all_rows)[0] == []


@given(rows, rows)
def test_other_rows_are_refused_before_any_is_stored(
    first: list[bytes], second: list[bytes]
) -> None:
    done = attempt(StoredRows(0), first)[1].so_far()
    if second[: len(first)] == first:
        assert attempt(done, second)[0] == second[len(first) :]
        return
    with pytest.raises(InputChangedError, match=r"^job prices: a partition of batch 0 is"):
        attempt(done, second)[1].end()


def test_identities_do_not_run_into_each_other() -> None:
    done = attempt(StoredRows(0), [b"ab", b"c"])[1].so_far()
    with pytest.raises(InputChangedError):
        attempt(done, [b"a", b"bc"])


def test_next_batch_begins_anew_and_an_earlier_one_is_refused() -> None:
    done = attempt(StoredRows(4), [b"a"])[1].so_far()
    assert StoredRows.of(done.to_json(), 5) == StoredRows(5)
    assert StoredRows.of(None, 5) == StoredRows(5)
    with pytest.raises(InputChangedError, match="batch 4 is stored already"):
        StoredRows.of(done.to_json(), 3)


def test_other_number_of_partitions_is_refused() -> None:
    """Rows that are stored by another partition would be stored again."""
    done = attempt(StoredRows(0, partitions=4), [b"a"])[1].so_far()
    assert StoredRows.of(done.to_json(), 0, 4) == done
    assert StoredRows.of(done.to_json(), 1, 2) == StoredRows(1, partitions=2)
    with pytest.raises(InputChangedError, match="in 4 partitions, and has 2"):
        StoredRows.of(done.to_json(), 0, 2)


@pytest.mark.parametrize(
    ("before", "now", "told", "way_out"),
    [
        (4, 0, "with the option partitions, which is missing now", '"partitions", "4"'),
        (0, 4, "without the option partitions, which is 4 now", "leave the option partitions out"),
    ],
)
def test_number_of_partitions_that_is_not_given_each_time_is_told_so(
    before: int, now: int, told: str, way_out: str
) -> None:
    done = attempt(StoredRows(0, partitions=before), [b"a"])[1].so_far()

    with pytest.raises(InputChangedError, match=told) as caught:
        StoredRows.of(done.to_json(), 0, now)

    assert way_out in caught.value.hint


@pytest.mark.parametrize("checkpoint", [17, "x", {"offset": 5}, [1]])
def test_checkpoint_of_another_program_is_refused(checkpoint: object) -> None:
    with pytest.raises(InputChangedError, match="another job name") as caught:
        StoredRows.of(checkpoint, 0)
    assert "another job name" in caught.value.hint
