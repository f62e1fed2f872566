"""Reads the batches in a checkpoint, the rows of a table, and the copies in a stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet

from natsstream import Stream
from scripts.chaos_runs.spark.book import Row, digest_of
from scripts.chaos_runs.spark.program import PARTITION_HEADER, SEQUENCE_HEADER

# Its types lack most of it.
_parquet: Any = pyarrow.parquet


def newest_batch(folder: Path) -> int:
    """Return the number of the newest micro-batch in a folder of a checkpoint; -1 for none."""
    if not folder.exists():
        return -1
    return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=-1)


def committed(checkpoint: Path) -> int:
    """Return the newest micro-batch that has ended; -1 for none."""
    return newest_batch(checkpoint / "commits")


def planned(checkpoint: Path) -> int:
    """Return the newest micro-batch that is planned; -1 for none."""
    return newest_batch(checkpoint / "offsets")


def open_batch(checkpoint: Path) -> int | None:
    """Return the micro-batch that is planned and has not ended; None for none."""
    batch = planned(checkpoint)
    return batch if batch > committed(checkpoint) else None


def table_rows(table: Path) -> list[Row]:
    """Return the rows of a table, without the files that no micro-batch has committed."""
    files: set[str] = set()
    for log in (table / "_spark_metadata").iterdir():
        if log.name.startswith("."):
            continue
        # The first line is the version; a file of ten batches has all lines of those before.
        lines = map(json.loads, log.read_text().splitlines()[1:])
        files.update(Path(line["path"]).name for line in lines)
    rows: list[Row] = []
    for name in files:
        read = _parquet.read_table(table / name, columns=["sequence", "data"])
        rows += [Row(each["sequence"], digest_of(each["data"])) for each in read.to_pylist()]
    return rows


async def copied_rows(target: Stream) -> tuple[Sequence[Row], Sequence[tuple[int, int]]]:
    """Return the copies as rows, and the partition and sequence of each in the target's order."""
    rows: list[Row] = []
    order: list[tuple[int, int]] = []
    async for message in target.read():
        sequence = int(message.headers[SEQUENCE_HEADER])
        rows.append(Row(sequence, digest_of(message.data)))
        order.append((int(message.headers[PARTITION_HEADER]), sequence))
    return rows, order
