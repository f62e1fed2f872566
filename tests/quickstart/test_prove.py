"""The proof on small tables that look like Spark's, each broken in one place."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import ZipFile

import pyarrow as pa
import pytest
from pyarrow import parquet

from scripts.flights.dataset import open_flights
from scripts.flights.prove import ProofError, prove

if TYPE_CHECKING:
    from pathlib import Path

Row: TypeAlias = dict[str, Any]

ROWS = 900
TEXTS = ("carrier", "tailnum", "origin", "dest")
# Row 842 has values that are not known.
VICTIM = 842


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of more rows than the table has: the proof looks at the first ones only."""
    with ZipFile(open_flights().archive) as opened:
        lines = opened.read("flights.csv").splitlines(keepends=True)[: ROWS + 101]
    path = tmp_path_factory.mktemp("data") / "flights.csv.zip"
    with ZipFile(path, "w") as written:
        written.writestr("flights.csv", b"".join(lines))
    return path


@pytest.fixture
def rows(archive: Path) -> list[Row]:
    """The rows of the table as they should be."""
    with ZipFile(archive) as opened:
        lines = opened.read("flights.csv").decode().splitlines()
    found: list[Row] = []
    for number, texts in enumerate(csv.DictReader(lines[: ROWS + 1]), 1):
        row: Row = {name: _typed(name, text) for name, text in texts.items()}
        found.append({"subject": f"flights.{row['origin']}.{row['carrier']}", **row})
        found[-1]["sequence"] = number
    return found


def _typed(name: str, text: str) -> object:
    if text == "NA":
        return None
    if name == "time_hour":
        return datetime.fromisoformat(text)
    return text if name in TEXTS else int(text)


def write_table(rows: list[Row], folder: Path) -> Path:
    """Write rows as Spark does: a folder for each origin, a log of the files."""
    table = folder / "flights.parquet"
    by_origin: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_origin[row["origin"]].append(row)
    entries: list[str] = []
    for origin, some in by_origin.items():
        file = table / f"origin={origin}" / f"part-00000-{origin}.c000.snappy.parquet"
        file.parent.mkdir(parents=True)
        parquet.write_table(_arrow(some), str(file))
        entries.append(json.dumps({"path": file.as_uri(), "action": "add"}))
    (table / "_spark_metadata").mkdir(parents=True)
    (table / "_spark_metadata" / "0").write_text("\n".join(["v1", *entries]))
    return table


def _arrow(rows: list[Row]) -> pa.Table:
    kinds: dict[str, pa.DataType] = defaultdict(pa.int32)
    kinds |= {"sequence": pa.int64(), "time_hour": pa.timestamp("us", "UTC")}
    kinds |= {name: pa.string() for name in ("subject", *TEXTS)}
    schema = pa.schema([pa.field(name, kinds[name]) for name in rows[0] if name != "origin"])
    columns = [pa.array([row[name] for row in rows], kinds[name]) for name in schema.names]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(columns, schema=schema)])


def failures(table: Path, archive: Path) -> dict[str, int | None]:
    """Name and sequence of the checks that fail."""
    with pytest.raises(ProofError) as caught:
        prove(table, archive, rows=ROWS)
    for check in caught.value.failed:
        assert check.name in str(caught.value)
        if check.sequence is not None:
            assert f"{check.sequence}" in check.found
    return {check.name: check.sequence for check in caught.value.failed}


def test_proof_passes_when_the_table_is_the_csv(
    rows: list[Row], archive: Path, tmp_path: Path
) -> None:
    checks = prove(write_table(rows, tmp_path), archive, rows=ROWS)

    assert [check.name for check in checks] == [
        "files",
        "rows",
        "sequences",
        "sum of distances",
        "subjects",
        "row digests",
    ]
    assert all(check.has_passed for check in checks)


def test_order_of_rows_does_not_matter(rows: list[Row], archive: Path, tmp_path: Path) -> None:
    assert prove(write_table(rows[::-1], tmp_path), archive, rows=ROWS)


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("dep_time", 0),
        ("tailnum", None),
        ("tailnum", ""),
        ("dest", "fll"),
        ("minute", 1),
        ("air_time", 1),
    ],
)
def test_changed_value_is_found(
    rows: list[Row], archive: Path, tmp_path: Path, column: str, value: object
) -> None:
    assert rows[VICTIM - 1][column] != value
    rows[VICTIM - 1][column] = value

    assert failures(write_table(rows, tmp_path), archive) == {"row digests": VICTIM}


def test_changed_distance_is_found_in_the_sum_too(
    rows: list[Row], archive: Path, tmp_path: Path
) -> None:
    rows[VICTIM - 1]["distance"] += 1

    found = failures(write_table(rows, tmp_path), archive)

    assert found == {"sum of distances": None, "row digests": VICTIM}


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(microseconds=1)])
def test_changed_time_is_found(
    rows: list[Row], archive: Path, tmp_path: Path, step: timedelta
) -> None:
    rows[VICTIM - 1]["time_hour"] += step

    assert failures(write_table(rows, tmp_path), archive) == {"row digests": VICTIM}


def test_changed_subject_is_found(rows: list[Row], archive: Path, tmp_path: Path) -> None:
    rows[VICTIM - 1]["subject"] = "flights.JFK.XX"

    assert failures(write_table(rows, tmp_path), archive) == {"subjects": VICTIM}


def test_row_in_the_wrong_partition_is_found(
    rows: list[Row], archive: Path, tmp_path: Path
) -> None:
    assert rows[VICTIM - 1]["origin"] != "EWR"
    rows[VICTIM - 1]["origin"] = "EWR"

    assert failures(write_table(rows, tmp_path), archive) == {"row digests": VICTIM}


@pytest.mark.parametrize("victim", [1, VICTIM, ROWS])
def test_dropped_row_is_found(rows: list[Row], archive: Path, tmp_path: Path, victim: int) -> None:
    del rows[victim - 1]

    found = failures(write_table(rows, tmp_path), archive)

    assert found.keys() >= {"rows", "sequences", "sum of distances", "row digests"}
    assert found["sequences"] == victim


@pytest.mark.parametrize("victim", [1, VICTIM, ROWS])
def test_doubled_row_is_found(rows: list[Row], archive: Path, tmp_path: Path, victim: int) -> None:
    rows.append(rows[victim - 1])

    found = failures(write_table(rows, tmp_path), archive)

    assert found.keys() >= {"rows", "sequences", "sum of distances", "row digests"}
    assert found["sequences"] == victim


def test_row_doubled_in_place_of_another_is_found(
    rows: list[Row], archive: Path, tmp_path: Path
) -> None:
    # The count is right, and so is the sum when the distances are the same.
    rows[VICTIM - 1] = rows[0]

    assert failures(write_table(rows, tmp_path), archive)["sequences"] == 1


def test_two_rows_with_swapped_sequences_are_found(
    rows: list[Row], archive: Path, tmp_path: Path
) -> None:
    rows[6]["sequence"], rows[8]["sequence"] = 9, 7

    found = failures(write_table(rows, tmp_path), archive)

    assert found["row digests"] == 7
    assert "sequences" not in found


@pytest.mark.parametrize("sequence", [0, -1, ROWS + 1])
def test_sequence_that_does_not_exist_is_found(
    rows: list[Row], archive: Path, tmp_path: Path, sequence: int
) -> None:
    rows[-1]["sequence"] = sequence

    assert failures(write_table(rows, tmp_path), archive)["sequences"] == ROWS


def test_row_without_a_sequence_is_found(rows: list[Row], archive: Path, tmp_path: Path) -> None:
    rows[-1]["sequence"] = None

    assert failures(write_table(rows, tmp_path), archive) == {"table": None}


def test_file_that_spark_did_not_commit_is_found(
    rows: list[Row], archive: Path, tmp_path: Path
) -> None:
    table = write_table(rows, tmp_path)
    file = next(table.glob("*/*.parquet"))
    file.with_name("part-00001-left-behind.parquet").write_bytes(file.read_bytes())

    assert failures(table, archive).keys() >= {"files", "rows", "sequences"}


def test_missing_column_is_found(rows: list[Row], archive: Path, tmp_path: Path) -> None:
    for row in rows:
        del row["hour"]

    assert failures(write_table(rows, tmp_path), archive) == {"table": None}


def test_broken_file_is_found(rows: list[Row], archive: Path, tmp_path: Path) -> None:
    table = write_table(rows, tmp_path)
    next(table.glob("*/*.parquet")).write_bytes(b"PAR1")

    assert failures(table, archive) == {"table": None}


def test_missing_table_is_found(archive: Path, tmp_path: Path) -> None:
    assert failures(tmp_path / "flights.parquet", archive) == {"table": None}
