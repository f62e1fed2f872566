from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from natsstream.errors import IntegrityError, UsageError
from scripts.flights.folder import Folder
from scripts.flights.table import committed_names, committed_rows, remove_uncommitted


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder whose table has three committed files of two rows each."""
    # A name that a URL must quote.
    made = Folder(tmp_path / "quick start")
    first = [add_file(made, f"part-0000{number}-a.parquet") for number in (0, 1)]
    write_log(made, "0", first)
    write_log(made, "1", [add_file(made, "part-00000-b.parquet")])
    for number in "01":
        commit = made.checkpoint / "commits" / number
        commit.parent.mkdir(parents=True, exist_ok=True)
        commit.write_text("v1\n{}")
    return made


def add_file(folder: Folder, name: str) -> Path:
    file = folder.table / "origin=EWR" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([pa.field("sequence", pa.int64())])
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2], pa.int64())], schema=schema)
    parquet.write_table(pa.Table.from_batches([batch]), str(file))
    file.with_name(f".{name}.crc").write_bytes(b"crc")
    return file


def write_log(folder: Folder, name: str, files: list[Path], *, version: str = "v1") -> None:
    log = folder.table / "_spark_metadata" / name
    log.parent.mkdir(parents=True, exist_ok=True)
    entries = [json.dumps({"path": file.as_uri(), "action": "add"}) for file in files]
    log.write_text("\n".join([version, *entries]))
    log.with_name(f".{name}.crc").write_bytes(b"crc")


def names(folder: Folder) -> set[str]:
    return {file.name for file in (folder.table / "origin=EWR").iterdir()}


def test_committed_files_are_those_in_the_log(folder: Folder) -> None:
    wanted = {"part-00000-a.parquet", "part-00001-a.parquet", "part-00000-b.parquet"}

    assert committed_names(folder.table) == wanted
    assert committed_rows(folder.table) == 6


def test_compacted_log_is_read(folder: Folder) -> None:
    file = add_file(folder, "part-00000-c.parquet")
    write_log(folder, "9.compact", [file])

    assert file.name in committed_names(folder.table)


def test_log_of_another_version_is_refused(folder: Folder) -> None:
    write_log(folder, "2", [], version="v2")

    with pytest.raises(IntegrityError, match="v2"):
        committed_names(folder.table)


def test_files_of_an_unfinished_batch_are_removed(folder: Folder) -> None:
    before = names(folder)
    add_file(folder, "part-00000-killed.parquet")
    add_file(folder, "part-00001-killed.parquet")
    foreign = folder.table / "origin=EWR" / "notes.txt"
    foreign.write_text("not Spark's")

    assert remove_uncommitted(folder) == 2
    assert names(folder) == before | {"notes.txt"}
    assert remove_uncommitted(folder) == 0


def test_nothing_is_removed_from_a_folder_without_a_table(tmp_path: Path) -> None:
    assert remove_uncommitted(Folder(tmp_path / "new")) == 0
    assert committed_rows(Folder(tmp_path / "new").table) == 0


def test_files_of_a_first_batch_that_was_killed_are_removed(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    add_file(folder, "part-00000-killed.parquet")
    (folder.checkpoint / "offsets").mkdir(parents=True)

    assert remove_uncommitted(folder) == 1


def test_table_without_its_checkpoint_is_refused(folder: Folder) -> None:
    # With a new checkpoint Spark would take batch 0 for done, and leave its rows out.
    folder.checkpoint.rename(folder.path / "away")

    with pytest.raises(UsageError, match="checkpoint is gone"):
        remove_uncommitted(folder)


def test_checkpoint_without_its_table_is_refused(folder: Folder) -> None:
    folder.table.rename(folder.path / "away")

    with pytest.raises(UsageError, match="table is gone") as caught:
        remove_uncommitted(folder)
    assert str(folder.checkpoint) in caught.value.hint
