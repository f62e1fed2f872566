"""The table's files: which of them Spark has committed.

Law: Spark itself reads only files in its log, so a killed batch does no harm there. Other readers
take every file in the folder and would find rows twice; so what is in no log is removed before a
batch is written. Only files that bear Spark's names are touched.
Source: FileStreamSinkLog of Spark, version 1; a `.compact` file repeats what came before it.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from pyarrow import parquet

from natsstream.errors import IntegrityError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.flights.folder import Folder

PARTITION_COLUMN = "origin"

_LOG = "_spark_metadata"
_LOG_VERSION = "v1"
_SIDE_SUFFIX = ".crc"


def data_files(table: Path) -> dict[str, Path]:
    """Return the Parquet files in the folder, by their name, which Spark makes unique."""
    return {file.name: file for file in sorted(table.glob("*/part-*.parquet"))}


def committed_names(table: Path) -> set[str]:
    """Return the names of the files that Spark has committed.

    Raises:
        IntegrityError: The log is of another version.
    """
    names: set[str] = set()
    for log in (table / _LOG).glob("[0-9]*"):
        version, *entries = log.read_text(encoding="utf-8").splitlines()
        if version != _LOG_VERSION:
            raise IntegrityError(f"{log} has version {version!r}; {_LOG_VERSION} is known here")
        for entry in entries:
            # Only the name: the log holds absolute paths, and folders are moved.
            path = cast("dict[str, str]", json.loads(entry))["path"]
            names.add(PurePosixPath(unquote(urlsplit(path).path)).name)
    return names


def committed_rows(table: Path) -> int:
    """Return the number of rows in the files that Spark has committed."""
    files = data_files(table)
    names = committed_names(table) & files.keys()
    return sum(parquet.read_metadata(str(files[name])).num_rows for name in names)


def remove_uncommitted(folder: Folder) -> int:
    """Remove the files of batches that were never finished; no Spark may be running.

    Returns:
        Number of files removed.

    Raises:
        UsageError: There is a table without the checkpoint that belongs to it, or the other way
            round.
    """
    found = data_files(folder.table)
    committed = committed_names(folder.table)
    has_log = any((folder.table / _LOG).glob("[0-9]*"))
    if (found or has_log) and not folder.checkpoint.is_dir():
        _refuse(folder, f"{folder.table} has rows, and its checkpoint is gone")
    if any((folder.checkpoint / "commits").glob("[0-9]*")) and not has_log:
        _refuse(folder, f"{folder.checkpoint} tells of rows, and the table is gone")
    stray = [file for name, file in found.items() if name not in committed]
    for file in stray:
        file.unlink()
        file.with_name(f".{file.name}{_SIDE_SUFFIX}").unlink(missing_ok=True)
    return len(stray)


def _refuse(folder: Folder, message: str) -> None:
    hint = f"remove both and run again: rm -r '{folder.table}' '{folder.checkpoint}'"
    raise UsageError(message, hint=hint)
