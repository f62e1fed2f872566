"""The columns and subjects of an ingested table, kept beside the checkpoint.

Law: files of other columns or partitions are never added to a table. Parquet would take them, and
then no reader could open the table any more. The subjects stay the same too: the checkpoint is one
place in the stream, and messages before it that were left out would never be stored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from natsstream.errors import ConfigError
from pyspark_natsstream.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

COLUMNS_FILE = "natsstream/table.json"

_WAY_OUT = "or another table and checkpoint, which then begin at startingOffsets"


def check_as_before(
    spark: SparkSession,
    checkpoint: str,
    columns: StructType,
    *,
    partition_by: Sequence[str],
    subjects: Sequence[str],
) -> None:
    """Refuse other columns, partitions or subjects than those of the first run, or keep these.

    Args:
        spark: A session with a driver in this process.
        checkpoint: Folder of the checkpoint, as Spark takes it.
        columns: The columns to write, with those of the partitions.
        partition_by: The columns of the partitions, in order.
        subjects: The subject filters of the read; none for every subject.

    Raises:
        ConfigError: They differ.
    """
    folder = Folder(spark, checkpoint)
    asked = {each.name: each.dataType.simpleString() for each in columns.fields}
    text = folder.read(COLUMNS_FILE) if folder.has_entries("offsets") else None
    now = {"columns": asked, "partition_by": list(partition_by), "subjects": sorted(subjects)}
    before: dict[str, Any] = {} if text is None else json.loads(text)
    # A checkpoint of an older version may lack some of them, and takes those of this run.
    kept: dict[str, Any] = now | before
    had = kept["partition_by"]
    if had != list(partition_by):
        raise ConfigError(
            f"the table is partitioned by {_listed(had)}, not by {_listed(partition_by)}",
            hint=f"give partition_by as before ({','.join(had) or 'empty'}), {_WAY_OUT}",
        )
    if kept["columns"] != asked:
        raise ConfigError(
            f"the table has other columns: {_differences(kept['columns'], asked)}",
            hint=f"give json_schema and includeHeaders as before, {_WAY_OUT}",
        )
    _check_subjects(kept["subjects"], sorted(subjects))
    if kept != before:
        folder.write(COLUMNS_FILE, json.dumps(kept))


def _check_subjects(had: Sequence[str], asked: Sequence[str]) -> None:
    if had == asked:
        return
    same = f"give subjects={','.join(had)} as before" if had else "leave subjects out as before"
    raise ConfigError(
        f"the table is of {_of_subjects(had)}, not of {_of_subjects(asked)}",
        detail="the messages before the checkpoint that were left out would never be stored",
        hint=f"{same}, {_WAY_OUT}",
    )


def _of_subjects(filters: Sequence[str]) -> str:
    return f"the subjects {', '.join(filters)}" if filters else "every subject"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _differences(had: dict[str, str], asked: dict[str, str]) -> str:
    told = [
        f"{name} is {had.get(name, 'not there')} and would be {asked.get(name, 'left out')}"
        for name in had | asked
        if had.get(name) != asked.get(name)
    ]
    return "; ".join(told) or f"their order is {', '.join(had)}"
